//! Credentials in memory.

use std::time::SystemTime;

use secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

use super::aws::AwsKeys;

/// The longest credential, in bytes; servers take no longer headers.
const SECRET_MAX: usize = 16 * 1024;
/// The shortest credential. A shorter one would be found by chance in what servers answer.
const SECRET_MIN: usize = 6;

/// A credential. It is never shown, and its memory is overwritten when it is dropped.
#[derive(Debug)]
pub struct Secret(Content);

#[derive(Debug)]
enum Content {
    /// A text that stands in requests.
    Text(SecretString),
    /// Keys with which requests are signed.
    Aws(AwsKeys),
}

impl From<AwsKeys> for Secret {
    fn from(keys: AwsKeys) -> Self {
        Self(Content::Aws(keys))
    }
}

impl Secret {
    /// Makes a credential of the text that its source gave. White space around it is cut off.
    ///
    /// # Errors
    /// When it cannot be a credential; the error says why and contains nothing of it.
    pub fn new(text: Zeroizing<String>) -> Result<Self, &'static str> {
        let text = text.trim();
        match text.len() {
            0 => Err("it is empty"),
            length if length < SECRET_MIN => Err("it is too short for a credential"),
            length if length > SECRET_MAX => Err("it is too long for a credential"),
            _ if !text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') => {
                Err("it has several lines or characters that no credential has")
            }
            _ => Ok(Self(Content::Text(SecretString::from(text)))),
        }
    }

    /// Returns the text that stands in requests.
    pub fn text(&self) -> Option<&str> {
        match &self.0 {
            Content::Text(text) => Some(text.expose_secret()),
            Content::Aws(_) => None,
        }
    }

    /// Returns the keys with which requests are signed.
    pub fn aws(&self) -> Option<&AwsKeys> {
        match &self.0 {
            Content::Text(_) => None,
            Content::Aws(keys) => Some(keys),
        }
    }

    /// Returns every text that must not be inside.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.text().into_iter().chain(self.aws().into_iter().flat_map(AwsKeys::texts))
    }

    /// Returns true if it says that it no longer holds at a time.
    pub(crate) fn has_expired(&self, now: SystemTime) -> bool {
        self.aws().is_some_and(|keys| keys.have_expired(now))
    }
}

/// Reads credentials from their sources. It is called on threads that may block.
pub trait Secrets: Send + Sync {
    /// Reads the credential with this name.
    ///
    /// # Errors
    /// When it cannot be read; the error says why in one sentence, and contains nothing of it.
    fn read(&self, name: &str) -> Result<Secret, String>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_no_credential_are_refused_and_none_is_shown() {
        let secret = |text: &str| Secret::new(Zeroizing::new(text.to_owned()));
        for text in
            ["", "  \n", "abc", "one\ntwo long", "with\ttab here", "caf\u{e9}-caf\u{e9}", &"x".repeat(20_000)]
        {
            assert!(secret(text).is_err(), "{text:?}");
        }
        assert_eq!(secret("  abcdef\n").unwrap().text(), Some("abcdef"));
        assert!(!format!("{:?}", secret("s3cr3t+v4lue/Xyz").unwrap()).contains("s3cr3t"));
    }
}
