//! Locates files for tools: as commands see them, or else in the host's own view.

use std::path::Path;

use portcullis_file_gate::{FileError, Gate, Located, Purpose};

/// Locates a path as commands see it.
///
/// If commands cannot see or write it, it is located in the host's own view; operations there are exceptions that rules
/// or the user must allow.
pub(crate) fn locate(gate: &Gate, path: &Path, purpose: Purpose) -> Result<Located, FileError> {
    match gate.locate(path, purpose) {
        Ok(located) if !located.is_on_read_only_mount() => Ok(located),
        Ok(_)
        | Err(FileError::NotFound { .. } | FileError::Denied { .. } | FileError::NotADirectory { .. }) => {
            match gate.locate_in_host_view(path, purpose) {
                Err(FileError::HostTemp { path }) => Err(FileError::NotFound { path }),
                result => result,
            }
        }
        Err(error) => Err(error),
    }
}
