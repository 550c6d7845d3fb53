//! System calls that are the same on every system.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use rustix::fs::Mode;
use rustix::io::Errno;

/// Returns the target of a symbolic link; `None` if the name is not a link.
pub(crate) fn link_target(directory: impl AsFd, name: &OsStr) -> Result<Option<PathBuf>, Errno> {
    match rustix::fs::readlinkat(directory, name, Vec::new()) {
        Ok(target) => Ok(Some(PathBuf::from(OsString::from_vec(target.into_bytes())))),
        Err(Errno::INVAL) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Returns the mode with these bits.
pub(crate) fn mode(bits: u32) -> Mode {
    // The size of the number differs among systems. Permission bits always fit; otherwise, nothing is permitted.
    fn sized<T: TryFrom<u32> + Default>(bits: u32) -> T {
        T::try_from(bits).unwrap_or_default()
    }
    Mode::from_raw_mode(sized(bits & 0o7777))
}

/// Returns true if a file is on a read-only mount.
pub(crate) fn is_on_read_only_mount(file: impl AsFd) -> Result<bool, Errno> {
    Ok(rustix::fs::fstatvfs(file)?.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}
