//! The path of an open file as the kernel reports it, on systems that have such a call.

use std::os::fd::AsFd;
use std::path::PathBuf;

use rustix::io::Errno;

/// Returns the current path of an open file, in which macOS' names of the user's data are `/Users` and the like.
///
/// Paths are at most 1,024 bytes long; the call fails for longer ones. See fcntl(2) on `F_GETPATH`.
#[cfg(target_os = "macos")]
pub(super) fn path_of(file: impl AsFd) -> Result<Option<PathBuf>, Errno> {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    let path = rustix::fs::getpath(file)?.into_bytes();
    if path.first() == Some(&b'/') { Ok(Some(OsString::from_vec(path).into())) } else { Err(Errno::NOENT) }
}

/// Returns `None`: the walk alone says where a file is.
#[cfg(not(target_os = "macos"))]
#[expect(clippy::unnecessary_wraps, reason = "it fails on macOS")]
pub(super) fn path_of(_: impl AsFd) -> Result<Option<PathBuf>, Errno> {
    Ok(None)
}
