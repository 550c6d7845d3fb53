//! Which words are secrets, and which names say that what follows is one.
//!
//! Every word of every line of the log is looked at here, so nothing is copied to be compared.

use std::sync::LazyLock;

use aho_corasick::automaton::Automaton as _;
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, BuildError};

/// How known tokens begin; the rest of the word belongs to them.
const TOKEN_STARTS: [&str; 26] = [
    "AIza",
    "AKIA",
    "ASIA",
    "SG.",
    "dapi",
    "dop_v1_",
    "eyJ",
    "ghp_",
    "gho_",
    "ghr_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "hf_",
    "npm_",
    "pk_live_",
    "pypi-",
    "rk_live_",
    "sk-",
    "sk_live_",
    "sk_test_",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "ya29.",
];

/// A known token is at least this long; shorter words that begin alike are ordinary.
const SHORTEST_TOKEN: usize = 16;

/// A word without a known start is taken for a token from this length on, if it mixes cases and digits.
const SHORTEST_OPAQUE: usize = 32;

/// Parts of names whose value is a secret; compared without regard to case, `-`, `_` and `.`.
const SECRET_PARTS: [&str; 16] = [
    "accesskey",
    "apikey",
    "authkey",
    "authorization",
    "cookie",
    "credential",
    "oauth2bearer",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pgpass",
    "secret",
    "sessionkey",
    "signature",
    "token",
];

/// Finds any of [`SECRET_PARTS`], looking at each letter once.
static FINDER: LazyLock<Result<DFA, BuildError>> =
    LazyLock::new(|| DFA::builder().ascii_case_insensitive(true).build(SECRET_PARTS));

/// Last parts of such names, where they have others before.
const SECRET_ENDS: [&str; 5] = ["key", "pass", "pat", "pw", "pwd"];

/// Such names as a whole.
const SECRET_NAMES: [&str; 4] = ["auth", "pass", "pw", "sig"];

/// What may stand before the secret in a header; other words there are taken for parts of it.
const SCHEMES: [&str; 8] = ["apikey", "basic", "bearer", "digest", "negotiate", "ntlm", "ssws", "token"];

/// Such a name in the text that says how to reach a database; in upper case it is where a shell is.
const OF_DATABASES: &str = "Pwd";

/// Short options whose argument is a secret, behind such a word.
const SHORT_OPTIONS: [(&str, &str); 8] = [
    ("ldapsearch", "-w"),
    ("login", "-p"),
    ("mongo", "-p"),
    ("mongosh", "-p"),
    ("redis-cli", "-a"),
    ("sshpass", "-p"),
    ("valkey-cli", "-a"),
    ("zip", "-P"),
];

/// Programs that take a secret in one word with `-p`.
const JOINED_OPTIONS: [&str; 7] =
    ["7z", "mariadb", "mariadb-dump", "mysql", "mysqladmin", "mysqldump", "sshpass"];

/// Words that put what comes second behind them under the name that comes first.
const SETTERS: [&str; 2] = ["set", "setenv"];

/// Options before `user:password`.
const LOGIN_OPTIONS: [&str; 4] = ["-u", "--user", "-U", "--proxy-user"];

/// Whether what a name stands for is a secret, for example `GITHUB_TOKEN`, `--password`, `X-Api-Key`.
pub(super) fn is_secret_name(name: &str) -> bool {
    /// Longer names are no names.
    const LONGEST_NAME: usize = 128;
    if name.len() > LONGEST_NAME || name.contains('/') {
        return false;
    }
    let name = name.trim_start_matches('-');
    let is_ended = name.rsplit_once(['_', '-']).is_some_and(|(before, end)| {
        !before.is_empty() && !is_public(before) && is_one_of(end, &SECRET_ENDS)
    });
    is_ended || name == OF_DATABASES || is_one_of(name, &SECRET_NAMES) || has_secret_part(name)
}

/// Whether a key of such a name is no secret.
fn is_public(name: &str) -> bool {
    is_one_of(name.rsplit(['_', '-']).next().unwrap_or_default(), &["public"])
}

fn is_one_of(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| known.eq_ignore_ascii_case(word))
}

fn has_secret_part(name: &str) -> bool {
    // With nothing to look with, everything counts as a secret.
    let Ok(finder) = &*FINDER else { return true };
    let Ok(mut state) = finder.start_state(Anchored::No) else { return true };
    name.bytes().filter(|byte| !b"-_.".contains(byte)).any(|byte| {
        state = finder.next_state(Anchored::No, state, byte);
        finder.is_match(state)
    })
}

/// Whether an option's argument is a secret. The argument may be the next word.
pub(super) fn is_secret_option(word: &str) -> bool {
    word.starts_with('-') && is_secret_name(word)
}

/// Whether the words behind `word` are read in a way of their own.
pub(super) fn is_leading(word: &str) -> bool {
    SETTERS.contains(&word)
        || JOINED_OPTIONS.contains(&word)
        || SHORT_OPTIONS.iter().any(|(leading, _)| *leading == word)
}

/// Whether a secret comes after `word`, of which `leading` is the last leading word before.
pub(super) fn is_before_secret(leading: &str, word: &str) -> bool {
    SHORT_OPTIONS.contains(&(leading, word)) || (SETTERS.contains(&leading) && is_secret_name(word))
}

/// Whether a secret is the rest of `word`, which begins with an option of two characters.
pub(super) fn has_joined_secret(leading: &str, word: &str) -> bool {
    word.len() > 2 && word.starts_with("-p") && JOINED_OPTIONS.contains(&leading)
}

/// Whether the value of a header of this name has blanks, and goes to the end of its line.
pub(super) fn is_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("cookie") || name.ends_with("authorization")
}

/// Whether `word` says in a header how the secret behind it is to be read.
pub(super) fn is_scheme(word: &str) -> bool {
    is_one_of(word, &SCHEMES)
}

/// Whether a long word after `word` is a secret wherever both stand.
pub(super) fn is_common_scheme(word: &str) -> bool {
    is_one_of(word, &["bearer", "basic"])
}

/// Whether `user:password` comes after this word.
pub(super) fn is_login_option(word: &str) -> bool {
    LOGIN_OPTIONS.contains(&word)
}

/// Whether `word` is a secret whatever stands around it.
pub(super) fn is_token(word: &str) -> bool {
    if word.len() >= SHORTEST_TOKEN && TOKEN_STARTS.iter().any(|start| word.starts_with(start)) {
        return true;
    }
    let has = |kind: fn(&char) -> bool| word.chars().any(|character| kind(&character));
    word.len() >= SHORTEST_OPAQUE
        && !word.contains('.')
        && has(char::is_ascii_uppercase)
        && has(char::is_ascii_lowercase)
        && has(char::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same as [`is_secret_name`], said as plainly as it can be.
    fn is_secret(name: &str) -> bool {
        let lower = name.to_ascii_lowercase();
        let lower = lower.trim_start_matches('-');
        let plain = lower.replace(['-', '_', '.'], "");
        let is_ended = lower
            .rsplit_once(['_', '-'])
            .is_some_and(|(before, end)| !before.is_empty() && SECRET_ENDS.contains(&end));
        let is_name = name.len() <= 128 && !name.contains('/');
        is_name
            && (is_ended
                || SECRET_NAMES.contains(&lower)
                || SECRET_PARTS.iter().any(|secret| plain.contains(secret)))
    }

    #[test]
    fn each_part_is_found_however_it_is_written() {
        for part in SECRET_PARTS {
            let spaced: String = part.chars().flat_map(|letter| [letter, '-']).collect();
            for name in [part.to_owned(), part.to_ascii_uppercase(), format!("MY_{part}.2"), spaced] {
                assert!(is_secret_name(&name), "{name}");
            }
            let cut = part.get(1..).unwrap_or_default();
            assert_eq!(is_secret_name(cut), is_secret(cut), "{cut}");
        }
    }

    proptest! {
        #[test]
        fn names_are_judged_as_it_is_said(
            name in "-{0,2}((a|api|Auth|cess|authoriz|ation|cook|ie|credential|k|key|KEY|oauth2|bearer|pass|PASS|\
                     phrase|wd|word|private|pg|pat|pwd|sec|ret|session|sig|nature|tok|EN|token|x|é|/)[-_.]{0,2}){0,6}",
        ) {
            prop_assert_eq!(is_secret_name(&name), is_secret(&name), "{}", name);
        }

        #[test]
        fn long_names_are_none(before in "[a-z_]{50,70}", after in "[a-z_]{50,70}") {
            let name = format!("{before}token{after}");
            prop_assert_eq!(is_secret_name(&name), is_secret(&name), "{}", name);
        }
    }
}
