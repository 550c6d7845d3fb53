//! Opens one name in a directory, never through a link.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use portcullis_decision::request::PathKind;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::handle::{Directory, Handle};
use crate::system::kernel::status::Status;

/// How often a name is looked at again that becomes another file between two calls.
const TRIES: usize = 64;

/// Flags of every opening: no link is followed, and nothing blocks or becomes the terminal of this process.
const CAREFULLY: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens one name in a directory, without following a link. `path` is its canonical path.
pub(crate) fn open_name(directory: impl AsFd, name: &OsStr, path: &Path) -> Result<Handle, Errno> {
    let parent = Arc::new(rustix::io::fcntl_dupfd_cloexec(directory, 0)?);
    handle(&parent, name, path)
}

/// Opens one name in `parent`. `path` is its canonical path.
pub(super) fn handle(parent: &Arc<OwnedFd>, name: &OsStr, path: &Path) -> Result<Handle, Errno> {
    for _ in 0..TRIES {
        let status = Status::of_name(parent, name)?;
        let file = match held(parent, name, &status) {
            Err(Errno::STALE) => continue,
            file => file?,
        };
        return Ok(Handle {
            parent: Arc::clone(parent),
            name: name.to_owned(),
            path: path.to_owned(),
            status,
            file,
        });
    }
    Err(Errno::AGAIN)
}

/// Opens a file for reading that may be read without an effect; fails with `ESTALE` if the name is another file.
fn held(parent: &OwnedFd, name: &OsStr, status: &Status) -> Result<Option<OwnedFd>, Errno> {
    let flags = match status.kind {
        PathKind::File => OFlags::RDONLY,
        PathKind::Directory => OFlags::RDONLY | OFlags::DIRECTORY,
        PathKind::Symlink | PathKind::Other | PathKind::Missing => return Ok(None),
    };
    match again(parent, name, status, flags) {
        Ok(file) => Ok(Some(file)),
        // It can still be judged; reading it fails.
        Err(Errno::ACCESS | Errno::PERM) => Ok(None),
        Err(errno) => Err(errno),
    }
}

impl Directory {
    /// Opens one name in a directory, without following a link. `path` is its canonical path.
    pub(crate) fn open(directory: impl AsFd, name: &OsStr, path: &Path) -> Result<Self, Errno> {
        let flags = CAREFULLY | OFlags::RDONLY | OFlags::DIRECTORY;
        let file = rustix::fs::openat(directory, name, flags, Mode::empty())?;
        Ok(Self { file, path: path.to_owned() })
    }
}

/// Opens the file of this name if it is the file with this metadata; otherwise fails with `ESTALE`.
pub(super) fn again(parent: &OwnedFd, name: &OsStr, known: &Status, flags: OFlags) -> Result<OwnedFd, Errno> {
    let file = match rustix::fs::openat(parent, name, CAREFULLY | flags, Mode::empty()) {
        // It was removed, or became a link, a directory, or a socket or pipe without a reader.
        Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::ISDIR | Errno::NXIO | Errno::OPNOTSUPP) => {
            return Err(Errno::STALE);
        }
        file => file?,
    };
    if Status::read(&file)?.is_same_file(known) { Ok(file) } else { Err(Errno::STALE) }
}
