//! How much a session keeps.

#[cfg(target_os = "linux")]
/// The part of a session's bytes that its journal may have, beside its contents.
const JOURNAL_PART: u64 = 8;
#[cfg(target_os = "linux")]
/// The bytes that every journal may have.
const JOURNAL_LEAST: u64 = 64 << 10;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Of one file, in bytes.
    pub file: u64,
    /// Of all files of a session, in bytes.
    pub session: u64,
}

#[cfg(target_os = "linux")]
impl Bounds {
    /// Returns how long the journal may become before changes are no longer recorded, in bytes.
    pub(crate) fn journal(self) -> u64 {
        (self.session / JOURNAL_PART).max(JOURNAL_LEAST)
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self { file: 64 << 20, session: 2 << 30 }
    }
}
