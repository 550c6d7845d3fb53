//! Files that were given back.

use std::path::PathBuf;

use crate::state::FileId;

/// A file that was given back.
pub(super) struct Restored {
    /// Its names.
    pub(super) names: Vec<PathBuf>,
    /// What it is now: one that was made anew is another file.
    pub(super) id: FileId,
    /// How many names it had.
    pub(super) links: u32,
    /// Whether later edits of the user were merged into it: it has another content than its other names get.
    pub(super) is_merged: bool,
}
