//! Writes settings files: under a lock, checked first, replaced in one step.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::discover;
use crate::disk::{Disk, RealDisk, follow};
use crate::edit::EditError;
use crate::error::ConfigError;
use crate::places::Places;
use crate::validate::{FileKind, mistakes};

/// How long another writer may take; it only changes a small file.
const PATIENCE: Duration = Duration::from_secs(5);

/// The user's settings files, for writing.
#[derive(Debug, Clone)]
pub struct Store {
    lock: PathBuf,
}

/// The user's settings files while no other process writes any of them.
#[derive(Debug)]
pub(crate) struct Writer {
    _lock: File,
}

/// Why a settings file was not written. It is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process is writing and does not end.
    #[error("another process has been writing settings for {} seconds, try again", PATIENCE.as_secs())]
    Busy,
    /// The file that is there cannot be used.
    #[error("the file has to be mended first")]
    Broken(#[source] Box<ConfigError>),
    /// What should be written cannot be used.
    #[error("nothing was written, because the new text cannot be used")]
    Invalid(#[source] Box<ConfigError>),
    /// No settings file can say it.
    #[error("settings files have no words for it")]
    NotKept,
    /// The change does not fit the text.
    #[error("changing `{}`", file.display())]
    Edit {
        /// The file.
        file: PathBuf,
        /// What is in the way.
        #[source]
        source: Box<EditError>,
    },
    /// Somebody else has changed the file since it was read.
    #[error("`{}` was changed in the meantime, look at it again", file.display())]
    Changed {
        /// The file.
        file: PathBuf,
    },
    /// The system refused.
    #[error("writing `{}`", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl StoreError {
    pub(crate) fn broken(error: ConfigError) -> Self {
        Self::Broken(Box::new(error))
    }

    pub(crate) fn edit(file: &Path, error: EditError) -> Self {
        Self::Edit { file: file.to_owned(), source: Box::new(error) }
    }
}

/// Tells one content of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    file: Option<(u64, u64)>,
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    /// Looks at a file; one that is not there, or cannot be looked at, has a stamp as well.
    #[must_use]
    pub fn of(file: &Path) -> Self {
        match std::fs::metadata(file) {
            Ok(metadata) => Self {
                file: Some((metadata.dev(), metadata.ino())),
                length: metadata.len(),
                modified: (metadata.mtime(), metadata.mtime_nsec()),
            },
            Err(error) => {
                let code = i64::from(error.raw_os_error().unwrap_or(0));
                Self { file: None, length: 0, modified: (code, 0) }
            }
        }
    }
}

impl Store {
    /// The lock lies where the agent sees nothing: a lock that it could take would keep everybody waiting.
    #[must_use]
    pub fn new(places: &Places) -> Self {
        Self { lock: places.state_directory.join("settings.lock") }
    }

    /// Changes `file`: `edit` gets the text that is there now and returns the new one, which has to be valid.
    /// Returns whether anything changed. A file behind a link is replaced, the link stays.
    ///
    /// # Errors
    /// When it cannot be done; the file is as before then.
    pub fn change(
        &self,
        file: &Path,
        kind: FileKind,
        edit: impl FnOnce(Option<&str>) -> Result<String, StoreError>,
    ) -> Result<bool, StoreError> {
        self.begin()?.change(file, kind, edit)
    }

    /// Keeps everybody else from writing, so that files can be looked at and changed together.
    pub(crate) fn begin(&self) -> Result<Writer, StoreError> {
        let failed = |source| StoreError::Write { file: self.lock.clone(), source };
        let lock = self.lock().map_err(failed)?.ok_or(StoreError::Busy)?;
        Ok(Writer { _lock: lock })
    }

    /// Replaces a file whatever is in it now, for somebody who has just looked at it: `before` is what they saw.
    ///
    /// # Errors
    /// When it is not what they saw any more, or the new text cannot be used or written.
    pub fn replace(
        &self,
        file: &Path,
        kind: FileKind,
        before: Option<&[u8]>,
        new: &str,
    ) -> Result<(), StoreError> {
        let failed = |source| StoreError::Write { file: file.to_owned(), source };
        let _writer = self.begin()?;
        let now = match RealDisk.read(file) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        if now.as_deref() != before {
            return Err(StoreError::Changed { file: file.to_owned() });
        }
        if let Some(error) = first_mistake(new, file, kind) {
            return Err(StoreError::Invalid(Box::new(error)));
        }
        let target = follow(file, &RealDisk as &dyn Disk).map_err(failed)?.canonical;
        replace(&target, new.as_bytes()).map_err(failed)
    }

    /// Takes the lock; none when another process holds it for too long.
    fn lock(&self) -> io::Result<Option<File>> {
        if let Some(parent) = self.lock.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&self.lock)?;
        let end = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(std::fs::TryLockError::Error(error)) => return Err(error),
                Err(std::fs::TryLockError::WouldBlock) if Instant::now() >= end => return Ok(None),
                Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

impl Writer {
    /// See [`Store::change`].
    pub(crate) fn change(
        &self,
        file: &Path,
        kind: FileKind,
        edit: impl FnOnce(Option<&str>) -> Result<String, StoreError>,
    ) -> Result<bool, StoreError> {
        let failed = |source| StoreError::Write { file: file.to_owned(), source };
        let text = discover::read(file, &RealDisk).map_err(StoreError::broken)?;
        if let Some(error) = text.as_deref().and_then(|text| first_mistake(text, file, kind)) {
            return Err(StoreError::broken(error));
        }
        let new = edit(text.as_deref())?;
        if Some(new.as_str()) == text.as_deref() {
            return Ok(false);
        }
        if let Some(error) = first_mistake(&new, file, kind) {
            return Err(StoreError::Invalid(Box::new(error)));
        }
        let target = follow(file, &RealDisk as &dyn Disk).map_err(failed)?.canonical;
        replace(&target, new.as_bytes()).map_err(failed)?;
        Ok(true)
    }
}

fn first_mistake(text: &str, file: &Path, kind: FileKind) -> Option<ConfigError> {
    mistakes(text, file, kind, &RealDisk).into_iter().next()
}

/// The name under which a file is written before it takes the place of `file`. A link of the user's may lead a
/// settings file into a project, so this name is protected as the file itself is.
pub(crate) fn new_name(file: &Path) -> Option<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(file.file_name()?);
    name.push(".new");
    Some(file.with_file_name(name))
}

/// Fails where the name is not that of the open file: somebody has put another one there.
fn is_at(file: &File, name: &Path) -> io::Result<()> {
    let (own, there) = (file.metadata()?, std::fs::symlink_metadata(name)?);
    if (own.dev(), own.ino()) == (there.dev(), there.ino()) {
        return Ok(());
    }
    let text = format!("`{}` was replaced by something else in this very moment", name.display());
    Err(io::Error::other(text))
}

/// Replaces a file in one step. The new one has one fixed name on the way, so that a writer that is killed
/// leaves nothing that the next one does not take over; the lock makes sure that it is the only one.
fn replace(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "it has no name");
    let (parent, new) = target.parent().zip(new_name(target)).ok_or_else(no_name)?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mode = std::fs::metadata(target).map_or(0o600, |metadata| metadata.mode() & 0o777);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| is_at(&file, &new))
        .and_then(|()| std::fs::rename(&new, target));
    if let Err(error) = written {
        let _nothing_more_to_do = std::fs::remove_file(&new);
        return Err(error);
    }
    is_at(&file, target)?;
    // Without it the rename may be lost in a power cut; the file is whole either way.
    File::open(parent)?.sync_all()
}
