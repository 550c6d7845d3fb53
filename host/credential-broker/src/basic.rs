//! The value of `Authorization: Basic` (RFC 7617).

use base64::Engine as _;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

/// Some clients leave out the padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Returns user name and password.
pub(super) fn decode(value: &str) -> Option<(String, String)> {
    let text = String::from_utf8(LENIENT.decode(value).ok()?).ok()?;
    text.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()))
}

/// Returns the value for a user name and a password.
pub(super) fn encode(user: &str, password: &str) -> Zeroizing<String> {
    let both = Zeroizing::new(format!("{user}:{password}"));
    Zeroizing::new(STANDARD.encode(both.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_with_and_without_padding() {
        assert_eq!(*encode("a", "b:c"), "YTpiOmM=");
        for value in ["YTpiOmM=", "YTpiOmM"] {
            assert_eq!(decode(value), Some(("a".to_owned(), "b:c".to_owned())));
        }
        assert_eq!(decode("YQ=="), None, "no colon");
        assert_eq!(decode("*"), None);
    }
}
