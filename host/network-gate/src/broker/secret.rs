//! Credentials in memory, and their removal from what servers answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use memchr::memmem;
use secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

use super::placeholders::in_base64;

/// The longest credential, in bytes; servers take no longer headers.
const SECRET_MAX: usize = 16 * 1024;
/// The shortest credential. A shorter one would be found by chance in what servers answer.
const SECRET_MIN: usize = 6;
/// The shortest time between two readings of one credential.
const READ_AGAIN: Duration = Duration::from_secs(10);

/// A credential. It is never shown, and its memory is overwritten when it is dropped.
#[derive(Debug)]
pub struct Secret(SecretString);

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
            _ => Ok(Self(SecretString::from(text))),
        }
    }

    pub(super) fn expose(&self) -> &str {
        self.0.expose_secret()
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

/// The credentials that were read, used until a server refuses them.
pub(crate) struct Loaded {
    secrets: Box<dyn Secrets>,
    known: Mutex<HashMap<String, Known>>,
    /// All that were ever read, with their names: a server can repeat one that it no longer takes.
    ever: Mutex<Vec<(String, Arc<Secret>)>>,
    /// Held while one is read, so that a source is asked once and not by every connection.
    reading: Mutex<()>,
}

/// A credential in use.
struct Known {
    secret: Arc<Secret>,
    read_at: Instant,
}

impl Loaded {
    pub(super) fn new(secrets: Box<dyn Secrets>) -> Self {
        Self { secrets, known: Mutex::default(), ever: Mutex::default(), reading: Mutex::default() }
    }

    /// Returns a credential, and reads it first if need be. May block.
    pub(crate) fn secret(&self, name: &str) -> Result<Arc<Secret>, String> {
        if let Some(known) = self.known(name) {
            return Ok(known);
        }
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = self.known(name) {
            return Ok(known);
        }
        let read = Arc::new(self.secrets.read(name)?);
        let mut ever = self.ever.lock().unwrap_or_else(PoisonError::into_inner);
        if !ever.iter().any(|(known, secret)| known == name && secret.expose() == read.expose()) {
            ever.push((name.to_owned(), Arc::clone(&read)));
        }
        drop(ever);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.to_owned(), Known { secret: Arc::clone(&read), read_at: Instant::now() });
        Ok(read)
    }

    /// Returns a masker of all credentials with these names that were ever read.
    pub(crate) fn masker<'a>(&self, names: impl Iterator<Item = &'a str> + Clone) -> Masker {
        let ever = self.ever.lock().unwrap_or_else(PoisonError::into_inner);
        let is_meant = |name: &str| names.clone().any(|meant| meant == name);
        let chosen = ever.iter().filter(|(name, _)| is_meant(name));
        Masker::new(chosen.map(|(_, secret)| &**secret))
    }

    fn known(&self, name: &str) -> Option<Arc<Secret>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(name).map(|known| Arc::clone(&known.secret))
    }

    /// Has the credential read again for the next request, because a server refused it at this time.
    pub(crate) fn refused(&self, name: &str, now: Instant) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // A command can provoke refusals; its source must not be asked each time.
        if known.get(name).is_some_and(|known| now.duration_since(known.read_at) >= READ_AGAIN) {
            known.remove(name);
        }
    }
}

/// Replaces a credential in a stream with asterisks, in the forms in which servers repeat it.
pub(crate) struct Masker {
    forms: Vec<Zeroizing<Vec<u8>>>,
    /// The end of what came so far, if it may be the beginning of the credential.
    held: Zeroizing<Vec<u8>>,
}

impl Masker {
    /// Makes a masker of credentials.
    fn new<'a>(secrets: impl Iterator<Item = &'a Secret>) -> Self {
        let mut forms: Vec<Zeroizing<Vec<u8>>> = Vec::new();
        for secret in secrets {
            let text = secret.expose();
            let hex = |format: fn(u8) -> String| -> Vec<u8> {
                text.bytes().flat_map(|byte| format(byte).into_bytes()).collect()
            };
            let json = text.replace('\\', "\\\\").replace('"', "\\\"");
            let plain = [
                text.as_bytes().to_vec(),
                text.to_ascii_lowercase().into_bytes(),
                text.to_ascii_uppercase().into_bytes(),
                percent_encoded(text, |byte| format!("%{byte:02X}")),
                percent_encoded(text, |byte| format!("%{byte:02x}")),
                json.replace('/', "\\/").into_bytes(),
                json.into_bytes(),
                in_html(text).into_bytes(),
                hex(|byte| format!("{byte:02x}")),
                hex(|byte| format!("{byte:02X}")),
            ];
            for form in plain.into_iter().chain(in_base64(text.as_bytes())) {
                let form = Zeroizing::new(form);
                if !forms.contains(&form) {
                    forms.push(form);
                }
            }
        }
        Self { forms, held: Zeroizing::default() }
    }

    /// Returns the next piece of the stream. It can be shorter or longer than what came in, the whole stream cannot.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut bytes = Zeroizing::new(std::mem::take(&mut *self.held));
        bytes.extend_from_slice(piece);
        self.mask(&mut bytes);
        let held = self.beginning_at_end_of(&bytes);
        let passed = bytes.len() - held;
        *self.held = bytes.get(passed..).unwrap_or_default().to_vec();
        bytes.get(..passed).unwrap_or_default().to_vec()
    }

    /// Returns the rest of the stream.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut *self.held)
    }

    /// Masks a whole text; returns true if there was something to mask.
    pub(crate) fn mask(&self, bytes: &mut [u8]) -> bool {
        let found: Vec<(usize, usize)> = self
            .forms
            .iter()
            .flat_map(|form| memmem::find_iter(bytes, form.as_slice()).map(|at| (at, at + form.len())))
            .collect();
        for (from, to) in &found {
            if let Some(part) = bytes.get_mut(*from..*to) {
                part.fill(b'*');
            }
        }
        !found.is_empty()
    }

    /// Returns the length of the longest end of `bytes` with which a form begins.
    fn beginning_at_end_of(&self, bytes: &[u8]) -> usize {
        let of_form = |form: &Zeroizing<Vec<u8>>| {
            let most = form.len().saturating_sub(1).min(bytes.len());
            let begins = |length: &usize| bytes.get(bytes.len() - length..) == form.get(..*length);
            (1..=most).rev().find(begins).unwrap_or_default()
        };
        self.forms.iter().map(of_form).max().unwrap_or_default()
    }
}

fn percent_encoded(text: &str, escaped: fn(u8) -> String) -> Vec<u8> {
    let one = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => vec![byte],
        other => escaped(other).into_bytes(),
    };
    text.bytes().flat_map(one).collect()
}

/// Returns a text as pages of errors show it.
fn in_html(text: &str) -> String {
    let replaced = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    replaced.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    const TEXT: &str = "s3cr3t+v4lue/Xyz";

    fn secret(text: &str) -> Secret {
        Secret::new(Zeroizing::new(text.to_owned())).unwrap()
    }

    fn masked(text: &str, size: usize) -> String {
        let secret = secret(TEXT);
        let mut masker = Masker::new(std::iter::once(&secret));
        let mut out: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| masker.push(piece)).collect();
        out.extend(masker.finish());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_credential_is_masked_however_the_stream_is_cut() {
        let text = format!("a s3cr3 {TEXT}{TEXT} s3 s3cr3t+ end s3cr3t+v4lue/Xy");
        let wanted = text.replace(TEXT, "****************");
        for size in 1..text.len() {
            assert_eq!(masked(&text, size), wanted, "pieces of {size}");
        }
    }

    #[test]
    fn its_usual_encodings_are_masked_too() {
        let encoded = STANDARD.encode(format!("user:{TEXT}"));
        let forms = [
            encoded.as_str(),
            "s3cr3t%2Bv4lue%2FXyz",
            "s3cr3t%2bv4lue%2fXyz",
            "7333637233742b76346c75652f58797a",
            "s3cr3t+v4lue\\/Xyz",
            "S3CR3T+V4LUE/XYZ",
            "s3cr3t+v4lue/xyz",
        ];
        for text in forms {
            let out = masked(text, 7);
            assert!(out.len() == text.len() && out.contains("**********"), "{text}: {out}");
        }
    }

    #[test]
    fn what_only_begins_like_it_is_not_held_for_long() {
        let secret = secret(TEXT);
        let mut masker = Masker::new(std::iter::once(&secret));
        assert_eq!(masker.push(b"data: s3c"), b"data: ");
        assert_eq!(masker.push(b"ond"), b"s3cond");
    }

    #[test]
    fn texts_that_are_no_credential_are_refused_and_none_is_shown() {
        for text in
            ["", "  \n", "abc", "one\ntwo long", "with\ttab here", "caf\u{e9}-caf\u{e9}", &"x".repeat(20_000)]
        {
            assert!(Secret::new(Zeroizing::new(text.to_owned())).is_err(), "{text:?}");
        }
        assert_eq!(secret("  abcdef\n").expose(), "abcdef");
        assert!(!format!("{:?}", secret(TEXT)).contains("s3cr3t"));
    }

    struct Counted(std::sync::atomic::AtomicUsize);

    impl Secrets for Counted {
        fn read(&self, name: &str) -> Result<Secret, String> {
            let count = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(secret(&format!("{name}-{count}-abcdef")))
        }
    }

    #[test]
    fn a_source_is_read_once_until_a_server_refuses() {
        let loaded = Loaded::new(Box::new(Counted(0.into())));
        assert!(loaded.known("a").is_none());
        assert_eq!(loaded.secret("a").unwrap().expose(), "a-0-abcdef");
        assert_eq!(loaded.secret("a").unwrap().expose(), "a-0-abcdef");
        loaded.refused("a", Instant::now());
        assert_eq!(loaded.secret("a").unwrap().expose(), "a-0-abcdef", "too early to ask again");
        loaded.refused("a", Instant::now() + READ_AGAIN);
        assert_eq!(loaded.secret("a").unwrap().expose(), "a-1-abcdef");
        let mut text = *b"a-0-abcdef a-1-abcdef";
        assert!(loaded.masker(["a"].into_iter()).mask(&mut text), "both are masked");
        assert_eq!(&text, b"********** **********");
        assert!(!loaded.masker(["b"].into_iter()).mask(&mut b"a-0-abcdef".to_vec()));
    }
}
