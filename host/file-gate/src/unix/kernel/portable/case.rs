//! Directories in which case does not count.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::io::Errno;

use crate::system::kernel::status::Status;

/// Returns true if case does not count in the names of a directory, or if this cannot be found out.
pub(crate) fn ignores_case(directory: &Path) -> bool {
    let inode = |path: &Path| rustix::fs::lstat(path).map(|stat| Status::from(&stat).identity.inode);
    for path in directory.ancestors() {
        let Some(name) = path.file_name() else { break };
        let other: Vec<u8> = name.as_bytes().iter().map(swap_case).collect();
        if other == name.as_bytes() {
            continue;
        }
        return match (inode(path), inode(&path.with_file_name(OsStr::from_bytes(&other)))) {
            (Ok(one), Ok(two)) => one == two,
            (_, Err(Errno::NOENT)) => false,
            _ => true,
        };
    }
    !cfg!(target_os = "linux")
}

fn swap_case(byte: &u8) -> u8 {
    if byte.is_ascii_lowercase() { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() }
}
