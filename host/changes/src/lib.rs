//! The journal of a session's changes in the user's files, and how they are taken back.
//!
//! Before a command or a tool first changes a name, the [`Recorder`] writes what is there to the session's [`Store`]:
//! an append-only journal, and copies of the contents. When the call ends, it writes what was left. A [`plan`] says what
//! taking a range of it back means, from these records and from what is on the disk now; [`undo`] carries it out.
//!
//! A [`branch`] is a directory of changes that the project does not have yet; committing it is a call of the journal.
//!
//! Reading order: `state`, `record`, `store`, `recorder`, `history`, `plan`, `undo`, `branch`.
//!
//! # Limits
//! Names that no broker and no tool of the host changes are not recorded: a sandbox without a broker has no journal of
//! its commands. Modes, times and attributes that a command changes through an open file are recorded only if the file
//! was opened for writing. Times of symbolic links are not recorded.
//! Set-id bits, pipes, sockets and devices are not given back.
//!
//! # Never
//! This crate decides nothing about what a session may do, and follows no symbolic link.

#[cfg(target_os = "linux")]
pub mod branch;

mod bounds;
mod state;
mod text;

#[cfg(target_os = "linux")]
mod contents;
#[cfg(target_os = "linux")]
mod diff;
#[cfg(target_os = "linux")]
mod disk;
#[cfg(target_os = "linux")]
mod history;
#[cfg_attr(target_os = "linux", path = "host.rs")]
#[cfg_attr(not(target_os = "linux"), path = "unsupported.rs")]
mod host;
#[cfg(target_os = "linux")]
mod interruption;
#[cfg(target_os = "linux")]
mod opened;
#[cfg(target_os = "linux")]
mod paths;
#[cfg(target_os = "linux")]
pub mod plan;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod recorder;
#[cfg(target_os = "linux")]
mod spared;
#[cfg(target_os = "linux")]
pub mod store;
#[cfg(target_os = "linux")]
mod touched;
#[cfg(target_os = "linux")]
pub mod undo;
#[cfg(target_os = "linux")]
mod world;

pub use bounds::Bounds;
pub use host::{SessionChanges, ToolCall, files, is_empty, make};
pub use state::{Attributes, Changed, Content, DirectoryState, FileId, FileState, Lost, State};

#[cfg(target_os = "linux")]
pub use contents::Outside;
#[cfg(target_os = "linux")]
pub use diff::diff;
#[cfg(target_os = "linux")]
pub use history::History;
#[cfg(target_os = "linux")]
pub use history::points::{Change, Point, PointKind};
#[cfg(target_os = "linux")]
pub use record::{CallKey, Named, Record};
#[cfg(target_os = "linux")]
pub use recorder::{Move, Place, Recorder};
#[cfg(target_os = "linux")]
pub use spared::Spared;
#[cfg(target_os = "linux")]
pub use store::Store;
#[cfg(target_os = "linux")]
pub use world::Disk;

#[cfg(all(test, target_os = "linux"))]
mod tests;
