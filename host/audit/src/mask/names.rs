//! Words on a command line after which a secret follows. Names of secrets are in `portcullis_text::secrets`.

use portcullis_text::secrets::is_secret_name;

/// Authentication schemes before the secret in a header; any other word there is taken for part of the secret.
const SCHEMES: [&str; 8] = ["apikey", "basic", "bearer", "digest", "negotiate", "ntlm", "ssws", "token"];

/// Short options whose argument is a secret, each with its program or subcommand.
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

/// Programs whose option `-p` and its secret form one word.
const JOINED_OPTIONS: [&str; 7] =
    ["7z", "mariadb", "mariadb-dump", "mysql", "mysqladmin", "mysqldump", "sshpass"];

/// Words whose first argument names the second one.
const SETTERS: [&str; 2] = ["set", "setenv"];

/// Options before `user:password`.
const LOGIN_OPTIONS: [&str; 4] = ["-u", "--user", "-U", "--proxy-user"];

fn is_one_of(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Returns true if an option's argument is a secret. The argument may be the next word.
pub(super) fn is_secret_option(word: &str) -> bool {
    word.starts_with('-') && is_secret_name(word)
}

/// Returns true if `word` changes how the words after it are read.
pub(super) fn is_leading(word: &str) -> bool {
    SETTERS.contains(&word)
        || JOINED_OPTIONS.contains(&word)
        || SHORT_OPTIONS.iter().any(|(leading, _)| *leading == word)
}

/// Returns true if a secret follows `word`. `leading` is the last leading word before it.
pub(super) fn is_before_secret(leading: &str, word: &str) -> bool {
    SHORT_OPTIONS.contains(&(leading, word)) || (SETTERS.contains(&leading) && is_secret_name(word))
}

/// Returns true if the rest of `word`, after an option of two characters, is a secret.
pub(super) fn has_joined_secret(leading: &str, word: &str) -> bool {
    word.len() > 2 && word.starts_with("-p") && JOINED_OPTIONS.contains(&leading)
}

/// Returns true if the value of this header has blanks and extends to the end of the line.
pub(super) fn is_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("cookie") || name.ends_with("authorization")
}

/// Returns true if `word` is an authentication scheme in a header.
pub(super) fn is_scheme(word: &str) -> bool {
    is_one_of(word, &SCHEMES)
}

/// Returns true if a long word after `word` is a secret in any context.
pub(super) fn is_common_scheme(word: &str) -> bool {
    is_one_of(word, &["bearer", "basic"])
}

/// Returns true if `user:password` follows this word.
pub(super) fn is_login_option(word: &str) -> bool {
    LOGIN_OPTIONS.contains(&word)
}
