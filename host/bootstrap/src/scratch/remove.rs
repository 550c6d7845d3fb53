//! Removes the files of a session, however deep, and whatever permissions its commands removed.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, OFlags, chmod, openat, renameat, statat, unlinkat};

use crate::process_env::random_name;

const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const LISTED: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Removes the directories in `parent` with their content. Links are not followed.
///
/// Subdirectories are moved up into `parent` before they are emptied, so that their depth is not limited by the stack
/// or the number of open files.
pub(super) fn remove_directories(parent: &Path) -> io::Result<()> {
    let parent = rustix::fs::open(parent, PLACE, Mode::empty())?;
    let inside = entries(&parent)?.into_iter();
    let mut waiting: Vec<CString> =
        inside.filter_map(|(name, directory)| directory.then_some(name)).collect();
    // A random prefix, to avoid the names of an interrupted removal.
    let prefix = random_name().map_err(io::Error::other)?;
    let mut moved = 0_u64;
    while let Some(name) = waiting.pop() {
        let place = made_usable(&parent, &name)?;
        for (inner, is_directory) in entries(&place)? {
            if is_directory {
                let flat = CString::new(format!("{prefix}-{moved}"))?;
                moved += 1;
                // Moving a directory changes its `..` entry, which needs write permission on it.
                drop(made_usable(&place, &inner)?);
                renameat(&place, &inner, &parent, &flat)?;
                waiting.push(flat);
            } else {
                unlinkat(&place, &inner, AtFlags::empty())?;
            }
        }
        unlinkat(&parent, &name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

/// Returns the names in a directory, and whether each is a directory.
fn entries(place: &OwnedFd) -> io::Result<Vec<(CString, bool)>> {
    let mut names = Vec::new();
    for entry in Dir::new(openat(place, ".", LISTED, Mode::empty())?)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push((entry.file_name().to_owned(), is_directory(place, &entry)?));
        }
    }
    Ok(names)
}

/// Opens a directory and gives its owner all permissions.
fn made_usable(parent: &OwnedFd, name: &CStr) -> io::Result<OwnedFd> {
    let place = openat(parent, name, PLACE, Mode::empty())?;
    // Through the file descriptor, because the name may lead elsewhere by now.
    chmod(format!("/proc/self/fd/{}", place.as_raw_fd()), Mode::RWXU)?;
    Ok(place)
}

fn is_directory(place: &OwnedFd, entry: &DirEntry) -> io::Result<bool> {
    let mut known = entry.file_type();
    if known == FileType::Unknown {
        let status = statat(place, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
        known = FileType::from_raw_mode(status.st_mode);
    }
    Ok(known == FileType::Directory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn locked_directories_go_and_links_are_not_followed() {
        let (parent, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let top = parent.path().join("tmp");
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::fs::write(top.join("a/b/file"), "goes").unwrap();
        std::fs::write(other.path().join("file"), "stays").unwrap();
        std::os::unix::fs::symlink(other.path(), top.join("a/link")).unwrap();
        std::fs::set_permissions(top.join("a"), std::fs::Permissions::from_mode(0o000)).unwrap();
        remove_directories(parent.path()).unwrap();
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
        assert!(other.path().join("file").is_file());
    }

    #[test]
    fn a_tree_deeper_than_files_can_be_open_goes() {
        let parent = tempfile::tempdir().unwrap();
        let mut place = rustix::fs::open(parent.path(), PLACE, Mode::empty()).unwrap();
        for _ in 0..5_000 {
            rustix::fs::mkdirat(&place, "d", Mode::RWXU).unwrap();
            place = openat(&place, "d", PLACE, Mode::empty()).unwrap();
        }
        remove_directories(parent.path()).unwrap();
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
