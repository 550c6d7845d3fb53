//! Reading the text of a settings file.

use std::path::Path;

use portcullis_settings_format::ConfigError;

use crate::disk::{Disk, follow};
use crate::places::canonical;

/// Checks that `file` resolves to a path inside the workspace.
///
/// Otherwise a project could have any file of the user parsed, and parts of it shown in the error.
pub(crate) fn stays_inside(file: &Path, workspace: &Path, disk: &dyn Disk) -> Result<(), ConfigError> {
    if canonical(file, disk)?.starts_with(workspace) {
        return Ok(());
    }
    Err(ConfigError::Unusable {
        file: file.to_owned(),
        problem: "lead out of the project through a link, replace the link by a plain file",
    })
}

pub(crate) fn read(file: &Path, disk: &dyn Disk) -> Result<Option<String>, ConfigError> {
    let source = match disk.read(file) {
        Ok(bytes) => {
            return String::from_utf8(bytes).map(Some).map_err(|_| ConfigError::Unusable {
                file: file.to_owned(),
                problem: "are not UTF-8 text, save them in that encoding",
            });
        }
        Err(source) => source,
    };
    if source.kind() != std::io::ErrorKind::NotFound {
        return Err(ConfigError::Read { file: file.to_owned(), source });
    }
    let followed =
        follow(file, disk).map_err(|source| ConfigError::Path { path: file.to_owned(), source })?;
    if followed.dangling {
        return Err(ConfigError::Unusable {
            file: file.to_owned(),
            problem: "are behind a broken link; fix or remove the link",
        });
    }
    Ok(None)
}
