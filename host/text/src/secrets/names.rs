//! Names of secrets: `GITHUB_TOKEN`, `--password`, `X-Api-Key`, `trustStorePassword`, `SSHPASS`.
//!
//! Every word of every log line is checked here, so the comparisons do not copy text.

use std::sync::LazyLock;

use aho_corasick::automaton::Automaton as _;
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, BuildError};

/// Parts of names of secrets; compared without regard to case, `-`, `_` and `.`.
const PARTS: [&str; 19] = [
    "accesskey",
    "apikey",
    "authkey",
    "authorization",
    "connectionstring",
    "cookie",
    "credential",
    "mnemonic",
    "oauth2bearer",
    "passphrase",
    "passwd",
    "password",
    "pgpass",
    "privatekey",
    "privkey",
    "secret",
    "sessionkey",
    "signature",
    "token",
];

/// Automaton that finds any of [`PARTS`] in one pass.
static FINDER: LazyLock<Result<DFA, BuildError>> =
    LazyLock::new(|| DFA::builder().ascii_case_insensitive(true).build(PARTS));

/// Last words of such names, after other words.
const LAST_WORDS: [&str; 10] = ["cred", "creds", "dsn", "key", "keys", "pass", "pat", "psw", "pw", "pwd"];

/// Endings of such names, without a separator: `SSHPASS`, `BINDPW`, `DEPLOYKEY`.
const ENDS: [&str; 7] = ["cred", "creds", "dsn", "key", "pass", "pw", "pwd"];

/// Words with one of [`ENDS`] that do not name a secret.
const ORDINARY_WORDS: [&str; 19] = [
    "bypass",
    "compass",
    "donkey",
    "encompass",
    "hockey",
    "hotkey",
    "jockey",
    "lackey",
    "mickey",
    "monkey",
    "oldpwd",
    "overpass",
    "pubkey",
    "sacred",
    "surpass",
    "trespass",
    "turkey",
    "underpass",
    "whiskey",
];

/// Complete names of secrets.
const WHOLE: [&str; 4] = ["auth", "pass", "pw", "sig"];

/// The password key in database connection strings. In upper case it is the shell's working directory.
const OF_DATABASES: &str = "Pwd";

/// Words that mark a variable as a secret, at any position in its name.
const WORDS_OF_VARIABLES: [&str; 28] = [
    "auth",
    "bearer",
    "bindpw",
    "cred",
    "creds",
    "dsn",
    "htpasswd",
    "jwt",
    "key",
    "keys",
    "keystore",
    "mnemonic",
    "oauth",
    "oauth2",
    "otp",
    "pass",
    "passcode",
    "passwords",
    "pat",
    "pin",
    "private",
    "psw",
    "pw",
    "pwd",
    "pwds",
    "sas",
    "totp",
    "webhook",
];

/// Variables without secrets, although their names or values look like it.
///
/// `*` matches any text at the start or the end.
const HARMLESS_VARIABLES: [&str; 7] =
    ["PWD", "OLDPWD", "*_COLORS", "*_PUBLIC_KEY", "GTK_KEY_THEME*", "SSH_KEY_TYPE", "TOKENIZERS_*"];

/// Words in names of limits; a number with such a name is not a secret: `MAX_OUTPUT_TOKENS=4096`.
const WORDS_OF_LIMITS: [&str; 11] =
    ["max", "min", "limit", "count", "size", "length", "len", "ttl", "timeout", "budget", "interval"];

/// Returns true if a name stands for a secret.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    /// Maximum length of a name.
    const LONGEST_NAME: usize = 128;
    if name.len() > LONGEST_NAME || name.contains('/') {
        return false;
    }
    let name = name.trim_start_matches('-');
    let is_ended = name
        .rsplit_once(['_', '-'])
        .is_some_and(|(before, end)| !before.is_empty() && !is_public(before) && is_one_of(end, &LAST_WORDS));
    is_ended
        || name == OF_DATABASES
        || is_one_of(name, &WHOLE)
        || has_secret_end(name)
        || has_secret_part(name)
}

/// Returns true if the name of a variable stands for a secret.
///
/// This covers more names than in ordinary text, since a rule can pass a withheld variable to commands.
#[must_use]
pub fn is_secret_variable(name: &str) -> bool {
    let mut words = name.split(|character: char| !character.is_ascii_alphanumeric());
    is_secret_name(name) || words.any(|word| is_one_of(word, &WORDS_OF_VARIABLES) || has_secret_end(word))
}

/// Returns true if a variable is known to be no secret, whatever its value looks like.
pub(super) fn is_harmless_variable(name: &str) -> bool {
    HARMLESS_VARIABLES.iter().any(|known| match (known.strip_prefix('*'), known.strip_suffix('*')) {
        (Some(end), _) => name.ends_with(end),
        (None, Some(start)) => name.starts_with(start),
        (None, None) => name == *known,
    })
}

/// Returns true if a name says that its value is a count or a limit.
pub(super) fn is_limit(name: &str) -> bool {
    name.split(['_', '-']).any(|word| is_one_of(word, &WORDS_OF_LIMITS))
}

/// Returns true for the name of a public key.
fn is_public(name: &str) -> bool {
    is_one_of(name.rsplit(['_', '-']).next().unwrap_or_default(), &["public"])
}

fn is_one_of(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Returns true if the last word ends like the name of a secret.
fn has_secret_end(name: &str) -> bool {
    let word = name.rsplit(['_', '-', '.']).next().unwrap_or_default();
    let ends = |end: &&str| {
        let start = word.len().checked_sub(end.len()).filter(|start| *start >= 2);
        start.and_then(|start| word.get(start..)).is_some_and(|tail| tail.eq_ignore_ascii_case(end))
    };
    ENDS.iter().any(ends) && !is_one_of(word, &ORDINARY_WORDS)
}

fn has_secret_part(name: &str) -> bool {
    // Without the automaton, every name counts as a secret.
    let Ok(finder) = &*FINDER else { return true };
    let Ok(mut state) = finder.start_state(Anchored::No) else { return true };
    name.bytes().filter(|byte| !b"-_.".contains(byte)).any(|byte| {
        state = finder.next_state(Anchored::No, state, byte);
        finder.is_match(state)
    })
}

#[cfg(test)]
mod tests;
