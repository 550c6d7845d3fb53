//! Detects values that are or contain secrets.
//!
//! It knows tokens by their prefix or randomness, passwords in URLs, JSON documents, queries and options, credentials
//! of HTTP requests, and webhooks.

use super::names::is_secret_name;

/// Prefixes of known tokens; the rest of the word belongs to the token.
const TOKEN_STARTS: [&str; 34] = [
    "AGE-SECRET-KEY-",
    "AIza",
    "AKIA",
    "ASIA",
    "SG.",
    "dapi",
    "dckr_pat_",
    "dop_v1_",
    "eyJ",
    "ghp_",
    "gho_",
    "ghr_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "gldt-",
    "hf_",
    "hvs.",
    "lin_api_",
    "npm_",
    "pk_live_",
    "pypi-",
    "rk_live_",
    "shpat_",
    "sk-",
    "sk_live_",
    "sk_test_",
    "xapp-",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "xoxs-",
    "ya29.",
];

/// Minimum length of a known token in other text; shorter words with the same prefix are ordinary: `sk-learn`.
pub const SHORTEST_TOKEN: usize = 16;

/// Minimum length of a token without a known prefix; it must mix cases and digits.
const SHORTEST_OPAQUE: usize = 32;

/// Minimum length of a part of a value to be checked for randomness.
const SHORTEST_RANDOM: usize = 22;

/// Minimum length of a user name in a URL to count as a token.
const LONGEST_USER: usize = 20;

/// Returns true if a word is a secret in any context.
#[must_use]
pub fn is_token(word: &str) -> bool {
    if word.len() >= SHORTEST_TOKEN && begins_as_token(word) {
        return true;
    }
    let has = |kind: fn(&char) -> bool| word.chars().any(|character| kind(&character));
    word.len() >= SHORTEST_OPAQUE
        && !word.contains('.')
        && has(char::is_ascii_uppercase)
        && has(char::is_ascii_lowercase)
        && has(char::is_ascii_digit)
}

/// Returns true if the value of a variable is or contains a secret.
#[must_use]
pub fn has_secret(value: &str) -> bool {
    begins_as_token(value)
        || value.contains("-----BEGIN")
        || words(value).any(|word| word.len() >= SHORTEST_TOKEN && begins_as_token(word))
        || has_user_info(value)
        || has_named_secret(value)
        || has_secret_after_option(value)
        || has_authorization(value)
        || has_webhook(value)
        || is_random(value)
}

/// Returns true if a value only switches something, so that it is no secret.
pub(super) fn is_switch(value: &str) -> bool {
    const SWITCHES: [&str; 14] =
        ["", "0", "1", "y", "n", "yes", "no", "true", "false", "on", "off", "auto", "always", "never"];
    SWITCHES.iter().any(|known| known.eq_ignore_ascii_case(value))
}

/// Returns true if a value is a number.
pub(super) fn is_number(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())
}

fn begins_as_token(word: &str) -> bool {
    TOKEN_STARTS.iter().any(|start| word.starts_with(start))
}

fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split(|character: char| character.is_whitespace() || "\"'=:,;@/&?".contains(character))
}

/// Returns true if the value contains a URL with a password, or with a user name as long as a token.
fn has_user_info(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ', ',']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        user.is_some_and(|user| user.contains(':') || user.len() >= LONGEST_USER)
    })
}

/// Returns true if a secret follows its name: `?password=x`, `;Pwd=x`, `-DstorePassword=x`, `"password": "x"`.
fn has_named_secret(value: &str) -> bool {
    let joints = value.char_indices().filter(|(_, character)| "=:".contains(*character));
    joints.into_iter().any(|(at, joint)| {
        let (before, behind) = (value.get(..at).unwrap_or_default(), value.get(at + 1..).unwrap_or_default());
        let closed = before.trim_end_matches(['"', '\'', '\\', ' ']);
        let is_quoted = closed.len() < before.trim_end_matches(' ').len();
        // A colon also separates the entries of a path list.
        let is_joint = joint == '=' || is_quoted || behind.starts_with(' ');
        let behind = behind.trim_start_matches(['=', '"', '\'', '\\', ' ']);
        is_joint && has_a_value(behind) && is_name_of_secret(closed)
    })
}

/// Returns true if the value contains an option with a secret, separated by a space: `--password x`.
fn has_secret_after_option(value: &str) -> bool {
    let mut words = value.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let is_option = word.starts_with('-') && !word.contains('=') && is_secret_name(word);
        if is_option && words.peek().is_some_and(|next| !next.starts_with(['-', '$'])) {
            return true;
        }
    }
    false
}

/// Returns true if the value contains credentials of an HTTP request: `Bearer x`, `Basic x`.
fn has_authorization(value: &str) -> bool {
    const SCHEMES: [&str; 3] = ["Bearer", "Basic", "Token"];
    const SHORTEST: usize = 8;
    let mut words = value.split([' ', ':', '"', '\'']).filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        let is_scheme = SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(word));
        let is_credential = |next: &&str| {
            next.len() >= SHORTEST && next.bytes().any(|byte| byte.is_ascii_digit() || byte == b'=')
        };
        if is_scheme && words.peek().is_some_and(is_credential) {
            return true;
        }
    }
    false
}

/// Returns true if the value is a webhook URL, with which anyone can post messages.
fn has_webhook(value: &str) -> bool {
    const MARKS: [&str; 3] = ["://hooks.", "/webhook/", "/webhooks/"];
    const SHORTEST: usize = 16;
    let has_mark = MARKS.iter().any(|mark| value.contains(mark));
    has_mark && value.split('/').any(|part| part.len() >= SHORTEST && !part.contains('.'))
}

fn has_a_value(behind: &str) -> bool {
    !behind.is_empty() && !behind.starts_with(['&', ';', ',', '}', '$'])
}

/// Returns true if the text before a separator ends in the name of a secret.
fn is_name_of_secret(before: &str) -> bool {
    let is_of_name = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
    let start = before.trim_end_matches(is_of_name).len();
    let name = before.get(start..).unwrap_or_default();
    // Several services take their key as `?key=`.
    let is_in_query = before.get(..start).is_some_and(|before| before.ends_with(['?', '&']));
    is_secret_name(name)
        || name.eq_ignore_ascii_case("pwd")
        || (is_in_query && name.eq_ignore_ascii_case("key"))
}

/// Returns true if a value looks random, as keys do.
///
/// Capitals, small letters and digits alternate more often than in paths, words or identifiers.
fn is_random(value: &str) -> bool {
    let is_of_part = |character: char| character.is_ascii_alphanumeric() || character == '+';
    let mut parts = value.split(|character: char| !is_of_part(character));
    parts.any(mixes_at_random) || value.split_whitespace().any(is_base64) || is_random_in_one_case(value)
}

/// Returns true if a word is base64 with slashes. A relative path mixes letters less.
fn is_base64(word: &str) -> bool {
    let is_of_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    let is_candidate = word.contains('/') && !word.starts_with('/') && word.bytes().all(is_of_base64);
    let letters = word.replace(['/', '='], "");
    let mixes_often = changes_of_kind(&letters) * 2 >= letters.len();
    is_candidate && word.len() >= SHORTEST_OPAQUE && mixes_often && mixes_at_random(&letters)
}

fn mixes_at_random(part: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| part.bytes().any(|byte| kind(&byte));
    part.len() >= SHORTEST_RANDOM
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
        && changes_of_kind(part) * 5 >= part.len() * 2
}

/// Returns true for random letters of one case with digits.
///
/// Hexadecimal checksums and identifiers do not count, nor parts of a path (the Nix store has such names).
fn is_random_in_one_case(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    value.len() >= SHORTEST_OPAQUE
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && value.bytes().any(|byte| byte.is_ascii_alphabetic() && !byte.is_ascii_hexdigit())
        && digits * 10 >= value.len()
        && digits < value.len()
        && changes_of_kind(value) * 4 >= value.len()
}

/// Returns how often neighbouring characters are of different kinds: capitals, small letters, digits.
fn changes_of_kind(part: &str) -> usize {
    let kind = |byte: &u8| match byte {
        b'A'..=b'Z' => 0,
        b'a'..=b'z' => 1,
        _ => 2,
    };
    part.as_bytes().windows(2).filter(|pair| matches!(pair, [one, two] if kind(one) != kind(two))).count()
}
