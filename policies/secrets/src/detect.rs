//! Finds credentials in text.

use crate::random::looks_random;

/// A credential, by its position in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Its kind, for people.
    pub(crate) kind: &'static str,
}

/// The form of a credential: its prefix, and the characters that follow.
struct Form {
    prefix: &'static str,
    /// The characters after the prefix.
    body: fn(char) -> bool,
    /// Their minimum number.
    shortest: usize,
    /// Their maximum number; longer texts are something else.
    longest: usize,
    kind: &'static str,
}

fn upper(character: char) -> bool {
    character.is_ascii_uppercase() || character.is_ascii_digit()
}

fn plain(character: char) -> bool {
    character.is_ascii_alphanumeric()
}

fn word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

fn dotted(character: char) -> bool {
    word(character) || character == '.'
}

const FORMS: [Form; 24] = [
    Form { prefix: "AKIA", body: upper, shortest: 16, longest: 16, kind: "an AWS access key" },
    Form { prefix: "ASIA", body: upper, shortest: 16, longest: 16, kind: "an AWS access key" },
    Form { prefix: "ghp_", body: plain, shortest: 36, longest: 255, kind: "a GitHub token" },
    Form { prefix: "gho_", body: plain, shortest: 36, longest: 255, kind: "a GitHub token" },
    Form { prefix: "ghu_", body: plain, shortest: 36, longest: 255, kind: "a GitHub token" },
    Form { prefix: "ghs_", body: plain, shortest: 36, longest: 255, kind: "a GitHub token" },
    Form { prefix: "ghr_", body: plain, shortest: 36, longest: 255, kind: "a GitHub token" },
    Form { prefix: "github_pat_", body: word, shortest: 40, longest: 255, kind: "a GitHub token" },
    Form { prefix: "glpat-", body: word, shortest: 20, longest: 255, kind: "a GitLab token" },
    Form { prefix: "xoxb-", body: word, shortest: 20, longest: 255, kind: "a Slack token" },
    Form { prefix: "xoxp-", body: word, shortest: 20, longest: 255, kind: "a Slack token" },
    Form { prefix: "xoxa-", body: word, shortest: 20, longest: 255, kind: "a Slack token" },
    Form { prefix: "sk-ant-", body: word, shortest: 20, longest: 255, kind: "an Anthropic key" },
    Form { prefix: "sk-proj-", body: word, shortest: 20, longest: 255, kind: "an OpenAI key" },
    Form { prefix: "sk-", body: plain, shortest: 32, longest: 255, kind: "an API key" },
    Form { prefix: "sk_live_", body: plain, shortest: 20, longest: 255, kind: "a Stripe key" },
    Form { prefix: "rk_live_", body: plain, shortest: 20, longest: 255, kind: "a Stripe key" },
    Form { prefix: "AIza", body: word, shortest: 35, longest: 35, kind: "a Google API key" },
    Form { prefix: "npm_", body: plain, shortest: 36, longest: 36, kind: "an npm token" },
    Form { prefix: "pypi-", body: word, shortest: 60, longest: 400, kind: "a PyPI token" },
    Form { prefix: "crates-io-", body: plain, shortest: 30, longest: 255, kind: "a crates.io token" },
    Form { prefix: "hf_", body: plain, shortest: 30, longest: 255, kind: "a Hugging Face token" },
    Form { prefix: "SG.", body: dotted, shortest: 50, longest: 255, kind: "a SendGrid key" },
    Form { prefix: "eyJ", body: dotted, shortest: 40, longest: 4_000, kind: "a signed token" },
];

/// Names before a password.
const NAMES: [&str; 9] =
    ["password", "passwd", "secret", "token", "api_key", "apikey", "api-key", "access_key", "private_key"];

const KEY_BEGIN: &str = "-----BEGIN ";
const KEY_KIND: &str = "PRIVATE KEY-----";
const KEY_END: &str = "-----END ";

/// Returns the credentials in order, without nested ones.
pub(crate) fn find(text: &str) -> Vec<Found> {
    let mut found: Vec<Found> = keys(text);
    for form in &FORMS {
        found.extend(of_form(text, form));
    }
    found.extend(assigned(text));
    found.sort_by_key(|found| (found.start, std::cmp::Reverse(found.end)));
    let mut end = 0;
    found.retain(|found| {
        let free = found.start >= end;
        if free {
            end = found.end;
        }
        free
    });
    found
}

/// Finds private keys as text: `-----BEGIN ... PRIVATE KEY-----` up to the end line, or to the end of the text.
fn keys(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text.get(from..).and_then(|rest| rest.find(KEY_BEGIN)).map(|at| from + at) {
        from = start + KEY_BEGIN.len();
        let line = text.get(from..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        if !line.trim_end().ends_with(KEY_KIND) {
            continue;
        }
        let rest = text.get(from..).unwrap_or_default();
        let end = match rest.find(KEY_END) {
            Some(at) => from + at + rest.get(at..).and_then(|rest| rest.lines().next()).map_or(0, str::len),
            None => text.len(),
        };
        found.push(Found { start, end, kind: "a private key" });
        from = end;
    }
    found
}

fn of_form(text: &str, form: &Form) -> Vec<Found> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices(form.prefix) {
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        let rest = text.get(start + form.prefix.len()..).unwrap_or_default();
        let body: usize =
            rest.chars().take_while(|character| (form.body)(*character)).map(char::len_utf8).sum();
        let fits = (form.shortest..=form.longest).contains(&body);
        // `eyJ` begins every JSON object in base64; a signed token has three of them.
        let token = rest.get(..body).unwrap_or_default();
        let signed = form.prefix != "eyJ" || token.split('.').filter(|part| !part.is_empty()).count() >= 3;
        if fits && signed && !before.is_some_and(word) {
            found.push(Found { start, end: start + form.prefix.len() + body, kind: form.kind });
        }
    }
    found
}

/// Finds `password = "q8Zr..."`: the value, if it looks random.
fn assigned(text: &str) -> Vec<Found> {
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for name in NAMES {
        for (at, _) in lower.match_indices(name) {
            let behind = at + name.len();
            let Some(rest) = text.get(behind..) else { continue };
            let value =
                rest.trim_start_matches(|character: char| word(character) || "\"' \t".contains(character));
            let Some(value) = value.strip_prefix([':', '=']) else { continue };
            let value = value.trim_start_matches(['=', '>', ' ', '\t', '"', '\'', '`']);
            let start = text.len() - value.len();
            let length: usize = value
                .chars()
                .take_while(|character| !character.is_whitespace() && !"\"'`,;&<>()[]{}".contains(*character))
                .map(char::len_utf8)
                .sum();
            // On the same line, and close to the name.
            let between = text.get(behind..start).unwrap_or_default();
            if between.len() > 40 || between.contains('\n') {
                continue;
            }
            if value.get(..length).is_some_and(looks_random) {
                found.push(Found { start, end: start + length, kind: "a password or key" });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let found: Vec<_> =
            find(text).iter().map(|found| (text.get(found.start..found.end).unwrap(), found.kind)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn well_known_forms() {
        check("x AKIAIOSFODNN7EXAMPLE y", &[("AKIAIOSFODNN7EXAMPLE", "an AWS access key")]);
        check("AKIAIOSFODNN7EXAMPLEX", &[]);
        check("XAKIAIOSFODNN7EXAMPLE", &[]);
        let token = format!("ghp_{}", "a1B2".repeat(9));
        check(&format!("https://x:{token}@github.com"), &[(&token, "a GitHub token")]);
        check("sk-learn sk-ip ghp_short eyJhbGciOiJIUzI1NiJ9 AIza", &[]);
        let signed = format!("eyJ{0}.eyJ{0}.{0}", "a1B2c3D4e5F6g7H8");
        check(&format!("Bearer {signed}"), &[(&signed, "a signed token")]);
    }

    #[test]
    fn private_keys() {
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----";
        check(&format!("a\n{key}\nb"), &[(key, "a private key")]);
        check("-----BEGIN PRIVATE KEY-----\nabc", &[("-----BEGIN PRIVATE KEY-----\nabc", "a private key")]);
        check("-----BEGIN CERTIFICATE-----\nabc", &[]);
    }

    #[test]
    fn assigned_values() {
        check("password = \"q8Zr2Lk0Xv9TtBn4\"", &[("q8Zr2Lk0Xv9TtBn4", "a password or key")]);
        check("DB_PASSWORD=q8Zr2Lk0Xv9TtBn4 make", &[("q8Zr2Lk0Xv9TtBn4", "a password or key")]);
        check("\"api_key\": \"q8Zr2Lk0Xv9TtBn4\",", &[("q8Zr2Lk0Xv9TtBn4", "a password or key")]);
        check("password = getpass.getpass()", &[]);
        check("const token = tokens[index1234567890];", &[]);
        check("password:\nq8Zr2Lk0Xv9TtBn4", &[]);
        check("secret=$SECRET_VALUE_0123456789", &[]);
        check("é password=é", &[]);
    }
}
