//! The session's own directories, which commands and tools see as `/tmp`, as `/var/tmp` and as the directory for
//! sockets of the user's programs.

#[cfg(target_os = "linux")]
mod remove;
#[cfg(not(target_os = "linux"))]
mod remove {
    //! Without commands, the remains are easy to remove.
    pub(super) fn remove_directories(parent: &std::path::Path) -> std::io::Result<()> {
        std::fs::remove_dir_all(parent.join("tmp"))
    }
}

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The directory that commands see as `/tmp`.
const TEMP: &str = "tmp";
/// The directory that commands see as `/var/tmp`.
pub const VAR_TMP: &str = "var-tmp";
/// The directory that commands see as `XDG_RUNTIME_DIR`.
pub const RUNTIME: &str = "run";

/// A session's directory, removed with its content on drop.
///
/// Its lock is held as long as the session lives, so that the next session can recognize and remove the directory of a
/// killed host.
#[derive(Debug)]
pub struct Scratch {
    directory: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Creates a directory below `parent`, and removes those of hosts that are gone.
    pub fn make(parent: &Path, name: &str) -> io::Result<Self> {
        private_directory().recursive(true).create(parent)?;
        // The sandbox opens it without following links.
        let parent = parent.canonicalize()?;
        sweep(&parent)?;
        let directory = parent.join(name);
        let lock = alone(&parent, || {
            private_directory().create(&directory)?;
            let lock = open_lock(&directory, true)?;
            lock.try_lock()?;
            Ok(lock)
        })?;
        for name in [TEMP, VAR_TMP, RUNTIME] {
            private_directory().create(directory.join(name))?;
        }
        Ok(Self { directory, _lock: lock })
    }

    /// Gives the directories that commands see to the owner of `place`.
    pub fn give_to_owner_of(&self, place: &Path) -> io::Result<()> {
        let metadata = place.metadata()?;
        let give =
            |name| std::os::unix::fs::chown(self.own(name), Some(metadata.uid()), Some(metadata.gid()));
        [TEMP, VAR_TMP, RUNTIME].into_iter().try_for_each(give)
    }

    /// Returns the session's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the directory that commands see as `/tmp`.
    pub fn temp(&self) -> PathBuf {
        self.own(TEMP)
    }

    /// Returns one of the directories that commands see.
    pub fn own(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.directory);
    }
}

/// Returns true if the host of the session `name` below `parent` is running. False for an invalid name.
pub fn is_alive(parent: &Path, name: &str) -> bool {
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let lock = is_name.then(|| open_lock(&parent.join(name), false).ok()).flatten();
    // A shared lock, so that concurrent checks do not take each other for the session.
    lock.is_some_and(|lock| matches!(lock.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock)))
}

/// Removes the directories of sessions whose host was killed.
pub fn sweep(parent: &Path) -> io::Result<()> {
    for entry in parent.read_dir()? {
        let directory = entry?.path();
        // Without a lock file it is half removed; the next sweep will remove it.
        let claim = || Ok(open_lock(&directory, false).ok().filter(|lock| lock.try_lock().is_ok()));
        if let Some(_abandoned) = alone(parent, claim)? {
            remove(&directory);
        }
    }
    Ok(())
}

/// Runs `act` under a lock on `parent`: a directory whose lock file is created but not yet locked would look abandoned.
fn alone<T>(parent: &Path, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let turn = File::open(parent)?;
    turn.lock()?;
    act()
}

fn open_lock(directory: &Path, create: bool) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(create)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(directory.join("lock"))
}

/// Removes a directory, whatever permissions commands took away in it.
pub(crate) fn remove_tree(directory: &Path) -> io::Result<()> {
    remove::remove_directories(directory)?;
    std::fs::remove_dir_all(directory)
}

/// Removes a directory. Its lock file goes last, so that the rest stays for the next sweep if removal fails.
fn remove(directory: &Path) {
    if remove::remove_directories(directory).is_ok() {
        let _left_for_the_next_sweep = std::fs::remove_dir_all(directory);
    }
}

fn private_directory() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_cleans_up_after_itself_and_after_the_dead() {
        let parent = tempfile::tempdir().unwrap();
        let alive = Scratch::make(parent.path(), "alive").unwrap();
        let dead = parent.path().join("dead");
        std::fs::create_dir_all(dead.join("tmp/deep")).unwrap();
        std::fs::write(dead.join("lock"), "").unwrap();

        let next = Scratch::make(parent.path(), "next").unwrap();
        assert!(!dead.exists());
        assert!(alive.temp().is_dir());
        std::fs::write(next.temp().join("file"), "x").unwrap();
        drop(next);
        assert!(!parent.path().join("next").exists());
    }
}
