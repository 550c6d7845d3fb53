//! Carries out file operations on the descriptor that was judged.
//!
//! Check and use cannot be separated: [`Gate::locate`] opens a path without touching the content, the caller
//! decides about exactly this file, and the operation continues with the same descriptor and the
//! [`Permit`](portcullis_decision::Permit) of that decision. No name is looked up twice.
//!
//! Terms:
//! a *view* is a root in which paths are opened, see [`Views`]; a [`Located`] is an opened path;
//! its *canonical* path is the one that the kernel reports for the descriptor.
//!
//! # Never
//! This crate never decides. It knows no policies, no settings and no users; it checks that the permit it
//! is given is for this canonical path and this operation, and uses it up.
//!
//! # Durability
//! A file is replaced by a rename, so a reader sees the old or the new content, never a mixture.
//! Nothing is synced to the disk: after a power cut the old content may be back, as with pi's own tools.
//!
//! # Platforms
//! On Linux 5.6 or later (openat2) with `/proc`, the kernel resolves paths and names descriptors. Other Unix systems
//! have neither: there the gate walks each path name by name, by directory handles (`unix/kernel/portable`). That
//! module names what it cannot promise. Linux builds it with the feature `portable`, for the same tests.
//!
//! ```
//! use portcullis_file_gate::{Gate, Purpose, Views};
//!
//! # fn main() -> Result<(), portcullis_file_gate::FileError> {
//! let gate = Gate::new(Views::Host)?;
//! let located = gate.locate("/usr/../etc/passwd".as_ref(), Purpose::Existing)?;
//! assert_eq!(located.canonical_text(), "/etc/passwd");
//! # Ok(())
//! # }
//! ```

mod error;
mod operation;
mod search;
mod view;

pub mod spelling;

#[path = "unix/mod.rs"]
mod system;

pub use error::FileError;
pub use operation::{
    Entry, FileContent, Identity, Inode, Limits, Links, Listing, Names, Purpose, WriteOptions, Written,
};
pub use search::{
    Case, FindQuery, Flow, FoundName, GitRepositories, GrepQuery, IgnoreFiles, Line, PatternSyntax,
    SearchEnd, SearchError, SearchGuard,
};
pub use system::{Editing, Gate, HostDirectory, Located, linked_files, symbolic_links};
pub use view::{IsOwn, RootView, View, Views};
