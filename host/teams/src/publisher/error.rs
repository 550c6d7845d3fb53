//! Faults of a publisher's folder.

use std::path::PathBuf;

use crate::refusal::TeamRefusal;

/// The reason why a publisher's folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] portcullis_packs::StoreError),
    /// A directory cannot be read or made.
    #[error("opening `{}`", .0.display())]
    Directory(PathBuf, #[source] std::io::Error),
    /// A file has a mistake.
    #[error("`{}`: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The mistake.
        reason: String,
    },
    /// A document cannot be used.
    #[error("the documents in `{}`", .0.display())]
    Documents(PathBuf, #[source] TeamRefusal),
    /// A value is invalid.
    #[error("{0}")]
    Value(String),
}
