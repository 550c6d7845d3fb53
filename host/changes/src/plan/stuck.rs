//! A move that is not taken back, and the paths that files have because of it.

use std::path::{Path, PathBuf};

use crate::paths::{is_below, renamed};

/// A move that is not taken back.
pub(super) struct Stuck {
    /// `None` if it moved something that was made under the former name of an older move that is taken back.
    pub(super) from: Option<PathBuf>,
    pub(super) to: PathBuf,
    pub(super) exchange: bool,
}

impl Stuck {
    /// Returns the path that the file at `path` has after the move; `None` if the move does not rename it.
    pub(super) fn renamed(&self, path: &Path) -> Option<PathBuf> {
        let from = self.from.as_deref()?;
        let back = || self.exchange.then(|| renamed(path, &self.to, from)).flatten();
        renamed(path, from, &self.to).or_else(back)
    }

    /// Returns true if a path is a name that the move has given to something else.
    pub(super) fn replaces(&self, path: &Path) -> bool {
        !self.exchange && is_below(path, &self.to)
    }
}
