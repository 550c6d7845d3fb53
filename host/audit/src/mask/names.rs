//! Which words are secrets, and which names say that what follows is one.

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

/// Parts of names whose value is a secret; compared in lower case without `-`, `_` and `.`.
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

/// Last parts of such names, where they have others before.
const SECRET_ENDS: [&str; 3] = ["pass", "pat", "pwd"];

/// Such names as a whole.
const SECRET_NAMES: [&str; 3] = ["auth", "pass", "sig"];

/// What may stand before the secret in a header; other words there are taken for parts of it.
const SCHEMES: [&str; 8] = ["apikey", "basic", "bearer", "digest", "negotiate", "ntlm", "ssws", "token"];

/// Options before `user:password`.
const LOGIN_OPTIONS: [&str; 4] = ["-u", "--user", "-U", "--proxy-user"];

/// Whether what a name stands for is a secret, for example `GITHUB_TOKEN`, `--password`, `X-Api-Key`.
pub(super) fn is_secret_name(name: &str) -> bool {
    /// Longer names are no names.
    const LONGEST_NAME: usize = 128;
    if name.len() > LONGEST_NAME || name.contains('/') {
        return false;
    }
    let lower = name.to_ascii_lowercase();
    let lower = lower.trim_start_matches('-');
    let plain: String = lower.chars().filter(|character| !"-_.".contains(*character)).collect();
    let is_ended = lower
        .rsplit_once(['_', '-'])
        .is_some_and(|(before, end)| !before.is_empty() && SECRET_ENDS.contains(&end));
    is_ended || SECRET_NAMES.contains(&lower) || SECRET_PARTS.iter().any(|secret| plain.contains(secret))
}

/// Whether an option's argument is a secret. The argument may be the next word.
pub(super) fn is_secret_option(word: &str) -> bool {
    word.starts_with('-') && is_secret_name(word)
}

/// Whether the value of a header of this name has blanks, and goes to the end of its line.
pub(super) fn is_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("cookie") || name.ends_with("authorization")
}

/// Whether `word` says in a header how the secret behind it is to be read.
pub(super) fn is_scheme(word: &str) -> bool {
    SCHEMES.contains(&word.to_ascii_lowercase().as_str())
}

/// Whether a long word after `word` is a secret wherever both stand.
pub(super) fn is_common_scheme(word: &str) -> bool {
    ["bearer", "basic"].contains(&word.to_ascii_lowercase().as_str())
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
