//! Signatures of AWS, version 4 (AWS Signature Version 4): commands sign with placeholders, and the gate signs anew
//! with the user's keys.
//!
//! The signature of the command is checked first. The gate signs only what the command has signed, and nothing that
//! was changed on the way.

mod canonical;
mod keys;
mod scope;
mod signature;
mod signed;
mod verified;

pub use keys::{AwsKeys, AwsPlaceholders};
pub use scope::AwsLimits;

pub(crate) use signed::Signed;
pub(crate) use verified::Verified;

use std::time::SystemTime;

/// The algorithm that the gate knows.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The last word of a scope.
const REQUEST: &str = "aws4_request";
/// The header with the time of the signature.
const DATE: &str = "x-amz-date";
/// The header with the token of temporary keys.
pub(super) const TOKEN: &str = "x-amz-security-token";
/// The header with the hash of the body.
const PAYLOAD: &str = "x-amz-content-sha256";
/// How headers of AWS begin. All of them are signed.
const OWN_HEADERS: &str = "x-amz-";

/// Returns a time as `X-Amz-Date` has it, such as `20150830T123600Z`.
fn amz_date(at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let text = portcullis_text::utc(u64::try_from(since.as_millis()).unwrap_or_default());
    let letter = |letter: char| match letter {
        '-' | ':' => None,
        ' ' => Some('T'),
        other => Some(other),
    };
    text.chars().filter_map(letter).chain(['Z']).collect()
}

#[cfg(test)]
mod tests;
