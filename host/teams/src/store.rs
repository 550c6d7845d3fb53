//! A machine's directory of a team: the accepted documents, and the packs by their digests.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use portcullis_packs::{COMPONENT_MAX, is_digest};

use crate::held::Held;
use crate::update::PackBytes;

/// Name of the file with the accepted documents.
pub const HELD: &str = "held.json";
/// Name of the file with the result of the last check.
const CHECK: &str = "check.txt";
/// Name of the file that an update locks.
const LOCK: &str = ".lock";
/// Directory of the packs.
const PACKS: &str = "packs";
/// Largest file of documents, in bytes: 64 roots, a timestamp and a bundle.
const HELD_MAX: u64 = 16 << 20;

/// A machine's directory of a team.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

/// The reason why the directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] portcullis_packs::StoreError),
    /// The directory cannot be made.
    #[error("making `{}`", .0.display())]
    Directory(PathBuf, #[source] std::io::Error),
    /// The documents are damaged.
    #[error("`{}` is damaged; `portcullis team update` writes it again", .0.display())]
    Damaged(PathBuf, #[source] serde_json::Error),
    /// A pack has other bytes than the bundle says.
    #[error("`{}` has other bytes than the team's bundle says; `portcullis team update` fetches it again", .0.display())]
    Changed(PathBuf),
}

impl Store {
    /// Returns the store in a directory, which need not exist.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Returns the path of the accepted documents.
    #[must_use]
    pub fn held_file(&self) -> PathBuf {
        self.root.join(HELD)
    }

    /// Reads the accepted documents, without checking them. Returns `None` if there are none.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn held(&self) -> Result<Option<Held>, StoreError> {
        let path = self.held_file();
        let bytes = match portcullis_packs::read(&path, HELD_MAX) {
            Err(portcullis_packs::StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            bytes => bytes?,
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|source| StoreError::Damaged(path, source))
    }

    /// Waits until no other process updates this directory, and locks it.
    ///
    /// # Errors
    /// When the directory cannot be made or locked.
    pub fn lock(&self) -> Result<fs::File, StoreError> {
        fs::create_dir_all(&self.root).map_err(|source| StoreError::Directory(self.root.clone(), source))?;
        let path = self.root.join(LOCK);
        let locked = fs::File::create(&path).and_then(|file| file.lock().map(|()| file));
        locked.map_err(|source| StoreError::Directory(path, source))
    }

    /// Writes new packs, and then the documents in one step. Removes packs that the documents do not name.
    ///
    /// # Errors
    /// When a file cannot be written. The documents then stay as they were.
    pub fn write(&self, held: &Held, packs: &[PackBytes], used: &[&str]) -> Result<(), StoreError> {
        let folder = self.root.join(PACKS);
        fs::create_dir_all(&folder).map_err(|source| StoreError::Directory(folder.clone(), source))?;
        for (digest, bytes) in packs {
            portcullis_packs::write(&self.pack_file(digest), bytes)?;
        }
        let text =
            serde_json::to_vec(held).map_err(|source| StoreError::Damaged(self.held_file(), source))?;
        portcullis_packs::write(&self.held_file(), &text)?;
        self.sweep(&folder, used);
        Ok(())
    }

    /// Returns the path of a pack.
    #[must_use]
    pub fn pack_file(&self, digest: &str) -> PathBuf {
        // A digest in another form would be a path of its own.
        let name = if is_digest(digest) { digest.trim_start_matches("sha256:") } else { "no-digest" };
        self.root.join(PACKS).join(name).with_extension("wasm")
    }

    /// Reads a pack and checks its digest.
    ///
    /// # Errors
    /// When it is missing or has other bytes.
    pub fn pack(&self, digest: &str) -> Result<Vec<u8>, StoreError> {
        let path = self.pack_file(digest);
        let bytes = portcullis_packs::read(&path, COMPONENT_MAX)?;
        if format!("sha256:{}", portcullis_packs::digest(&bytes)) != digest {
            return Err(StoreError::Changed(path));
        }
        Ok(bytes)
    }

    /// Records why the last check failed, or that it did not.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn note_check(&self, problem: Option<&str>) -> Result<(), StoreError> {
        fs::create_dir_all(&self.root).map_err(|source| StoreError::Directory(self.root.clone(), source))?;
        Ok(portcullis_packs::write(&self.root.join(CHECK), problem.unwrap_or_default().as_bytes())?)
    }

    /// Returns when the last check was made, and why it failed. `None` if there was none.
    #[must_use]
    pub fn last_check(&self) -> Option<(std::time::SystemTime, Option<String>)> {
        let file = self.root.join(CHECK);
        let at = fs::metadata(&file).and_then(|about| about.modified()).ok()?;
        let text = portcullis_packs::read_text(&file, 64 << 10).ok()?;
        Some((at, (!text.is_empty()).then_some(text)))
    }

    /// Removes everything.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn clear(&self) -> Result<(), StoreError> {
        match fs::remove_dir_all(&self.root) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(StoreError::Directory(self.root.clone(), source))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn sweep(&self, folder: &Path, used: &[&str]) {
        let used: Vec<PathBuf> = used.iter().map(|digest| self.pack_file(digest)).collect();
        // A file that stays does no harm.
        for file in fs::read_dir(folder).into_iter().flatten().flatten() {
            if !used.contains(&file.path()) {
                drop(fs::remove_file(file.path()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_are_read_by_digest_and_old_ones_go() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(&directory.path().join("team"));
        assert_eq!(store.held().unwrap(), None);
        let named = |bytes: &[u8]| (format!("sha256:{}", portcullis_packs::digest(bytes)), bytes.to_vec());
        let (one, two) = (named(b"one"), named(b"two"));
        let held = Held { bundle_floor: 3, ..Held::default() };
        store.write(&held, std::slice::from_ref(&one), &[&one.0]).unwrap();
        assert_eq!(store.held().unwrap(), Some(held.clone()));
        assert_eq!(store.pack(&one.0).unwrap(), b"one");
        store.write(&held, std::slice::from_ref(&two), &[&two.0]).unwrap();
        assert!(store.pack(&one.0).is_err() && store.pack(&two.0).is_ok());
        fs::write(store.pack_file(&two.0), b"tWo").unwrap();
        assert!(matches!(store.pack(&two.0), Err(StoreError::Changed(_))));
        assert!(store.pack("sha256:../../held").is_err());
        fs::write(store.held_file(), "{").unwrap();
        assert!(matches!(store.held(), Err(StoreError::Damaged(..))));
        store.clear().unwrap();
        assert!(store.held().unwrap().is_none() && store.clear().is_ok());
    }

    #[test]
    fn the_last_check_is_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        assert!(store.last_check().is_none());
        store.note_check(Some("no route")).unwrap();
        assert_eq!(store.last_check().unwrap().1.as_deref(), Some("no route"));
        store.note_check(None).unwrap();
        assert_eq!(store.last_check().unwrap().1, None);
    }
}
