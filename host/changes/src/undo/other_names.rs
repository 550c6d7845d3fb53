//! Files with several names.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, fchmod, linkat, unlinkat};
use rustix::io::Errno;

use super::attributes::{FILE_MODE, set_attributes, set_owner};
use super::files::is_unchanged;
use super::restored::Restored;
use super::{Stop, Undoer};
use crate::disk::{self, Spot, look};
use crate::history::History;
use crate::interruption;
use crate::opened::{self, Access};
use crate::plan::{Why, World as _, are_alike};
use crate::record::Record;
use crate::state::{FileId, FileState, State};
use crate::world::Disk;

/// How many names are looked at to find another name of a file.
const SEARCHED: usize = 200_000;

impl Undoer<'_> {
    /// Returns the files that had several names when they were recorded.
    pub(super) fn with_several(history: &History) -> HashSet<FileId> {
        let states = history
            .entries()
            .iter()
            .filter_map(|entry| if let Record::Before { was, .. } = entry { was.state.file() } else { None });
        states.filter(|file| file.links > 1).map(|file| file.id).collect()
    }

    /// Returns true if a path may become another name of a file that is there: the user has not linked the file since, nor
    /// changed its mode or attributes, and the plan does not make the path a file of its own.
    pub(super) fn can_be_linked(
        &self,
        path: &Path,
        (other, twin): (&Path, &State),
        was: &FileState,
    ) -> io::Result<bool> {
        let is_linked_since = twin.id().is_some_and(|twin| self.linked_since.contains_key(&twin));
        if is_linked_since || self.separate.contains(path) {
            return Ok(false);
        }
        let is_restored = self.restored.get(&was.id).is_some_and(|made| twin.id() == Some(made.id));
        Ok(is_restored || !self.has_later_status(other, twin.file(), was)?)
    }

    /// Makes a path another name of a file that is there, if it is still as it was `found`. `is_same` says that it has the
    /// former content, or the text.
    pub(super) fn link_again(
        &mut self,
        spot: &Spot,
        (path, twin, found): (&Path, &Path, &State),
        (was, is_same, text): (&FileState, bool, Option<&[u8]>),
        now: &State,
    ) -> Result<(), Stop> {
        let other = disk::spot(twin)?;
        // Its mode may change.
        self.before(&other, twin)?;
        self.reaches(twin, Some(State::File(was.clone())))?;
        self.twins.push(twin.to_owned());
        let state = look(&other.directory, &other.name)?;
        // The user may have written the file while `before` copied its content.
        if !state.is_unchanged(found) {
            return Err(Stop::Left(Why::Changed));
        }
        let is_new = now.is_absent();
        if state.id().is_none() || state.id() != now.id() {
            let name = self.temporary(spot, path)?;
            interruption::point();
            linkat(&other.directory, &other.name, &spot.directory, &name, AtFlags::empty())?;
            self.put(spot, &name, now)?;
        }
        let now = look(&spot.directory, &spot.name)?;
        let now = now.file().filter(|now| Some(now.id) == state.id()).ok_or(Stop::Left(Why::Changed))?;
        let access = if is_same { Access::Read } else { Access::Write };
        let store = self.recorder.store();
        let open = opened::file(store, (&spot.directory, &spot.name, path), now, access)?;
        if !is_same {
            if !is_unchanged(&open, &state)? {
                if is_new {
                    unlinkat(&spot.directory, &spot.name, AtFlags::empty())?;
                }
                return Err(Stop::Left(Why::Changed));
            }
            let filled = self.fill(&open, was, text)?;
            self.note_filled(path, filled);
            self.note_restored(was, path);
            return Ok(());
        }
        // Its other name may have another mode by this.
        self.note_restored(was, path);
        set_owner(&open, was.owner);
        set_attributes(&open, was.attributes.as_ref())?;
        fchmod(&open, Mode::from_raw_mode(was.mode & FILE_MODE))?;
        Ok(())
    }

    /// Returns true if a file with another name is as a call has left it: what the call wrote by that name it wrote by
    /// the other.
    pub(super) fn is_of_call(&self, name: &Path, twin: &State) -> io::Result<bool> {
        let State::File(twin) = twin else { return Ok(false) };
        let Some(left) = self.history.left_of(twin) else {
            // Its content is not in the record, so the times decide. The user can set that of the last write.
            let changed = self.changed_at(name, twin.id)?;
            let is_before = |last: Option<(i64, u32)>, time| last.is_some_and(|last| time <= last);
            return Ok(is_before(self.history.last_write(twin), twin.modified)
                && is_before(self.history.last_change(twin.id), changed));
        };
        if left.digest.is_some() && Disk(self.recorder.store()).digest(name, twin)? != left.digest {
            return Ok(false);
        }
        Ok((twin.size, twin.modified) == (left.size, left.modified))
    }

    /// Returns true if a file has the content that the user has written into it.
    pub(super) fn is_edit(&self, now: &FileState) -> bool {
        let is_it = |(_, restored): &(&FileId, &Restored)| restored.id == now.id;
        let id = self.restored.iter().find(is_it).map_or(now.id, |(was, _)| *was);
        self.edits_of_user.contains(&(id, now.size, now.modified))
    }

    /// Checks that replacing `now` by `wanted` does not destroy an edit of the user: the content stays the same, or the file
    /// keeps another name.
    pub(super) fn ensure_no_edit(&self, now: &State, wanted: &State) -> Result<(), Stop> {
        let Some(file) = now.file().filter(|file| self.is_edit(file)) else { return Ok(()) };
        let is_destroyed = match wanted.file() {
            Some(was) if self.is_version_of(file.id, was) => {
                (file.size, file.modified) != (was.size, was.modified)
            }
            _ => file.links == 1,
        };
        if is_destroyed { Err(Stop::Left(Why::Changed)) } else { Ok(()) }
    }

    /// Notes when a file was last changed, before a step changes its names.
    pub(super) fn note_time(&mut self, path: &Path) {
        if let Ok(State::File(file)) = disk::look_at(path)
            && self.with_several_names.contains(&file.id)
            && let Ok(at) = disk::changed_at(path)
        {
            self.changed_at.entry(file.id).or_insert(at);
        }
    }

    /// Returns when a file with several names was last changed before this undo.
    fn changed_at(&self, name: &Path, id: FileId) -> io::Result<(i64, u32)> {
        self.changed_at.get(&id).map_or_else(|| Ok(disk::changed_at(name)?), |at| Ok(*at))
    }

    /// Returns true if the user has changed the mode or the attributes of a file by another name since.
    pub(super) fn has_later_status(
        &self,
        name: &Path,
        twin: Option<&FileState>,
        was: &FileState,
    ) -> io::Result<bool> {
        let Some(twin) = twin else { return Ok(false) };
        let attributes =
            disk::spot(name).map(|spot| disk::attributes_at(&spot.directory, &spot.name, twin.id))?;
        let status = |file: &FileState| (file.mode, file.attributes.clone());
        let now = (twin.mode, attributes);
        let is_as = |file: &FileState| {
            let (mode, of) = status(file);
            mode == now.0 && are_alike(of.as_ref(), now.1.as_ref())
        };
        if is_as(was) || self.history.states_of(twin.id).any(is_as) {
            return Ok(false);
        }
        let changed = self.changed_at(name, twin.id)?;
        // The user may have changed it before a later call moved it.
        Ok(self.history.last_change_without_moves(twin.id).is_none_or(|last| changed > last))
    }

    /// Returns another name of a file that had several.
    ///
    /// A file system may give the number of a removed file to a new one, so one of the names must have been known to
    /// have others, and the file must be as it was.
    pub(super) fn other_name(&mut self, was: &FileState, path: &Path) -> Option<PathBuf> {
        let is_as_it_was = |file: &FileState| (file.size, file.modified) == (was.size, was.modified);
        let history = self.history;
        let is_it = |undoer: &mut Self, candidate: &Path| {
            let state = undoer.look_through(candidate).ok();
            let file = state.as_ref().and_then(State::file);
            candidate != path && file.is_some_and(|file| file.id == was.id && is_as_it_was(file))
        };
        if let Some(restored) =
            self.restored.get(&was.id).filter(|restored| was.links.max(restored.links) > 1)
        {
            let is_there = |name: &&PathBuf| {
                *name != path && disk::look_at(name).is_ok_and(|now| now.id() == Some(restored.id))
            };
            if let Some(name) = restored.names.iter().find(is_there) {
                return Some(name.clone());
            }
        }
        if was.links < 2 && !self.with_several_names.contains(&was.id) {
            return None;
        }
        let recorded = history.entries().iter().filter_map(|entry| match entry {
            Record::Before { was: other, .. }
                if other
                    .state
                    .file()
                    .is_some_and(|file| file.id == was.id && file.links.max(was.links) > 1) =>
            {
                Some(other.path.as_path())
            }
            Record::Before { .. }
            | Record::Moved { .. }
            | Record::Turn { .. }
            | Record::NotMoved { .. }
            | Record::Left { .. }
            | Record::LeftSoFar { .. }
            | Record::Reaches { .. }
            | Record::Ended { .. }
            | Record::Undo { .. }
            | Record::Whole { .. }
            | Record::Undone { .. }
            | Record::NotMade { .. }
            | Record::Opens { .. }
            | Record::Closes { .. } => None,
        });
        let known = recorded.into_iter().find(|candidate| is_it(self, candidate)).map(Path::to_owned);
        if known.is_some() || was.links < 2 {
            return known;
        }
        self.search(was.id, path)
    }

    /// Looks at a path; directories on the way that calls have closed are opened for that.
    fn look_through(&mut self, path: &Path) -> rustix::io::Result<State> {
        match disk::look_at(path) {
            Err(Errno::ACCESS) if self.open_the_way(path) => disk::look_at(path),
            looked => looked,
        }
    }

    /// Searches the project for another name of a file.
    pub(super) fn search(&mut self, id: FileId, except: &Path) -> Option<PathBuf> {
        let mut left = SEARCHED;
        let mut open = vec![self.project.to_owned()];
        while let Some(directory) = open.pop() {
            let mut entries = std::fs::read_dir(&directory);
            if entries.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
                && self.open_the_way(&directory.join("name"))
            {
                entries = std::fs::read_dir(&directory);
            }
            for entry in entries.into_iter().flatten().flatten() {
                left = left.checked_sub(1)?;
                let Ok(kind) = entry.file_type() else { continue };
                let path = entry.path();
                if kind.is_dir() {
                    open.push(path);
                } else if std::os::unix::fs::DirEntryExt::ino(&entry) == id.inode
                    && path != except
                    && self.look_through(&path).is_ok_and(|state| state.id() == Some(id))
                {
                    return Some(path);
                }
            }
        }
        None
    }
}
