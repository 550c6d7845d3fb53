//! The metadata of files.

use portcullis_decision::request::{FileFacts, PathKind};
use rustix::fs::FileType;

use crate::operation::Identity;

/// The metadata of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub(crate) kind: PathKind,
    pub(crate) mode: u32,
    pub(crate) links: u32,
    pub(crate) owner: u32,
    pub(crate) group: u32,
    /// True if a mount begins here. Kernels before 5.8 do not report it, which counts as true. The portable gate does
    /// not know it: mounts on single files exist on Linux only.
    pub(crate) is_mount: bool,
    pub(crate) identity: Identity,
}

impl Status {
    /// Returns the facts for policies.
    pub(crate) fn facts(&self) -> FileFacts {
        FileFacts {
            size: u32::try_from(self.identity.size).unwrap_or(u32::MAX),
            links: self.links,
            owner: self.owner,
            mode: self.mode,
        }
    }
}

/// Returns the kind of a file in the terms of requests.
pub(crate) fn kind(file_type: FileType) -> PathKind {
    match file_type {
        FileType::RegularFile => PathKind::File,
        FileType::Directory => PathKind::Directory,
        FileType::Symlink => PathKind::Symlink,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => PathKind::Other,
    }
}
