//! The signature itself.

use hmac::{Hmac, Mac};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::names::{ALGORITHM, REQUEST};
use super::scope::Scope;

/// Returns the hash of a text, in hexadecimal.
pub(super) fn hash(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// Returns the signature of a canonical request, in hexadecimal. `date` is `X-Amz-Date`.
pub(super) fn signature(secret: &str, date: &str, scope: &Scope, canonical: &str) -> String {
    let text = format!("{ALGORITHM}\n{date}\n{}\n{}", scope.text(), hash(canonical.as_bytes()));
    let first = Zeroizing::new(format!("AWS4{secret}"));
    let parts = [&scope.day, &scope.region, &scope.service, REQUEST];
    let mut key = Zeroizing::new(first.as_bytes().to_vec());
    for part in parts {
        key = keyed(&key, part.as_bytes());
    }
    hexadecimal(&keyed(&key, text.as_bytes()))
}

fn keyed(key: &[u8], text: &[u8]) -> Zeroizing<Vec<u8>> {
    #[expect(clippy::expect_used, reason = "HMAC takes a key of every length (RFC 2104)")]
    let mut made = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    made.update(text);
    Zeroizing::new(made.finalize().into_bytes().to_vec())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}
