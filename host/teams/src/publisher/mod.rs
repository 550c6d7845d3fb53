//! The folder of a publisher: the content of the next bundle, and the documents on their way to their signatures.
//!
//! Several people sign by passing the folder on, for example in a git repository.

mod counting;
mod documents;
mod draft;
mod error;
mod folder;
mod signing;
#[cfg(test)]
mod tests;

pub use draft::{BundleDraft, PackFile};
pub use error::FolderError;
pub use folder::{Drafted, Folder, NewTeam, Rotation};
pub use signing::Pending;
