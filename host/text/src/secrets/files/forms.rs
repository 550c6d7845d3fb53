//! The forms of known tokens.

/// The form of a token.
pub(super) struct Form {
    pub(super) prefix: &'static str,
    /// The least number of characters after the prefix.
    pub(super) shortest: usize,
    pub(super) rest: Rest,
    pub(super) before: Neighbour,
    pub(super) kind: &'static str,
}

/// The characters of a token after its prefix.
#[derive(Clone, Copy)]
pub(super) enum Rest {
    /// Letters, digits, `_` and `-`.
    Word,
    /// Letters and digits.
    Plain,
    /// Capitals, small letters and digits, of each at least one.
    Mixed,
    /// Exactly so many capitals and digits, of each at least one.
    Capitals,
}

/// What may stand directly in front of a token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Neighbour {
    /// Anything but a letter or a digit: the prefix occurs in words.
    Sign,
    /// Anything but a long random text.
    Any,
}

use Neighbour::{Any, Sign};
use Rest::{Capitals, Mixed, Plain, Word};

const fn form(
    prefix: &'static str,
    shortest: usize,
    rest: Rest,
    before: Neighbour,
    kind: &'static str,
) -> Form {
    Form { prefix, shortest, rest, before, kind }
}

/// All known forms.
pub(super) const FORMS: [Form; 24] = [
    form("AGE-SECRET-KEY-", 50, Word, Any, "an age key"),
    form("AIza", 35, Word, Sign, "a Google API key"),
    form("AKIA", 16, Word, Sign, "an AWS access key"),
    form("ASIA", 16, Capitals, Sign, "an AWS access key"),
    form("crates-io-", 30, Word, Any, "a crates.io token"),
    form("dckr_pat_", 20, Word, Any, "a Docker token"),
    form("dop_v1_", 60, Plain, Any, "a DigitalOcean token"),
    form("ghp_", 36, Word, Any, "a GitHub token"),
    form("gho_", 36, Word, Any, "a GitHub token"),
    form("ghr_", 36, Word, Any, "a GitHub token"),
    form("ghs_", 36, Word, Any, "a GitHub token"),
    form("ghu_", 36, Word, Any, "a GitHub token"),
    form("github_pat_", 40, Word, Any, "a GitHub token"),
    form("glpat-", 20, Word, Any, "a GitLab token"),
    form("hf_", 34, Plain, Sign, "a Hugging Face token"),
    form("npm_", 36, Plain, Sign, "an npm token"),
    form("pypi-AgE", 57, Word, Any, "a PyPI token"),
    form("rk_live_", 20, Plain, Any, "a Stripe key"),
    form("sk-", 48, Mixed, Sign, "an OpenAI key"),
    form("sk-ant-", 40, Word, Sign, "an Anthropic key"),
    form("sk-proj-", 40, Word, Sign, "an OpenAI key"),
    form("sk_live_", 20, Plain, Any, "a Stripe key"),
    form("xoxb-", 20, Word, Any, "a Slack token"),
    form("xoxp-", 20, Word, Any, "a Slack token"),
];

impl Rest {
    /// Returns true if at least `shortest` characters of a token begin a text.
    pub(super) fn is_long_enough(self, text: &[u8], shortest: usize) -> bool {
        let belongs = |byte: &&u8| match self {
            Self::Word => is_word(byte),
            Self::Plain | Self::Mixed => byte.is_ascii_alphanumeric(),
            Self::Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
        };
        let token = text.get(..shortest).filter(|token| token.iter().all(|byte| belongs(&byte)));
        token.is_some_and(|token| {
            let has = |kind: fn(&u8) -> bool| token.iter().any(kind);
            let has_both = has(u8::is_ascii_uppercase) && has(u8::is_ascii_digit);
            match self {
                Self::Word | Self::Plain => true,
                Self::Mixed => has_both && has(u8::is_ascii_lowercase),
                Self::Capitals => has_both && !text.get(shortest).is_some_and(u8::is_ascii_alphanumeric),
            }
        })
    }
}

/// Returns true for a letter, a digit, `_` and `-`.
pub(super) fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}
