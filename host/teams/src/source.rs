//! Where the documents of a team come from. A source is not trusted: everything it returns is checked.

use std::fmt;

use crate::document::SignedText;

/// The name of a document, as a source knows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum DocumentName {
    /// The root with this version.
    Root(u64),
    /// The root with this digest, `sha256:...`.
    PinnedRoot(String),
    /// The bundle with this version.
    Bundle(u64),
    /// The newest timestamp.
    Timestamp,
}

impl DocumentName {
    /// Returns the name as a tag of a registry and as the name of a file.
    #[must_use]
    pub fn tag(&self) -> String {
        match self {
            Self::Root(version) => format!("root-{version}"),
            Self::PinnedRoot(digest) => format!("root-{}", digest.replace(':', "-")),
            Self::Bundle(version) => format!("bundle-{version}"),
            Self::Timestamp => "timestamp".to_owned(),
        }
    }
}

impl fmt::Display for DocumentName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(version) => write!(formatter, "root {version}"),
            Self::PinnedRoot(digest) => write!(formatter, "root {digest}"),
            Self::Bundle(version) => write!(formatter, "bundle {version}"),
            Self::Timestamp => formatter.write_str("timestamp"),
        }
    }
}

/// The reason why a source did not return something.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// A source of documents and packs: a registry, or an archive.
pub trait Source {
    /// Returns a document, or `None` if there is none of this name.
    ///
    /// # Errors
    /// If the source does not answer, or sends more than a document may have.
    fn document(&mut self, name: &DocumentName) -> Result<Option<SignedText>, SourceError>;

    /// Returns the component of a pack with this digest and size.
    ///
    /// # Errors
    /// If it is missing, or the source does not answer, or sends more than `size` bytes.
    fn pack(&mut self, digest: &str, size: u64) -> Result<Vec<u8>, SourceError>;
}
