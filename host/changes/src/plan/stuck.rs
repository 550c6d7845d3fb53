//! Moves that are not taken back, and where files are because of them.

use std::path::{Path, PathBuf};

use super::version::Present;
use crate::paths::{follow, is_below, renamed};

/// The moves that are not taken back, so far: a plan goes from the newest to the oldest.
#[derive(Default)]
pub(super) struct StuckMoves {
    /// Names from before these moves, and where they lead now. The longest one that a path begins with counts.
    names: Vec<(PathBuf, Present)>,
    /// Where the files and directories are that were moved.
    places: Vec<PathBuf>,
}

/// The two names of a move, before and after it.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) from: &'a Path,
    pub(super) to: &'a Path,
    /// Whether they have changed places.
    pub(super) exchange: bool,
}

impl StuckMoves {
    /// Returns where the file that had a name before the moves is now.
    pub(super) fn present(&self, name: &Path) -> Present {
        let leading = self.names.iter().filter(|(known, _)| is_below(name, known));
        let longest = leading.max_by_key(|(known, _)| known.as_os_str().len());
        let found = longest.and_then(|(known, present)| {
            let path = renamed(name, known, &present.path)?;
            Some(Present { path, is_replaced: present.is_replaced })
        });
        found.unwrap_or_else(|| Present { path: name.to_owned(), is_replaced: false })
    }

    /// Returns the path of a name in its directory, wherever that is now, and whether something else replaced that.
    pub(super) fn slot(&self, name: &Path) -> Present {
        let (Some(directory), Some(file)) = (name.parent(), name.file_name()) else {
            return Present { path: name.to_owned(), is_replaced: false };
        };
        let Present { path, is_replaced } = self.present(directory);
        Present { path: path.join(file), is_replaced }
    }

    /// Returns true if a path is that of a file whose move stays, or below it.
    pub(super) fn is_place(&self, path: &Path) -> bool {
        self.places.iter().any(|place| is_below(path, place))
    }

    /// Adds a move that is older than all the others. `is_gone` says that the moved file is no longer at its new path.
    pub(super) fn add(&mut self, names: Names<'_>, is_gone: bool) {
        let Names { from, to, exchange } = names;
        let (mut moved, partner, slot) = (self.present(to), self.present(from), self.slot(to).path);
        // Whatever gets there later is something else.
        moved.is_replaced |= is_gone;
        self.places.push(moved.path.clone());
        self.go_back_before(names);
        self.add_name(from, moved);
        let replaced = Present { path: slot, is_replaced: true };
        if exchange {
            self.places.push(partner.path.clone());
        }
        self.add_name(to, if exchange { partner } else { replaced });
    }

    /// Takes into account that an older move is taken back, from one path to another.
    pub(super) fn take_back(&mut self, names: Names<'_>, paths: Names<'_>) {
        self.go_back_before(names);
        // What had the path is gone, and gets a successor.
        let is_replaced = |path: &Path| !paths.exchange && is_below(path, paths.from);
        let before = |path: &Path| follow(path, paths.to, paths.from, paths.exchange);
        for (_, present) in &mut self.names {
            present.is_replaced |= is_replaced(&present.path);
            present.path = before(&present.path);
        }
        self.places.retain(|place| !is_replaced(place));
        for place in &mut self.places {
            *place = before(place);
        }
    }

    /// Forgets what had a name, because it was made under that name: older states of the name are of something else.
    pub(super) fn forget(&mut self, name: &Path) {
        self.names.retain(|(known, present)| present.is_replaced || !is_below(known, name));
        let slot = self.slot(name).path;
        if self.is_place(&slot) {
            self.add_name(name, Present { path: slot, is_replaced: true });
        }
    }

    /// Changes all names to those before a move. Files that were made at its former name afterwards are dropped.
    fn go_back_before(&mut self, Names { from, to, exchange }: Names<'_>) {
        let before = |(name, present): (PathBuf, Present)| {
            let is_later = !exchange && is_below(&name, from);
            (!is_later).then(|| (follow(&name, to, from, exchange), present))
        };
        self.names = std::mem::take(&mut self.names).into_iter().filter_map(before).collect();
    }

    fn add_name(&mut self, name: &Path, present: Present) {
        if self.names.iter().all(|(known, _)| known != name) {
            self.names.push((name.to_owned(), present));
        }
    }
}
