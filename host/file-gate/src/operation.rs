//! Parameters and results of file operations.

use std::ffi::OsString;
use std::path::PathBuf;

use portcullis_decision::request::PathKind;

/// The purpose for which a path is located.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Use an existing file or directory: read or list it. Every link is followed.
    Existing,
    /// Write or edit: the last name may be missing, and directories above it as well.
    ForWriting,
}

/// Limits for one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The size limit of a file, in bytes.
    pub bytes: u64,
    /// The most names in a directory listing.
    pub entries: usize,
}

impl Default for Limits {
    /// Returns 64 MiB and 100,000 names.
    ///
    /// These are enough for every file that is useful to a model, images included, and for every directory. Both fit
    /// into memory many times.
    fn default() -> Self {
        Self { bytes: 64 << 20, entries: 100_000 }
    }
}

/// The content of a file, and the state in which it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    /// The content.
    pub bytes: Vec<u8>,
    /// The state in which it was read.
    pub identity: Identity,
}

/// The state of a file, for noticing that it was changed or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub(crate) inode: Inode,
    pub(crate) size: u64,
    pub(crate) modified: Time,
    pub(crate) changed: Time,
}

/// The names of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// The names that were found, as canonical paths.
    pub paths: Vec<PathBuf>,
    /// True if these are all names of the file.
    pub is_complete: bool,
    /// The number of its names.
    pub count: u32,
    /// The state of the file during the search.
    pub identity: Identity,
}

/// The identity of a file, independent of its names and content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Inode {
    pub(crate) device: (u32, u32),
    pub(crate) number: u64,
}

impl Inode {
    /// Returns the major and minor number of the device, and the inode number.
    #[must_use]
    pub fn numbers(self) -> ((u32, u32), u64) {
        (self.device, self.number)
    }
}

/// Seconds and nanoseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
}

/// Options for writing a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// The state that the file must still have; `None` accepts any state.
    pub expect: Option<Identity>,
    /// The treatment of a file with several names.
    pub links: Links,
}

/// The treatment of a file that has further hard links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Links {
    /// Refuse to write: the decision was about only one of the names.
    #[default]
    Refuse,
    /// Write in place, which affects all names; the decision took the links into account.
    Allow,
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The state of the file afterwards.
    pub identity: Identity,
    /// The size in bytes.
    pub size: u64,
    /// True if the file is new.
    pub created: bool,
}

/// The names in a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The names that the caller's predicate accepted, in the order of the directory.
    pub entries: Vec<Entry>,
    /// True if there were more names than the limit.
    pub truncated: bool,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: OsString,
    /// The kind of the file; links are not followed.
    pub kind: PathKind,
}
