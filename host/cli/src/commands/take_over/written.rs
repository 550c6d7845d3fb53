//! A view of the disk with files that are planned but not written yet.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use portcullis_settings::{Disk, DiskEntry, RealDisk};
use portcullis_settings_format::Change;

use super::{Outcome, Step};

/// The disk with planned files in place of the real ones.
pub(crate) struct Written(HashMap<PathBuf, String>);

impl Written {
    /// Returns the disk with these files.
    pub(crate) fn with(files: impl Iterator<Item = (PathBuf, String)>) -> Self {
        Self(files.collect())
    }

    /// Returns the disk with the files of all steps that were only tried.
    pub(crate) fn by(done: &[(Step, Outcome)]) -> anyhow::Result<Self> {
        let mut files: HashMap<PathBuf, String> = HashMap::new();
        for (step, _) in done.iter().filter(|(_, outcome)| *outcome == Outcome::Tried) {
            let text = match &step.key {
                None => step.imported.text.clone(),
                Some(key) => {
                    let known =
                        files.get(&step.to).cloned().or_else(|| std::fs::read_to_string(&step.to).ok());
                    Change::Copy(vec![key.clone()], step.imported.text.clone())
                        .apply(known.as_deref().unwrap_or("{}\n"))?
                }
            };
            files.insert(step.to.clone(), text);
        }
        Ok(Self(files))
    }
}

impl Disk for Written {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        match self.0.get(path) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => RealDisk.read(path),
        }
    }

    fn look(&self, path: &Path) -> std::io::Result<DiskEntry> {
        match RealDisk.look(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && self.is_made(path) => {
                Ok(DiskEntry::Other)
            }
            look => look,
        }
    }

    fn names(&self, directory: &Path) -> std::io::Result<Vec<OsString>> {
        RealDisk.names(directory)
    }
}

impl Written {
    /// Returns true if a path is one of the files, or a directory above one.
    fn is_made(&self, path: &Path) -> bool {
        self.0.keys().any(|file| file.starts_with(path))
    }
}
