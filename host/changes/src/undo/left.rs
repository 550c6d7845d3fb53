//! Records the state of each name after a step of an undo, to recognise what the user writes while the undo runs.

use std::io;
use std::path::{Path, PathBuf};

use super::{Stop, Undoer};
use crate::disk;
use crate::plan::{Act, Step, Why, World as _};
use crate::state::{Content, FileState, State};
use crate::world::Disk;

impl Undoer<'_> {
    /// Records the states of the names that a step has changed, to recognise later edits of the user.
    pub(super) fn note_left(&mut self, step: &Step) -> io::Result<()> {
        let size = match &step.act {
            Act::Restore(State::File(FileState { content: Content::Kept(_), size, .. })) => Some(*size),
            Act::Merge { text, .. } => Some(text.len() as u64),
            Act::Restore(_) => None,
            Act::Leave { .. } | Act::MoveBack { .. } => return Ok(()),
        };
        if self.missed.contains(&step.path) {
            return Ok(());
        }
        let paths: Vec<_> = self.twins.drain(..).chain([step.path.clone()]).collect();
        paths.into_iter().try_for_each(|path| self.note_left_at(path, size))
    }

    pub(super) fn note_left_at(&mut self, path: PathBuf, size: Option<u64>) -> io::Result<()> {
        if let Ok(State::File(_) | State::Absent | State::Link { .. }) = disk::look_at(&path) {
            let left = self.recorder.left_so_far(self.call, &path, size)?;
            self.files_made.extend(left.id().map(|id| (id, left.clone())));
            self.made.insert(path, left);
        } else {
            // A directory gets its mode later.
            self.made.remove(&path);
        }
        Ok(())
    }

    /// Checks that a name is as an earlier step has left it, or else as the plan says.
    pub(super) fn changed(&self, path: &Path, found: Option<&State>) -> Result<(), Stop> {
        let now = Disk(self.recorder.store()).look(path)?;
        // A step may have given another name of the same file its state.
        let of_file = now.id().and_then(|id| self.files_made.get(&id));
        let expected = of_file.or_else(|| self.made.get(path)).or(found);
        match expected {
            Some(expected) if !now.is_unchanged(expected) => Err(Stop::Left(Why::Changed)),
            _ => Ok(()),
        }
    }
}
