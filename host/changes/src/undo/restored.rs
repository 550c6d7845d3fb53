//! Files that were given back.

use std::path::PathBuf;

use crate::state::FileId;

/// A file that was given back.
pub(super) struct Restored {
    /// Its names.
    pub(super) names: Vec<PathBuf>,
    /// The file that has these names now. It is another one than before if undo had to make it again.
    pub(super) id: FileId,
    /// How many names it had.
    pub(super) links: u32,
    /// Whether later edits of the user were merged into it: it has another content than its other names get.
    pub(super) is_merged: bool,
}
