//! Taking secrets and long contents out of what is logged.
//!
//! This errs on the side of masking: a masked word that was no secret costs a line of the log its detail, a
//! secret that stays costs more. It is no promise either; the log is readable by its owner alone for that reason.

use serde_json::{Value, json};

use crate::record::sha256;

/// Longer text is a file's content rather than a command, and is replaced by its length and hash.
pub const LONGEST_TEXT: usize = 4096;

/// What stands in a secret's place.
const MASK: &str = "[masked]";

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

/// Parts of names whose value is a secret; compared in lower case without `-` and `_`.
const SECRET_NAMES: [&str; 14] = [
    "accesskey",
    "apikey",
    "authorization",
    "cookie",
    "credential",
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

/// What stands before a secret in a header whose name is one of a secret.
const SCHEMES: [&str; 3] = ["basic", "bearer", "token"];

/// Places on the net whose paths are secrets.
const SECRET_PATHS: [&str; 3] =
    ["hooks.slack.com/services/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"];

/// Options before `user:password`, and before a password of `sshpass`.
const USER_OPTIONS: [&str; 2] = ["-u", "--user"];

/// The key of a command's text. What a long one begins with is kept: padding must not hide what was run.
const SCRIPT: &str = "script";

/// So much of it.
const BEGINNING: usize = 2048;

fn digest(text: &str) -> Value {
    json!({ "length": text.len(), "sha256": sha256(text.as_bytes()) })
}

fn beginning(text: &str) -> Value {
    let end = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= BEGINNING).last().unwrap_or(0);
    let head = text.get(..end).unwrap_or_default();
    // A secret that is cut in two may not be recognised.
    let whole = head.rsplit_once(char::is_whitespace).map_or("", |(whole, _)| whole);
    let mut value = digest(text);
    if let Value::Object(members) = &mut value {
        members.insert("beginning".to_owned(), mask_text(whole).into());
    }
    value
}

/// Masks a value throughout: secrets in texts, values under names of secrets, long texts.
#[must_use]
pub fn mask(value: Value) -> Value {
    match value {
        Value::String(text) if text.len() > LONGEST_TEXT => digest(&text),
        Value::String(text) => Value::String(mask_text(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(mask).collect()),
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(key, value)| {
                    let secret = is_secret_name(&key) && (value.is_string() || value.is_number());
                    let is_long_script =
                        key == SCRIPT && value.as_str().is_some_and(|text| text.len() > LONGEST_TEXT);
                    let value = match value {
                        _ if secret => Value::String(MASK.to_owned()),
                        Value::String(text) if is_long_script => beginning(&text),
                        value @ (Value::Null
                        | Value::Bool(_)
                        | Value::Number(_)
                        | Value::String(_)
                        | Value::Array(_)
                        | Value::Object(_)) => mask(value),
                    };
                    (key, value)
                })
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// Masks secrets in one text.
#[must_use]
pub fn mask_text(text: &str) -> String {
    let out = String::with_capacity(text.len());
    let mut scan = Scan { rest: text, earlier: "", before: "", gap: String::new(), out };
    while !scan.rest.is_empty() {
        if !scan.private_key() && !scan.user_in_url() && !scan.word() {
            scan.one_character();
        }
    }
    scan.out
}

struct Scan<'a> {
    rest: &'a str,
    /// The word before the one before.
    earlier: &'a str,
    /// The word before.
    before: &'a str,
    /// What stands between it and here.
    gap: String,
    out: String,
}

impl<'a> Scan<'a> {
    /// `-----BEGIN … PRIVATE KEY-----` up to its end, or to the end of the text.
    fn private_key(&mut self) -> bool {
        let Some(after) = self.rest.strip_prefix("-----BEGIN ") else { return false };
        let first_line = after.lines().next().unwrap_or_default();
        if !first_line.contains("PRIVATE KEY") {
            return false;
        }
        let end = after.find("-----END ").and_then(|at| after.get(at + "-----END ".len()..));
        let end = end.and_then(|tail| tail.find("-----").and_then(|at| tail.get(at + "-----".len()..)));
        self.replace(end.unwrap_or_default());
        true
    }

    /// The user part of `scheme://user:password@host`.
    fn user_in_url(&mut self) -> bool {
        let Some(after) = self.rest.strip_prefix("://") else { return false };
        let end = after.find(|character: char| character.is_whitespace() || "/?#\"'`".contains(character));
        let authority = end.and_then(|end| after.get(..end)).unwrap_or(after);
        let Some((user, _)) = authority.rsplit_once('@') else { return false };
        self.out.push_str("://");
        self.replace(after.get(user.len()..).unwrap_or_default());
        true
    }

    fn word(&mut self) -> bool {
        let end = self.rest.find(|character| !is_word_character(character)).unwrap_or(self.rest.len());
        let (Some(word), Some(tail)) = (self.rest.get(..end), self.rest.get(end..)) else { return false };
        if word.is_empty() {
            return false;
        }
        if self.names_a_secret(word, tail) {
            let length = value_length(self.rest, &self.gap, is_cookie(self.before));
            self.replace(self.rest.get(length..).unwrap_or_default());
            return true;
        }
        let secret_path = SECRET_PATHS.iter().find_map(|place| Some(word.find(place)? + place.len()));
        if let Some((place, _)) = secret_path.and_then(|at| word.split_at_checked(at)) {
            self.out.push_str(place);
            self.replace(tail);
            return true;
        }
        for (index, part) in word.split('/').enumerate() {
            if index > 0 {
                self.out.push('/');
            }
            self.out.push_str(if is_token(part) { MASK } else { part });
        }
        (self.earlier, self.before, self.rest) = (self.before, word, tail);
        self.gap.clear();
        true
    }

    /// Whether what stands before says that `word` is a secret: `TOKEN=`, `"password": `, `Bearer `, `--token `,
    /// `-u user:`.
    fn names_a_secret(&self, word: &str, tail: &str) -> bool {
        let gap: String = self.gap.chars().filter(|character| !"\"'\\ \t".contains(*character)).collect();
        let assigned = gap == "=" || gap == ":" || gap == ":=";
        let spaced = gap.is_empty() && !self.gap.is_empty();
        let before = self.before.to_ascii_lowercase();
        let is_of_header = is_secret_name(self.earlier) && SCHEMES.contains(&before.as_str());
        if is_secret_name(self.before) && !is_of_header {
            let is_scheme = SCHEMES.contains(&word.to_ascii_lowercase().as_str());
            return (assigned && !is_scheme)
                || (spaced && self.before.starts_with("--") && !word.starts_with('-'));
        }
        let is_scheme = ["bearer", "basic"].contains(&before.as_str()) && word.len() >= 8;
        let is_login = USER_OPTIONS.contains(&self.before) && tail.starts_with(':');
        let is_of_sshpass = self.earlier == "sshpass" && self.before == "-p";
        spaced && (is_of_header || is_scheme || is_login || is_of_sshpass)
    }

    fn one_character(&mut self) {
        let mut characters = self.rest.chars();
        if let Some(character) = characters.next() {
            self.gap.push(character);
            self.out.push(character);
        }
        self.rest = characters.as_str();
    }

    fn replace(&mut self, tail: &'a str) {
        self.out.push_str(MASK);
        (self.earlier, self.before, self.rest) = ("", "", tail);
        self.gap.clear();
    }
}

/// How far a value goes: to its closing quote, or to where a shell would end the word; several cookies are one value.
fn value_length(rest: &str, gap: &str, is_cookie: bool) -> usize {
    let end = match gap.chars().last() {
        Some(quote @ ('"' | '\'')) => {
            // A quote inside a quote is escaped once more than the one that opened the value.
            let is_escaped = gap.trim_end_matches(quote).ends_with('\\');
            let closes =
                |at: &usize| rest.get(..*at).is_some_and(|value| value.ends_with('\\')) == is_escaped;
            rest.match_indices(quote).map(|(at, _)| at).find(closes).map(|at| at - usize::from(is_escaped))
        }
        _ if is_cookie => rest.find(|character: char| "\n\"'`".contains(character)),
        _ => rest.find(|character: char| character.is_whitespace() || ";&|\"'`),}".contains(character)),
    };
    end.unwrap_or(rest.len())
}

fn is_cookie(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with("cookie")
}

fn is_word_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_-.+/~".contains(character)
}

fn is_secret_name(name: &str) -> bool {
    /// Longer names are no names.
    const LONGEST_NAME: usize = 128;
    if name.len() > LONGEST_NAME || name.contains('/') {
        return false;
    }
    let plain: String = name
        .chars()
        .filter(|character| !"-_.".contains(*character))
        .map(|character| character.to_ascii_lowercase())
        .collect();
    let parts = name.to_ascii_lowercase();
    let is_ended = parts.rsplit_once(['_', '-']).is_some_and(|(before, end)| {
        !before.trim_start_matches('-').is_empty() && SECRET_ENDS.contains(&end)
    });
    is_ended || SECRET_NAMES.iter().any(|secret| plain.contains(secret))
}

fn is_token(word: &str) -> bool {
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

    fn check(text: &str, expected: &str) {
        assert_eq!(mask_text(text), expected, "{text}");
    }

    #[test]
    fn secrets_are_masked() {
        check("export API_KEY=abc123 && run", "export API_KEY=[masked] && run");
        check("API_KEY='p@ss w!rd'; x", "API_KEY='[masked]'; x");
        check("PASSWORD=p@ss!w:rd; x", "PASSWORD=[masked]; x");
        check(
            "curl -H \"Authorization: Bearer abcdefgh12.x/y\" u",
            "curl -H \"Authorization: Bearer [masked]\" u",
        );
        check("curl -H 'Authorization: Basic dXNlcjpwYXNz'", "curl -H 'Authorization: Basic [masked]'");
        check("{\"password\": \"hunter2\", \"a\": 1}", "{\"password\": \"[masked]\", \"a\": 1}");
        check("x --token abc --verbose", "x --token [masked] --verbose");
        check("x --token=abc y", "x --token=[masked] y");
        check("git clone https://u:secret@host/a", "git clone https://[masked]@host/a");
        check("https://ghp_0123456789abcdefghij@host", "https://[masked]@host");
        check("echo ghp_0123456789abcdefghij", "echo [masked]");
        check("aws AKIAIOSFODNN7EXAMPLE x", "aws [masked] x");
        check("a eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.sig b", "a [masked] b");
        check("f /a/ghp_0123456789abcdefghij/b", "f /a/[masked]/b");
        check("echo aB3dEfGhIjKlMnOpQrStUvWxYz012345", "echo [masked]");
        check("x -----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- y", "x [masked] y");
        check("-----BEGIN PRIVATE KEY-----\nabc", "[masked]");
        check("curl -H 'Authorization: token s3cr3t' u", "curl -H 'Authorization: token [masked]' u");
        check("curl -H 'Cookie: a=1; session=2' u", "curl -H 'Cookie: [masked]' u");
        check("curl -u ann:hunter2 https://x", "curl -u [masked] https://x");
        check("sshpass -p hunter2 ssh x", "sshpass -p [masked] ssh x");
        check("u?X-Amz-Signature=0a1b&b=c", "u?X-Amz-Signature=[masked]&b=c");
        check(
            "GH_PAT=x MYSQL_PWD=y DB_PASS=z run",
            "GH_PAT=[masked] MYSQL_PWD=[masked] DB_PASS=[masked] run",
        );
        check("https://hooks.slack.com/services/T0/B0/xyz", "https://hooks.slack.com/services/[masked]");
        check(r#"{"password": "a\"b", "c": 1}"#, r#"{"password": "[masked]", "c": 1}"#);
        check(r#""{\"password\": \"a b\"}" c"#, r#""{\"password\": \"[masked]\"}" c"#);
    }

    #[test]
    fn ordinary_text_is_kept() {
        for text in [
            "cargo test -p portcullis-audit -- --nocapture",
            "git show 0123456789abcdef0123456789abcdef01234567",
            "cat src/tokens.rs && ls ~/.config",
            "https://example.com/a?b=c",
            "https://example.com:8443/x@y",
            "/usr/lib/x86_64-linux-gnu/libFoo.so.1.2.3",
            "grep -rn token .",
            "PWD=/home/u OLDPWD=/ ls",
            "tail -u 1 --user x",
            "sk-short",
            "-----BEGIN CERTIFICATE-----\nabc",
            "",
            "grüße: 1",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn values_are_masked_by_key_and_by_length() {
        let long = "x".repeat(LONGEST_TEXT + 1);
        let masked = mask(json!({
            "env": { "GITHUB_TOKEN": "x", "HOME": "/h", "tokens": ["a", 1], "api-key": 5 },
            "content": long,
        }));
        assert_eq!(
            masked,
            json!({
                "env": { "GITHUB_TOKEN": MASK, "HOME": "/h", "tokens": ["a", 1], "api-key": MASK },
                "content": { "length": LONGEST_TEXT + 1, "sha256": sha256(long.as_bytes()) },
            })
        );
    }

    proptest! {
        #[test]
        fn never_panics_and_ends(text in "\\PC{0,120}") {
            let masked = mask_text(&text);
            prop_assert!(masked.len() <= text.len().saturating_mul(MASK.len()) + MASK.len());
        }

        #[test]
        fn a_token_never_survives(before in "[a-z =:\"'/]{0,12}", after in "[ \"';/]{1}[a-z ]{0,12}") {
            let token = "ghp_0123456789abcdefghijABCDEF";
            let text = format!("{before} {token}{after}");
            prop_assert!(!mask_text(&text).contains(token), "{text}");
        }
    }
}
