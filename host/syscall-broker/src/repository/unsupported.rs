//! Stubs for systems on which commands cannot be confined.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

/// Returns an error: repositories are not examined on this system.
///
/// # Errors
/// Always.
pub fn examine_repository(
    _directory: BorrowedFd<'_>,
    _path: &Path,
    _roots: &[PathBuf],
    _lifted: &[String],
) -> std::io::Result<()> {
    Err(std::io::Error::from(std::io::ErrorKind::Unsupported))
}
