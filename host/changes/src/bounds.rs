//! How much a session keeps.

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Of one file, in bytes.
    pub file: u64,
    /// Of all files of a session, in bytes.
    pub session: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { file: 64 << 20, session: 2 << 30 }
    }
}
