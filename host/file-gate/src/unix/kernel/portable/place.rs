//! The canonical paths of open files.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use portcullis_decision::request::PathKind;
use rustix::io::Errno;

use super::descriptors::Descriptors;
use super::handle::{Directory, Handle};
use super::reported::path_of;
use super::walk::require_at;
use crate::system::kernel::status::Status;

impl Handle {
    /// Returns the canonical path and the metadata.
    pub(crate) fn place(&self, _descriptors: &Descriptors) -> Result<(PathBuf, Status), Errno> {
        let status = self.status()?;
        let reported = match &self.file {
            Some(file) if has_one_path(&status) => path_of(file)?,
            // The kernel may report another name of it, or cannot be asked; that of its directory is certain.
            _ => path_of(&self.parent)?.zip(self.path.file_name()).map(|(above, name)| above.join(name)),
        };
        // A link as such is compared as well: the walk does not follow it.
        Ok((confirmed(&status, &self.path, reported)?, status))
    }
}

impl Directory {
    /// Returns the canonical path and the metadata.
    pub(crate) fn place(&self, _descriptors: &Descriptors) -> Result<(PathBuf, Status), Errno> {
        let status = Status::read(&self.file)?;
        Ok((confirmed(&status, &self.path, path_of(&self.file)?)?, status))
    }
}

impl Descriptors {
    /// Returns true if an open file is at the canonical path `path` now.
    #[expect(clippy::unused_self, reason = "it is used on Linux")]
    pub(crate) fn is_at(&self, file: impl AsFd, path: &Path) -> bool {
        let is_at = || {
            let status = Status::read(&file)?;
            let reported = if has_one_path(&status) { path_of(&file)? } else { None };
            confirmed(&status, path, reported)
        };
        is_at().is_ok_and(|found| found == path)
    }
}

/// Returns true if the kernel cannot report another path of a file.
fn has_one_path(status: &Status) -> bool {
    status.kind == PathKind::Directory || status.links == 1
}

/// Returns the path that the kernel reports, or else the one that was walked, if the file is there.
///
/// The two differ where a directory has two names without a link, as macOS' system volume has for the user's data, and
/// where the file was moved.
pub(super) fn confirmed(known: &Status, walked: &Path, reported: Option<PathBuf>) -> Result<PathBuf, Errno> {
    let path = reported.unwrap_or_else(|| walked.to_owned());
    require_at(known, &path)?;
    Ok(path)
}
