//! A private directory and its files: written by this user, complete, and inaccessible to other users.
//!
//! A file is synced to disk before it gets its name, and it never changes afterwards. The files are not
//! signed: a process that can write to the directory already has this user's rights and could replace the
//! host itself. So sandboxed commands and tools must never be able to write to this directory.

use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
/// A directory of this user that no other user can access.
#[derive(Debug)]
pub(crate) struct OwnDirectory {
    descriptor: OwnedFd,
}

/// A file that only this user could have written.
#[derive(Debug)]
pub(crate) struct OwnFile {
    file: File,
}

impl OwnFile {
    /// Returns a path to this exact file, valid while this value lives.
    pub(crate) fn path(&self) -> PathBuf {
        let all = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
        Path::new(all).join(self.file.as_raw_fd().to_string())
    }

    /// Returns the content, unless it is longer than `limit` bytes.
    pub(crate) fn content(self, limit: u64) -> Option<Vec<u8>> {
        let length = self.file.metadata().ok()?.len();
        let mut bytes = Vec::with_capacity(usize::try_from(length).ok()?.min(64 << 20));
        self.file.take(limit.saturating_add(1)).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= limit).then_some(bytes)
    }
}

/// The reason why a directory is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OwnDirectoryError {
    /// The directory could not be created or opened.
    #[error("opening it")]
    Open(#[from] std::io::Error),
    /// Other users can access the directory.
    #[error("it must belong to you alone; make it so with `chmod 700` and `chown`, or remove it")]
    NotOwn,
}

impl OwnDirectory {
    /// Opens a directory, creating it if it is missing.
    ///
    /// A directory that belongs to another user, or that others can access, is refused and not repaired: its
    /// content may already come from another user.
    pub(crate) fn open(path: &Path) -> Result<Self, OwnDirectoryError> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = rustix::fs::open(path, flags, Mode::empty()).map_err(std::io::Error::from)?;
        let status = rustix::fs::fstat(&descriptor).map_err(std::io::Error::from)?;
        if !is_own(&status) {
            return Err(OwnDirectoryError::NotOwn);
        }
        Ok(Self { descriptor })
    }

    /// Opens a file. Returns `None` if there is no file that can be trusted.
    pub(crate) fn file(&self, name: &str) -> Option<OwnFile> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.descriptor, name, flags, Mode::empty()).ok()?;
        let status = rustix::fs::fstat(&file).ok()?;
        let is_file = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
        let is_out_of_reach = is_file && is_own(&status) && status.st_nlink == 1;
        is_out_of_reach.then(|| OwnFile { file: file.into() })
    }

    /// Writes a file atomically, so that it is complete or absent even after a power failure.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> std::io::Result<()> {
        let temporary = format!(".{name}.{}", std::process::id());
        // Left by an earlier process with the same pid.
        drop(self.remove(&temporary));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let mut file = File::from(rustix::fs::openat(&self.descriptor, &*temporary, flags, mode)?);
        let written = file.write_all(content).and_then(|()| file.sync_data());
        let placed = written
            .and_then(|()| Ok(rustix::fs::renameat(&self.descriptor, &*temporary, &self.descriptor, name)?));
        if placed.is_err() {
            drop(self.remove(&temporary));
        }
        placed
    }

    pub(crate) fn remove(&self, name: &str) -> std::io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty())?)
    }

    /// Returns the names of the files, sorted by modification time, oldest first.
    pub(crate) fn names(&self) -> std::io::Result<Vec<String>> {
        let mut found = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.descriptor)? {
            let entry = entry?;
            let status = rustix::fs::statat(&self.descriptor, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
            let (Ok(status), Ok(name)) = (status, entry.file_name().to_str()) else { continue };
            if FileType::from_raw_mode(status.st_mode) == FileType::RegularFile {
                found.push(((status.st_mtime, status.st_mtime_nsec), name.to_owned()));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(_, name)| name).collect())
    }
}

/// Returns true if the file belongs to this user and others have no permissions on it.
fn is_own(status: &Stat) -> bool {
    status.st_uid == rustix::process::geteuid().as_raw() && status.st_mode & 0o077 == 0
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const LIMIT: u64 = 1 << 20;

    fn fresh() -> (tempfile::TempDir, OwnDirectory) {
        let place = tempfile::tempdir().unwrap();
        let directory = OwnDirectory::open(&place.path().join("a/b")).unwrap();
        (place, directory)
    }

    fn read(directory: &OwnDirectory, name: &str) -> Option<Vec<u8>> {
        directory.file(name)?.content(LIMIT)
    }

    #[test]
    fn what_was_written_is_read() {
        let (place, directory) = fresh();
        directory.write("one", b"first").unwrap();
        directory.write("one", b"second").unwrap();
        assert_eq!(read(&directory, "one").unwrap(), b"second");
        assert_eq!(directory.names().unwrap(), ["one"]);
        let mode = fs::metadata(place.path().join("a/b/one")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::metadata(place.path().join("a/b")).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_file_is_opened_by_what_it_is() {
        let (place, directory) = fresh();
        directory.write("one", b"first").unwrap();
        let file = directory.file("one").unwrap();
        fs::rename(place.path().join("a/b/one"), place.path().join("a/b/other")).unwrap();
        directory.write("one", b"second").unwrap();
        assert_eq!(fs::read(file.path()).unwrap(), b"first");
        assert!(directory.file("one").unwrap().content(5).is_none(), "larger than asked for");
        assert_eq!(file.content(5).unwrap(), b"first");
    }

    #[test]
    fn reachable_files_are_not_there() {
        let (place, directory) = fresh();
        let path = place.path().join("a/b");
        directory.write("one", b"content").unwrap();
        symlink("one", path.join("link")).unwrap();
        assert_eq!(read(&directory, "link"), None);
        fs::hard_link(path.join("one"), place.path().join("elsewhere")).unwrap();
        assert_eq!(read(&directory, "one"), None);
        fs::remove_file(place.path().join("elsewhere")).unwrap();
        assert!(read(&directory, "one").is_some(), "control");
        fs::set_permissions(path.join("one"), Permissions::from_mode(0o620)).unwrap();
        assert_eq!(read(&directory, "one"), None);
    }

    #[test]
    fn reachable_directories_are_refused() {
        let (place, _directory) = fresh();
        let path = place.path().join("a/b");
        symlink("b", place.path().join("a/link")).unwrap();
        assert!(matches!(OwnDirectory::open(&place.path().join("a/link")), Err(OwnDirectoryError::Open(_))));
        for mode in [0o750, 0o701, 0o722] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert!(matches!(OwnDirectory::open(&path), Err(OwnDirectoryError::NotOwn)), "{mode:o}");
        }
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
            assert!(matches!(OwnDirectory::open(&path), Err(OwnDirectoryError::NotOwn)));
        }
    }
}
