//! This machine, as formats name it.

use std::sync::OnceLock;

use portcullis_text::utc;

/// The name of this program in all formats.
pub(super) const PROGRAM: &str = "portcullis";
/// Its version.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the name of this machine.
pub(super) fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| {
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        if name.is_empty() { "localhost".to_owned() } else { name }
    })
}

/// Writes a time of RFC 3339 in UTC, with milliseconds.
pub(super) fn rfc3339(at_ms: u64) -> String {
    format!("{}.{:03}Z", utc(at_ms).replacen(' ', "T", 1), at_ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_rfc_3339() {
        assert_eq!(rfc3339(1_709_251_199_007), "2024-02-29T23:59:59.007Z");
    }
}
