//! Directories that calls have closed to their owner. They are opened when a step needs that, and get their modes at the
//! end.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use rustix::io::Errno;

use super::attributes::OWNER;
use super::{Stop, Undoer};
use crate::disk::{self, Spot, look, set_mode};
use crate::history::History;
use crate::opened::Opened;
use crate::plan::{Act, Step};
use crate::state::{DirectoryState, FileId, State};
use crate::store::Store;

impl Undoer<'_> {
    /// Returns the directories that are closed, and as calls have left them, with their modes. They may move before they are
    /// opened.
    pub(super) fn closed_directories(store: &Store, history: &History) -> HashMap<FileId, u32> {
        let has_left = |path: &Path, found: &State| history.has_left(path, found);
        let mut opened = Opened::new(store);
        let mut found = HashMap::new();
        for path in history.without_permissions(OWNER) {
            let mut state = disk::look_at(path);
            if state == Err(Errno::ACCESS) {
                opened.open_the_way(path, &has_left);
                state = disk::look_at(path);
            }
            if let Ok(state @ State::Directory(_)) = &state
                && has_left(path, state)
                && let State::Directory(now) = state
                && now.mode & OWNER != OWNER
            {
                found.insert(now.id, now.mode);
            }
        }
        found
    }

    /// Makes a step; again, if closed directories had to be opened for it.
    pub(super) fn act_in_the_open(&mut self, step: &Step) -> Result<(), Stop> {
        match self.act(step) {
            Err(Stop::Failed(error))
                if error.kind() == io::ErrorKind::PermissionDenied && self.open_for(step) =>
            {
                self.act(step)
            }
            acted => acted,
        }
    }

    fn open_for(&mut self, step: &Step) -> bool {
        match &step.act {
            // A directory that gets another directory around it must be open itself.
            Act::MoveBack { to, .. } => {
                let is_one_opened = self.open_the_way(&step.path.join("name"));
                self.open_the_way(&to.join("name")) || is_one_opened
            }
            Act::Restore(_) | Act::Merge { .. } | Act::Leave { .. } => self.open_the_way(&step.path),
        }
    }

    /// Opens the directories on the way to a path that calls have closed; returns whether there was one.
    pub(super) fn open_the_way(&mut self, path: &Path) -> bool {
        let mut way: Vec<&Path> = path.ancestors().skip(1).collect();
        way.reverse();
        let mut is_one_opened = false;
        for directory in way {
            let Ok(spot) = disk::spot(directory) else { continue };
            let Ok(State::Directory(now)) = look(&spot.directory, &spot.name) else { continue };
            if self.closed.get(&now.id) == Some(&now.mode) && self.open(&spot, directory, now).is_ok() {
                is_one_opened = true;
            }
        }
        is_one_opened
    }

    /// Opens a directory. What it was is recorded, so that it is closed again if this is interrupted.
    fn open(&mut self, spot: &Spot, path: &Path, now: DirectoryState) -> io::Result<()> {
        self.before(spot, path)?;
        let open = DirectoryState { mode: now.mode | OWNER, ..now.clone() };
        self.reaches(path, Some(State::Directory(open)))?;
        set_mode(spot, now.id, now.mode | OWNER)?;
        if !self.directories.iter().any(|(other, _)| other == path) {
            self.directories.push((path.to_owned(), now));
        }
        Ok(())
    }
}
