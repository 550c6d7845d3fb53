//! Words of a command line that say that a secret follows. Names of secrets are in `portcullis_text::secrets`.

use portcullis_text::secrets::is_secret_name;

/// What may stand before the secret in a header; other words there are taken for parts of it.
const SCHEMES: [&str; 8] = ["apikey", "basic", "bearer", "digest", "negotiate", "ntlm", "ssws", "token"];

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

fn is_one_of(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| known.eq_ignore_ascii_case(word))
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
