//! Detects credentials in the content of files: only forms that nothing else has, since files have many random texts.

/// The form of a token.
struct Form {
    prefix: &'static [u8],
    /// The least number of characters after the prefix.
    shortest: usize,
    kind: &'static str,
}

const fn form(prefix: &'static str, shortest: usize, kind: &'static str) -> Form {
    Form { prefix: prefix.as_bytes(), shortest, kind }
}

const FORMS: [Form; 22] = [
    form("AGE-SECRET-KEY-", 50, "an age key"),
    form("AIza", 35, "a Google API key"),
    form("AKIA", 16, "an AWS access key"),
    form("crates-io-", 30, "a crates.io token"),
    form("dckr_pat_", 20, "a Docker token"),
    form("dop_v1_", 60, "a DigitalOcean token"),
    form("ghp_", 36, "a GitHub token"),
    form("gho_", 36, "a GitHub token"),
    form("ghr_", 36, "a GitHub token"),
    form("ghs_", 36, "a GitHub token"),
    form("ghu_", 36, "a GitHub token"),
    form("github_pat_", 40, "a GitHub token"),
    form("glpat-", 20, "a GitLab token"),
    form("hf_", 30, "a Hugging Face token"),
    form("npm_", 36, "an npm token"),
    form("pypi-", 60, "a PyPI token"),
    form("rk_live_", 20, "a Stripe key"),
    form("sk-ant-", 40, "an Anthropic key"),
    form("sk-proj-", 40, "an OpenAI key"),
    form("sk_live_", 20, "a Stripe key"),
    form("xoxb-", 20, "a Slack token"),
    form("xoxp-", 20, "a Slack token"),
];

const KEY_BEGIN: &[u8] = b"-----BEGIN ";
const KEY_KIND: &[u8] = b"PRIVATE KEY-----";
/// The most bytes between the beginning and the kind of a key.
const KEY_WORDS: usize = 32;

/// How many bytes of a text have to be seen together to find a credential in it.
pub const FILE_SECRET_SPAN: usize = 128;

/// Returns what to call the first credential in a part of a file.
#[must_use]
pub fn secret_in_file(text: &[u8]) -> Option<&'static str> {
    let starts_word =
        |at: usize| at.checked_sub(1).and_then(|before| text.get(before)).is_none_or(|&byte| !is_word(byte));
    text.iter().enumerate().find_map(|(at, byte)| {
        let rest = text.get(at..).unwrap_or_default();
        if rest.starts_with(KEY_BEGIN) {
            let words = rest.get(KEY_BEGIN.len()..).unwrap_or_default();
            let words = words.get(..KEY_WORDS.min(words.len())).unwrap_or_default();
            let line = words.split(|&byte| byte == b'\n').next().unwrap_or_default();
            return line.windows(KEY_KIND.len()).any(|part| part == KEY_KIND).then_some("a private key");
        }
        let is_one = |form: &&Form| {
            form.prefix.first() == Some(byte)
                && rest.starts_with(form.prefix)
                && starts_word(at)
                && rest.iter().skip(form.prefix.len()).take_while(|&&byte| is_word(byte)).count()
                    >= form.shortest
        };
        FORMS.iter().find(is_one).map(|form| form.kind)
    })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_tokens_and_private_keys_are_found() {
        let token = format!("TOKEN=ghp_{}\n", "aB3".repeat(12));
        assert_eq!(secret_in_file(token.as_bytes()), Some("a GitHub token"));
        for kind in ["", "RSA ", "OPENSSH ", "ENCRYPTED "] {
            let key = format!("x\n-----BEGIN {kind}PRIVATE KEY-----\nMII");
            assert_eq!(secret_in_file(key.as_bytes()), Some("a private key"));
        }
    }

    #[test]
    fn other_texts_are_not() {
        for text in [
            "-----BEGIN PUBLIC KEY-----",
            "-----BEGIN CERTIFICATE-----\nPRIVATE KEY-----",
            "ghp_short",
            "xghp_aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3",
            "sk-learn and scikit-learn",
            "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
        ] {
            assert_eq!(secret_in_file(text.as_bytes()), None, "{text}");
        }
    }
}
