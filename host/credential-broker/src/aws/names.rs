//! Names that requests to AWS have.

use std::time::SystemTime;

/// The algorithm that the gate knows.
pub(super) const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The last word of a scope.
pub(super) const REQUEST: &str = "aws4_request";
/// The header with the time of the signature.
pub(super) const DATE: &str = "x-amz-date";
/// The header with the token of temporary keys.
pub(crate) const TOKEN: &str = "x-amz-security-token";
/// The header with the hash of the body.
pub(super) const PAYLOAD: &str = "x-amz-content-sha256";
/// How headers of AWS begin. All of them are signed.
pub(super) const OWN_HEADERS: &str = "x-amz-";

/// Returns a time as `X-Amz-Date` has it, such as `20150830T123600Z`.
pub(super) fn amz_date(at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let text = portcullis_text::utc(u64::try_from(since.as_millis()).unwrap_or_default());
    let letter = |letter: char| match letter {
        '-' | ':' => None,
        ' ' => Some('T'),
        other => Some(other),
    };
    text.chars().filter_map(letter).chain(['Z']).collect()
}
