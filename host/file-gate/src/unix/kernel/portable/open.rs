//! Opens one name in a directory, never through a link.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use portcullis_decision::request::PathKind;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{Handle, Status};

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

/// Opens the directory `name`, without following a link.
pub(super) fn directory(parent: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(parent, name, CAREFULLY | OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
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
    if is_same(&Status::of(&file)?, known) { Ok(file) } else { Err(Errno::STALE) }
}

/// Returns true if two states are of the same file.
pub(super) fn is_same(now: &Status, then: &Status) -> bool {
    now.identity.inode == then.identity.inode && now.kind == then.kind
}
