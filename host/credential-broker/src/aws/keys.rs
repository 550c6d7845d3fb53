//! The keys of AWS: those of the user, and the placeholders that commands have in their place.

use std::time::SystemTime;

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::super::placeholders::PREFIX;

/// The shortest and the longest id of a key, in bytes (IAM API reference, `AccessKey`).
const ID_LENGTHS: std::ops::RangeInclusive<usize> = 16..=128;
/// The shortest secret key. A shorter one would be found by chance in what servers answer.
const SECRET_MIN: usize = 16;
/// The longest secret key or token, in bytes.
const TEXT_MAX: usize = 8 * 1024;
/// The length of `2026-01-31T12:00:00`.
const TIME_LENGTH: usize = 19;

/// The keys of a user of AWS. They are never shown.
#[derive(Debug)]
pub struct AwsKeys {
    id: SecretString,
    secret: SecretString,
    token: Option<SecretString>,
    /// When they expire, as `2026-01-31T12:00:00` in UTC.
    expires: Option<String>,
}

impl AwsKeys {
    /// Makes keys of an id, a secret key, and the token of temporary keys.
    ///
    /// # Errors
    /// When they cannot be keys; the error says why and contains nothing of them.
    pub fn new(
        id: &str,
        secret: Zeroizing<String>,
        token: Option<Zeroizing<String>>,
    ) -> Result<Self, &'static str> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if !ID_LENGTHS.contains(&id.len()) || !id.bytes().all(is_word) {
            return Err("the id of the access key is none");
        }
        let fits = |text: &str| {
            (SECRET_MIN..=TEXT_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if !fits(&secret) {
            return Err("the secret access key is none");
        }
        if !token.as_ref().is_none_or(|token| fits(token)) {
            return Err("the session token is none");
        }
        let kept = |text: &str| SecretString::from(text);
        let token = token.map(|token| kept(&token));
        Ok(Self { id: kept(id), secret: kept(&secret), token, expires: None })
    }

    /// Sets when the keys expire: a time in UTC such as `2026-01-31T12:00:00Z`. Other texts are not counted.
    #[must_use]
    pub fn expiring(self, at: &str) -> Self {
        let is_utc = at.ends_with('Z') || at.ends_with("+00:00");
        let expires = at.get(..TIME_LENGTH).filter(|_| is_utc).map(|time| time.replace(' ', "T"));
        Self { expires, ..self }
    }

    /// Returns true if they no longer hold at a time.
    pub(crate) fn have_expired(&self, now: SystemTime) -> bool {
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now =
            portcullis_text::utc(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)).replace(' ', "T");
        self.expires.as_ref().is_some_and(|expires| *expires <= now)
    }

    /// Returns every text that must not be inside. The id is no secret, but with it nobody uses a signature that a
    /// server repeats.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        [self.id(), self.secret()].into_iter().chain(self.token())
    }

    pub(super) fn id(&self) -> &str {
        self.id.expose_secret()
    }

    pub(super) fn secret(&self) -> &str {
        self.secret.expose_secret()
    }

    pub(super) fn token(&self) -> Option<&str> {
        self.token.as_ref().map(ExposeSecret::expose_secret)
    }
}

/// What commands have in the place of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsPlaceholders {
    /// The id of the access key.
    pub id: String,
    /// The secret access key.
    pub secret: String,
    /// The session token. Commands send it also if the user's keys have none.
    pub token: String,
}

impl AwsPlaceholders {
    /// Returns the placeholders that belong to the placeholder of a credential.
    #[must_use]
    pub fn of(placeholder: &str) -> Self {
        let derived = |name: &str| {
            let digest = Sha256::digest(format!("{name} {placeholder}"));
            digest.iter().take(20).fold(PREFIX.to_owned(), |text, byte| format!("{text}{byte:02x}"))
        };
        Self { id: placeholder.to_owned(), secret: derived("secret"), token: derived("token") }
    }

    /// Returns all of them.
    #[must_use]
    pub fn into_texts(self) -> [String; 3] {
        [self.id, self.secret, self.token]
    }
}
