//! The name of the file that becomes a settings file.

use std::path::{Path, PathBuf};

/// Returns the path of the temporary file for `file`.
///
/// A link of the user can put a settings file inside a project, so this path is protected like the file itself.
pub(crate) fn new_name(file: &Path) -> Option<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(file.file_name()?);
    name.push(".new");
    Some(file.with_file_name(name))
}
