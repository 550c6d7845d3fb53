//! Errors of the kernel as errors of this crate.

use std::io;
use std::path::Path;

use portcullis_decision::path_text;
use rustix::io::Errno;

use crate::FileError;

/// Converts an error of the kernel into an error of this crate.
pub(crate) fn failure(doing: &'static str, path: &Path, errno: Errno) -> FileError {
    let path = path_text::encode(path);
    match errno {
        Errno::NOENT => FileError::NotFound { path },
        Errno::NOTDIR => FileError::NotADirectory { path },
        Errno::ISDIR => FileError::IsDirectory { path },
        Errno::LOOP => FileError::Loop { path },
        Errno::NOSYS => FileError::Unsupported,
        // Concurrent renames kept interrupting the walk of the path, or the name has become another file.
        Errno::AGAIN | Errno::STALE => FileError::Moved { path },
        Errno::ACCESS | Errno::PERM | Errno::ROFS => {
            FileError::Denied { doing, path, source: io::Error::from(errno) }
        }
        _ => FileError::Io { doing, path, source: io::Error::from(errno) },
    }
}
