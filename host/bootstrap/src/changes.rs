//! The records of changes that sessions keep in the state directory, for `portcullis undo`.
//!
//! A session makes its record when it begins and removes it at the end if nothing was changed. Records that are older
//! than the settings say are removed when a session begins.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use portcullis_changes::{Bounds, SessionChanges, files, is_empty, make};
use portcullis_decision::path_text;
use portcullis_settings_format::Undo;
use serde::{Deserialize, Serialize};

/// The directory below the state directory.
const CHANGES: &str = "changes";
/// What the session was, beside its record.
const ABOUT: &str = "about.json";
const STORE: &str = "store";
const KEEP_DAYS: u64 = 14;
const DAY: Duration = Duration::from_hours(24);

/// A session that has a record, as `changes --list` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    /// The session.
    pub id: String,
    /// The project.
    #[serde(with = "path_text::as_text")]
    pub project: PathBuf,
    /// The program that the session served.
    pub agent: String,
}

/// The record of one session.
#[derive(Debug, Clone)]
pub struct StoredChanges {
    /// What the session was.
    pub about: About,
    /// The directory of the record.
    pub store: PathBuf,
    /// When it was last changed.
    pub changed: SystemTime,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether the session runs.
    pub is_running: bool,
    directory: PathBuf,
}

/// The record of a session that runs here. Dropping it removes it if it is empty.
#[derive(Debug)]
pub(crate) struct OwnChanges {
    directory: PathBuf,
    project: PathBuf,
    /// Locked as long as the session runs.
    _running: File,
}

impl OwnChanges {
    /// Makes the record of a session, for commands that act as the owner of the project if the host is root.
    pub(crate) fn make(state: &Path, about: &About, undo: Undo) -> anyhow::Result<Self> {
        let directory = state.join(CHANGES).join(&about.id);
        let made = || {
            let store = directory.join(STORE);
            DirBuilder::new().recursive(true).mode(0o700).create(&store)?;
            let text = serde_json::to_vec(about).map_err(io::Error::other)?;
            std::fs::write(directory.join(ABOUT), text)?;
            let running = File::open(directory.join(ABOUT))?;
            running.lock_shared()?;
            make(&store, bounds(undo))?;
            if rustix::process::geteuid().is_root() {
                let owner = about.project.metadata()?;
                for path in files(&store).iter().chain([&store]) {
                    chown(path, Some(owner.uid()), Some(owner.gid()))?;
                }
            }
            Ok::<_, io::Error>(running)
        };
        let running = made().with_context(|| {
            format!(
                "making the record of changes in `{}`, which `portcullis undo` needs",
                directory.display()
            )
        })?;
        Ok(Self { directory, project: about.project.clone(), _running: running })
    }

    /// Returns the directory of the record.
    #[cfg(target_os = "linux")]
    pub(crate) fn store_path(&self) -> PathBuf {
        self.directory.join(STORE)
    }

    /// Removes it, though it has records, because they have no effect.
    #[cfg(target_os = "linux")]
    pub(crate) fn discard(self) {
        // What stays is removed with the old ones.
        let _removed = std::fs::remove_dir_all(&self.directory);
    }

    /// Opens it for the host.
    pub(crate) fn open(&self) -> anyhow::Result<SessionChanges> {
        SessionChanges::open(&self.directory.join(STORE)).context("opening the record of changes")
    }

    /// Returns what `portcullis undo` sees of it.
    #[cfg(target_os = "linux")]
    pub(crate) fn stored(&self) -> Option<StoredChanges> {
        stored(&self.directory)
    }

    /// Opens its directory for brokers.
    pub(crate) fn store(&self) -> io::Result<File> {
        File::open(self.directory.join(STORE))
    }

    /// Opens the project for brokers.
    pub(crate) fn project(&self) -> io::Result<File> {
        File::open(&self.project)
    }
}

impl Drop for OwnChanges {
    fn drop(&mut self) {
        if is_empty(&self.directory.join(STORE)).unwrap_or(false) {
            // What stays is removed with the old ones.
            let _removed = std::fs::remove_dir_all(&self.directory);
        }
    }
}

fn bounds(undo: Undo) -> Bounds {
    let usual = Bounds::default();
    let bytes = |mib: Option<u64>, usual| mib.map_or(usual, |mib| mib.saturating_mul(1 << 20));
    Bounds { file: bytes(undo.max_file_mib, usual.file), session: bytes(undo.max_session_mib, usual.session) }
}

/// Returns the records, the newest first; those of one project if it is given.
///
/// # Errors
/// If the directory of records cannot be read.
pub fn stored_changes(state: &Path, project: Option<&Path>) -> anyhow::Result<Vec<StoredChanges>> {
    let top = state.join(CHANGES);
    let entries = match std::fs::read_dir(&top) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("reading `{}`", top.display()))?,
    };
    let mut found: Vec<StoredChanges> = entries
        .filter_map(|entry| stored(&entry.ok()?.path()))
        .filter(|stored| project.is_none_or(|project| stored.about.project == project))
        .collect();
    found.sort_by_key(|stored| std::cmp::Reverse(stored.changed));
    Ok(found)
}

/// Returns the record in a directory; `None` if it is none, or is empty.
fn stored(directory: &Path) -> Option<StoredChanges> {
    let about = serde_json::from_slice(&std::fs::read(directory.join(ABOUT)).ok()?).ok()?;
    let store = directory.join(STORE);
    if is_empty(&store).ok()? {
        return None;
    }
    let is_running = File::open(directory.join(ABOUT)).is_ok_and(|file| file.try_lock().is_err());
    let changed = store.join("journal").metadata().ok()?.modified().ok()?;
    let kept = std::fs::read_dir(store.join("content")).into_iter().flatten().flatten();
    let kept: u64 = kept.filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum();
    let bytes = kept.saturating_add(store.join("journal").metadata().ok()?.len());
    Some(StoredChanges { about, store, changed, bytes, is_running, directory: directory.to_owned() })
}

/// Removes a record.
///
/// # Errors
/// If it cannot be removed, or its session runs.
pub fn remove_changes(stored: &StoredChanges) -> anyhow::Result<()> {
    anyhow::ensure!(!stored.is_running, "session `{}` is running; end it first", stored.about.id);
    std::fs::remove_dir_all(&stored.directory)
        .with_context(|| format!("removing `{}`", stored.directory.display()))
}

/// Removes the records that are older than the settings say.
pub(crate) fn remove_old(state: &Path, undo: Undo) {
    let keep = DAY.saturating_mul(u32::try_from(undo.keep_days.unwrap_or(KEEP_DAYS)).unwrap_or(u32::MAX));
    let Ok(entries) = std::fs::read_dir(state.join(CHANGES)) else { return };
    for directory in entries.flatten().map(|entry| entry.path()) {
        let journal = directory.join(STORE).join("journal");
        let changed = journal.metadata().and_then(|file| file.modified());
        let is_old = |changed: SystemTime| changed.elapsed().is_ok_and(|age| age > keep);
        let is_unused = || File::open(directory.join(ABOUT)).is_ok_and(|file| file.try_lock().is_ok());
        // A directory that cannot be removed is tried again by the next session.
        if changed.is_ok_and(is_old) && is_unused() {
            let _removed = std::fs::remove_dir_all(&directory);
        }
    }
}
