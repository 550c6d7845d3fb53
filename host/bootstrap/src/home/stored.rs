//! The private homes in the state directory, for the verbs that show and remove them.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::mount_points;
use super::place::{HOME, HOMES, PROJECT, lock, place};
use crate::process_env::random_name;
use crate::scratch;

/// What begins the name of a directory that is being removed.
const REMOVED: &str = ".removed-";

/// A private home on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredHome {
    /// Its directory.
    pub directory: PathBuf,
    /// The project, as it was last opened; empty if that is unknown.
    pub project: PathBuf,
    /// Its size.
    pub size: Size,
    /// Whether a session uses it.
    pub is_in_use: bool,
}

/// The size of a tree on the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes, as far as they could be counted.
    pub bytes: u64,
    /// Whether a part could not be looked at.
    pub is_at_least: bool,
}

/// The result of removing a private home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleared {
    /// It is gone.
    Removed,
    /// A session uses it.
    InUse,
}

/// Returns the private home of `project`, or of every project.
///
/// # Errors
/// If the state directory cannot be read.
pub fn stored(state: &Path, project: Option<&Path>) -> anyhow::Result<Vec<StoredHome>> {
    let homes = state.join(HOMES);
    let directories = match (project, homes.read_dir()) {
        (Some(project), _) => vec![place(state, project)],
        (None, Err(error)) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        (None, entries) => {
            let entries = entries.with_context(|| format!("reading `{}`", homes.display()))?;
            let mut directories: Vec<PathBuf> =
                entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
            directories.sort();
            directories
        }
    };
    let found = directories.into_iter().filter(|directory| directory.symlink_metadata().is_ok());
    Ok(found.map(|directory| look(&directory)).collect())
}

fn look(directory: &Path) -> StoredHome {
    let project = std::fs::read(directory.join(PROJECT)).map(OsString::from_vec).unwrap_or_default();
    let in_use = File::open(directory.join("lock"));
    let is_in_use =
        in_use.is_ok_and(|lock| matches!(lock.try_lock(), Err(std::fs::TryLockError::WouldBlock)));
    StoredHome { directory: directory.to_owned(), project: project.into(), size: size(directory), is_in_use }
}

/// Removes a private home that no session uses.
///
/// # Errors
/// If it cannot be removed.
pub fn clear(directory: &Path) -> anyhow::Result<Cleared> {
    let context = || format!("removing `{}`", directory.display());
    if !directory.symlink_metadata().with_context(context)?.is_dir() {
        std::fs::remove_file(directory).with_context(context)?;
        return Ok(Cleared::Removed);
    }
    let in_use = lock(&directory.join("lock"))?;
    match in_use.try_lock() {
        Err(std::fs::TryLockError::WouldBlock) => return Ok(Cleared::InUse),
        locked => locked.with_context(context)?,
    }
    // A session that begins now makes a new one.
    let removed = directory.with_file_name(format!("{REMOVED}{}", random_name()?));
    std::fs::rename(directory, &removed).with_context(context)?;
    scratch::remove_tree(&removed).with_context(context)?;
    Ok(Cleared::Removed)
}

/// Returns the size of the directory of a private home. Links are not followed.
pub fn size(top: &Path) -> Size {
    let home = top.join(HOME);
    let mut size = Size::default();
    let mut waiting = vec![top.to_owned()];
    while let Some(path) = waiting.pop() {
        let Ok(found) = path.symlink_metadata() else {
            size.is_at_least = true;
            continue;
        };
        size.bytes = size.bytes.saturating_add(found.blocks().saturating_mul(512));
        if found.is_dir() {
            match path.read_dir() {
                Ok(names) => waiting.extend(names.flatten().map(|name| name.path())),
                // Closed directories are mount points that nobody can enter.
                Err(_) => size.is_at_least |= !mount_points::is_one(&home, &path),
            }
        }
    }
    size
}
