//! Rights on files.

use serde::{Deserialize, Serialize};

/// A right on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileRight {
    /// See it, list it, read it.
    Read,
    /// Create, change, rename, remove, link, change metadata.
    Write,
    /// Execute it.
    Execute,
}

/// A set of rights on files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FileRights {
    /// See it, list it, read it.
    pub read: bool,
    /// Create, change, rename, remove, link, change metadata.
    pub write: bool,
    /// Execute it.
    pub execute: bool,
}

impl FileRights {
    /// Reading alone.
    pub const READ: Self = Self { read: true, write: false, execute: false };
    /// Writing alone.
    pub const WRITE: Self = Self { read: false, write: true, execute: false };
    /// Reading and writing.
    pub const READ_WRITE: Self = Self { read: true, write: true, execute: false };
    /// Everything.
    pub const ALL: Self = Self { read: true, write: true, execute: true };

    /// Whether `right` is in the set.
    #[must_use]
    pub fn contains(self, right: FileRight) -> bool {
        match right {
            FileRight::Read => self.read,
            FileRight::Write => self.write,
            FileRight::Execute => self.execute,
        }
    }
}
