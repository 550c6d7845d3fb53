//! What operations are told and what they return.

use std::ffi::OsString;
use std::path::PathBuf;

use portcullis_decision::request::PathKind;

/// What a path is located for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To use what is there: read it, list it. Every link is followed.
    Existing,
    /// To write or edit: the last name may be missing, and so may directories above it.
    ForWriting,
}

/// Bounds on what one operation takes from the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest file, in bytes.
    pub bytes: u64,
    /// Longest directory listing, in names.
    pub entries: usize,
}

impl Default for Limits {
    /// 64 MiB hold every file that makes sense to a model, images included, and 100,000 names every
    /// directory; both fit into memory many times.
    fn default() -> Self {
        Self { bytes: 64 << 20, entries: 100_000 }
    }
}

/// The content of a file and which state of the file it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    /// The content.
    pub bytes: Vec<u8>,
    /// The state in which it was read.
    pub identity: Identity,
}

/// One state of one file, to notice that it was changed or replaced.
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
    /// Those that were found, as canonical paths.
    pub paths: Vec<PathBuf>,
    /// Whether these are all.
    pub is_complete: bool,
    /// How many it has.
    pub count: u32,
    /// The state of the file when they were looked for.
    pub identity: Identity,
}

/// Which file, whatever its names and content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Inode {
    pub(crate) device: (u32, u32),
    pub(crate) number: u64,
}

impl Inode {
    /// Returns major and minor number of the device, and the file's number on it.
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

/// How a file is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// The state in which the file must still be; none: whatever it contains.
    pub expect: Option<Identity>,
    /// What is done with a file of several names.
    pub links: Links,
}

/// What is done when the file to be written has hard links elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Links {
    /// It is refused: only one of the names was judged.
    #[default]
    Refuse,
    /// It is written in place, so all names see it; the caller's decision knew of the links.
    Allow,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The state of the file afterwards.
    pub identity: Identity,
    /// Its size in bytes.
    pub size: u64,
    /// Whether the file is new.
    pub created: bool,
}

/// The names in a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The names that the caller's predicate let pass, in the order of the directory.
    pub entries: Vec<Entry>,
    /// Whether there were more than the limit permits.
    pub truncated: bool,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: OsString,
    /// What it names; links are not followed.
    pub kind: PathKind,
}
