//! Writes settings files under a lock; validates the new text and replaces the file atomically.

use std::fs::{File, OpenOptions};
use std::io;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use portcullis_settings_format::{ConfigError, EditError, FileKind};

use crate::disk::{Disk, RealDisk, follow};
use crate::places::Places;
use crate::settings_text;
use crate::temporary_name::new_name;
use crate::validate::mistakes;

/// How long to wait for another writer, which only changes a small file.
const PATIENCE: Duration = Duration::from_secs(5);

/// The user's settings files, for writing.
#[derive(Debug, Clone)]
pub struct Store {
    lock: PathBuf,
}

/// The user's settings files, locked against other processes.
#[derive(Debug)]
pub(crate) struct Writer {
    _lock: File,
}

/// Why a settings file was not written. The file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process holds the lock for too long.
    #[error("another process has been writing settings for {} seconds, try again", PATIENCE.as_secs())]
    Busy,
    /// The existing file cannot be used.
    #[error("fix this file first")]
    Broken(#[source] Box<ConfigError>),
    /// The new text cannot be used.
    #[error("nothing was written, because the new text cannot be used")]
    Invalid(#[source] Box<ConfigError>),
    /// No settings file can hold it.
    #[error("a settings file cannot hold this grant")]
    NotKept,
    /// The change does not fit the text.
    #[error("changing `{}`", file.display())]
    Edit {
        /// The file.
        file: PathBuf,
        /// The reason.
        #[source]
        source: Box<EditError>,
    },
    /// Another process has changed the file since it was read.
    #[error("`{}` was changed in the meantime, look at it again", file.display())]
    Changed {
        /// The file.
        file: PathBuf,
    },
    /// The system refused to write.
    #[error("writing `{}`", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The system's error.
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

/// Metadata that identifies the content of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    file: Option<(u64, u64)>,
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    /// Returns the stamp of a file. A file that is missing or not accessible has a stamp too.
    #[must_use]
    pub fn read(file: &Path) -> Self {
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
    /// Creates a store.
    ///
    /// The lock file lies where the agent has no access: an agent that could take the lock would block all writers.
    #[must_use]
    pub fn new(places: &Places) -> Self {
        Self { lock: places.state_directory.join("settings.lock") }
    }

    /// Changes `file`.
    ///
    /// `edit` gets its current text and returns the new text, which must be valid. Returns true if the file changed. If
    /// the path is a link, the target is replaced and the link stays.
    ///
    /// # Errors
    /// When the change fails; the file is unchanged.
    pub fn change(
        &self,
        file: &Path,
        kind: FileKind,
        edit: impl FnOnce(Option<&str>) -> Result<String, StoreError>,
    ) -> Result<bool, StoreError> {
        self.begin()?.change(file, kind, edit)
    }

    /// Takes the lock, so that several files can be read and changed together.
    pub(crate) fn begin(&self) -> Result<Writer, StoreError> {
        let failed = |source| StoreError::Write { file: self.lock.clone(), source };
        let lock = self.lock().map_err(failed)?.ok_or(StoreError::Busy)?;
        Ok(Writer { _lock: lock })
    }

    /// Replaces a file whose current content is `before`.
    ///
    /// # Errors
    /// When the file has another content, or the new text cannot be used or written.
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

    /// Takes the lock, or returns `None` if another process holds it for too long.
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
        let text = settings_text::read(file, &RealDisk).map_err(StoreError::broken)?;
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

/// Replaces a file of the user that is no settings file of ours, atomically. If the path is a link, the target is
/// replaced and the link stays.
///
/// # Errors
/// When it cannot be written, or another process interferes.
pub fn replace_file(file: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(&follow(file, &RealDisk as &dyn Disk)?.canonical, bytes)
}

fn first_mistake(text: &str, file: &Path, kind: FileKind) -> Option<ConfigError> {
    mistakes(text, file, kind, &RealDisk).into_iter().next()
}

/// Fails if `name` is not the open file, because another process has replaced it.
fn is_at(file: &File, name: &Path) -> io::Result<()> {
    let (own, there) = (file.metadata()?, std::fs::symlink_metadata(name)?);
    if (own.dev(), own.ino()) == (there.dev(), there.ino()) {
        return Ok(());
    }
    let text = format!("`{}` was replaced by something else just now", name.display());
    Err(io::Error::other(text))
}

/// Replaces a file atomically.
///
/// The temporary file has a fixed name, so the next writer removes one left by a killed writer; the lock rules out a
/// second writer.
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
    // Without this sync, a power failure can undo the rename; the file is complete in any case.
    File::open(parent)?.sync_all()
}
