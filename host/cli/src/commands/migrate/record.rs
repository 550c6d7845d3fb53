//! The record of a migration: each change is written down before it is made, so that it can be undone.
//!
//! The record holds the earlier texts and lies in the state directory, where agents cannot write. The copies beside the
//! files are for people only, because an agent may have changed them.

mod made;
#[cfg(test)]
mod tests;
mod undo;

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use portcullis_settings::{Disk as _, RealDisk};
use serde_json::Value;

use crate::commands::take_over::project_file;
pub(crate) use made::Made;

/// The record, in the state directory.
const FILE: &str = "migration.json";
/// The suffix of a copy's name.
const COPY: &str = "before-portcullis";

/// A file to write, with the details for the record.
#[derive(Debug)]
pub(crate) struct NewText<'a> {
    /// The file.
    pub(crate) file: &'a Path,
    /// See [`Made::Wrote`].
    pub(crate) project: Option<&'a Path>,
    /// The file's text at planning time. It is an error if the file has another text now.
    pub(crate) earlier: Option<&'a [u8]>,
    /// The new text.
    pub(crate) text: &'a str,
    /// See [`Made::Wrote`].
    pub(crate) dropped: Option<(String, Value)>,
}

/// The record of a migration, locked against other processes.
#[derive(Debug)]
pub(crate) struct Record {
    file: PathBuf,
    changes: Vec<Made>,
    _lock: fs::File,
}

impl Record {
    /// Opens the record. A record that exists is continued.
    pub(crate) fn open(state: &Path) -> anyhow::Result<Self> {
        let file = state.join(FILE);
        let reading = || format!("reading `{}`", file.display());
        let lock = lock(state).with_context(|| format!("locking `{}`", file.display()))?;
        let changes = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).with_context(reading)?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error).with_context(reading),
        };
        Ok(Self { file, changes, _lock: lock })
    }

    /// Returns the changes, in order.
    pub(crate) fn changes(&self) -> &[Made] {
        &self.changes
    }

    /// Records a change, copies the earlier text beside the file, and writes the file.
    pub(crate) fn write(
        &mut self,
        new: NewText<'_>,
        write: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let NewText { file, project, earlier, text, dropped } = new;
        let reading = || format!("reading `{}`", file.display());
        let now = match RealDisk.read(file) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(reading),
        };
        if now.as_deref() != earlier {
            bail!("`{}` has changed in the meantime; run it again", file.display());
        }
        let earlier = now.map(String::from_utf8).transpose().with_context(reading)?;
        let copy = earlier.as_deref().map(|earlier| copy(file, project, earlier)).transpose()?;
        self.note(Made::Wrote {
            file: file.to_owned(),
            project: project.map(Path::to_owned),
            copy,
            earlier,
            text: text.to_owned(),
            dropped,
        })?;
        write()
    }

    /// Renames an extension to a hidden name in the same directory: pi ignores hidden names, and agents cannot write there.
    pub(crate) fn hide(&mut self, from: &Path) -> anyhow::Result<()> {
        let mut name = std::ffi::OsString::from(".");
        name.push(from.file_name().context("an extension has a name")?);
        let to = free_name(&from.with_file_name(name));
        self.note(Made::Moved { from: from.to_owned(), to: to.clone() })?;
        fs::rename(from, &to).with_context(|| format!("moving `{}`", from.display()))
    }

    /// Adds a change that is about to be made.
    pub(crate) fn note(&mut self, made: Made) -> anyhow::Result<()> {
        self.changes.push(made);
        self.save()
    }

    fn save(&self) -> anyhow::Result<()> {
        // The earlier texts may contain passwords of proxies, so other users must not read the record.
        let writing = || format!("writing `{}`", self.file.display());
        let fresh = self.file.with_extension("new");
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&fresh).with_context(writing)?;
        file.write_all(&serde_json::to_vec_pretty(&self.changes)?).with_context(writing)?;
        file.sync_all().with_context(writing)?;
        fs::rename(&fresh, &self.file).with_context(writing)
    }

    /// Undoes all changes, the newest first. Returns a sentence for each change that could not be undone.
    pub(crate) fn undo(
        mut self,
        remove: impl Fn(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<String>> {
        let mut kept = Vec::new();
        while let Some(made) = self.changes.last() {
            match undo::undo(made, &remove) {
                Ok(None) => {}
                Ok(Some(why)) => kept.push(why),
                Err(error) => {
                    return Err(error.context("nothing more was taken back; run it again when this is fixed"));
                }
            }
            self.changes.pop();
            self.save()?;
        }
        fs::remove_file(&self.file).with_context(|| format!("removing `{}`", self.file.display()))?;
        Ok(kept)
    }
}

/// Locks the record, or fails if another process holds it.
fn lock(state: &Path) -> std::io::Result<fs::File> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(state)?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(state.join("migration.lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::Error(error)) => Err(error),
        Err(fs::TryLockError::WouldBlock) => {
            Err(std::io::Error::other("another `portcullis migrate` is running"))
        }
    }
}

/// Writes a copy beside a file. Only the user can read it, because the text may contain passwords.
fn copy(file: &Path, project: Option<&Path>, text: &str) -> anyhow::Result<PathBuf> {
    let copy = free_name(file);
    let copying = || format!("copying `{}`", file.display());
    match project {
        Some(project) => project_file::replace(project, &copy, Some(text)).with_context(copying)?,
        None => {
            // `create_new` fails if the name appears in the meantime, for example as a link.
            let mut options = fs::OpenOptions::new();
            let written = options.write(true).create_new(true).mode(0o600).open(&copy);
            written.and_then(|mut copy| copy.write_all(text.as_bytes())).with_context(copying)?;
        }
    }
    Ok(copy)
}

/// Returns an unused name in the directory of a file.
fn free_name(file: &Path) -> PathBuf {
    let name = |number: u32| {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{COPY}"));
        if number > 1 {
            name.push(format!("-{number}"));
        }
        file.with_file_name(name)
    };
    (1..).map(name).find(|copy| copy.symlink_metadata().is_err()).unwrap_or_else(|| name(0))
}

/// Returns an error if a file or directory cannot be written, before any change is made.
pub(crate) fn ensure_writable(path: &Path) -> anyhow::Result<()> {
    let there = path.ancestors().find(|above| above.symlink_metadata().is_ok()).unwrap_or(path);
    match rustix::fs::access(there, rustix::fs::Access::WRITE_OK) {
        Ok(()) => Ok(()),
        Err(error) => bail!("`{}` cannot be written: {error}; nothing was changed", there.display()),
    }
}
