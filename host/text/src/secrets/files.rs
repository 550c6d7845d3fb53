//! Detects credentials in the content of files: only forms that nothing else has, since files have many random texts.

mod forms;
mod wide;

use std::sync::LazyLock;

use aho_corasick::automaton::Automaton as _;
use aho_corasick::dfa::DFA;
use aho_corasick::{BuildError, Input, MatchKind};

use forms::{FORMS, Form, Neighbour, is_word};

/// How private keys begin: those of OpenSSL, OpenSSH and GnuPG, of SSH2, and of PuTTY.
const KEYS: [&str; 3] = ["-----BEGIN ", "---- BEGIN ", "PuTTY-User-Key-File-"];
const KEY_KIND: &[u8] = b"PRIVATE KEY";
/// How the line of a key ends after its kind.
const KEY_ENDS: [&[u8]; 3] = [b"-----", b" BLOCK-----", b" ----"];
/// The most bytes between the beginning and the end of such a line.
const KEY_WORDS: usize = 48;
/// The name of a private key in the reason why a push is refused.
const KEY: &str = "a private key";

/// So many letters and digits in front of a token belong to a longer random text, such as a file in base64.
const RANDOM_TEXT: usize = 24;

/// The length of a prefix that occurs in random texts.
const SHORT_PREFIX: usize = 4;

/// How many bytes of a text have to be seen together to find a credential in it, also in UTF-16.
pub const FILE_SECRET_SPAN: usize = 256;

/// Automaton that finds the beginning of any token or key in one pass.
static FINDER: LazyLock<Result<DFA, BuildError>> = LazyLock::new(|| {
    let beginnings = FORMS.iter().map(|form| form.prefix).chain(KEYS);
    DFA::builder().match_kind(MatchKind::LeftmostLongest).build(beginnings)
});

/// Returns what to call the first credential in a part of a file.
#[must_use]
pub fn secret_in_file(text: &[u8]) -> Option<&'static str> {
    in_narrow(text).or_else(|| wide::texts(text).iter().find_map(|text| in_narrow(text)))
}

/// Returns what to call the first credential in a text that is not in UTF-16.
fn in_narrow(text: &[u8]) -> Option<&'static str> {
    // Without the automaton, nothing could be found, so every file counts as one with a credential.
    let Ok(finder) = &*FINDER else { return Some("a credential") };
    let mut from = 0;
    loop {
        let Ok(found) = finder.try_find(&Input::new(text).range(from..)) else { return Some("a credential") };
        let found = found?;
        let rest = text.get(found.end()..).unwrap_or_default();
        let before = text.get(..found.start()).unwrap_or_default();
        let kind = match FORMS.get(found.pattern().as_usize()) {
            Some(form) => is_token(form, before, rest).then_some(form.kind),
            None => is_key(rest).then_some(KEY),
        };
        if kind.is_some() {
            return kind;
        }
        from = found.start() + 1;
    }
}

fn is_token(form: &Form, before: &[u8], rest: &[u8]) -> bool {
    let neighbour = before.last();
    let is_of_random = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/_-".contains(byte);
    let may_begin = !neighbour.is_some_and(u8::is_ascii_alphanumeric)
        || form.before == Neighbour::Any
            && before.iter().rev().take(RANDOM_TEXT).take_while(is_of_random).count() < RANDOM_TEXT;
    // A short prefix occurs in random texts, so there the token has to end where such tokens do.
    let is_surrounded = neighbour.is_some_and(is_word) && rest.get(form.shortest).is_some_and(is_word);
    may_begin
        && !(is_surrounded && form.prefix.len() <= SHORT_PREFIX)
        && form.rest.is_long_enough(rest, form.shortest)
}

/// Returns true if a private key goes on like this after its beginning.
fn is_key(rest: &[u8]) -> bool {
    // The file format of PuTTY has a number.
    if let [b'1'..=b'9', b':', ..] = rest {
        return true;
    }
    let line = rest.get(..KEY_WORDS).unwrap_or(rest).split(|&byte| byte == b'\n').next().unwrap_or_default();
    let kinds = line.windows(KEY_KIND.len()).enumerate().filter(|(_, part)| *part == KEY_KIND);
    kinds.into_iter().any(|(at, _)| {
        let end = line.get(at + KEY_KIND.len()..).unwrap_or_default();
        KEY_ENDS.iter().any(|known| end.starts_with(known))
    })
}

#[cfg(test)]
mod tests;
