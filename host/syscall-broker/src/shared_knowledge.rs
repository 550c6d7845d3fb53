//! Knowledge that all brokers share: which directories and links commands have made, and which places are the user's.
//!
//! If the sandbox has a name order, all of this comes from its record and is the same for all brokers. Only the
//! directories in which a command of this sandbox has special freedom are known to this broker alone.

use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::{self, Errno};

use crate::identity::{Identity, Moving, Upwards};
use crate::made_files::MadeFiles;
use crate::record::{Note, Record};
use crate::resolved_name::ResolvedName;
use crate::user_places::{Reached, UserPlaces};

/// The knowledge of one broker.
#[derive(Default)]
pub(crate) struct SharedKnowledge(Mutex<KnowledgeState>);

#[derive(Default)]
struct KnowledgeState {
    made: MadeFiles,
    places: UserPlaces,
    /// `None` if no other sandbox takes part.
    record: Option<Record>,
}

impl SharedKnowledge {
    pub(crate) fn new(record: Option<Record>) -> Self {
        Self(Mutex::new(KnowledgeState { record, ..KnowledgeState::default() }))
    }

    /// Notes a directory or link that a command has made. If noting fails, it counts as the user's.
    pub(crate) fn note_made(&self, made: Identity) {
        if made.is_unique() {
            let _not_noted = self.lock().tell(vec![Note::Made(made)]);
        }
    }

    /// Notes a directory in which names are free to `command`, and forgets those of commands that no longer run.
    pub(crate) fn note_own(&self, command: u64, made: Identity, runs: impl Fn(u64) -> bool) {
        self.lock().made.note_own(command, made, runs);
    }

    /// Forgets a directory or link that no longer exists, with the names in it.
    pub(crate) fn forget(&self, gone: &Identity) {
        let mut state = self.lock();
        if state.made.is_one(gone) || state.places.knows(gone) {
            let _stays_known = state.tell(vec![Note::Gone(gone.clone())]);
        } else {
            state.made.forget(gone);
        }
    }

    /// Returns true if a command of this session has made it, and it does not count as the user's.
    pub(crate) fn is_ours(&self, found: &Identity) -> bool {
        self.lock().made.is_ours(found)
    }

    /// Returns true if a command of any session has made it, and it does not count as the user's.
    pub(crate) fn is_made(&self, found: &Identity) -> bool {
        self.lock().made.is_one(found)
    }

    /// Returns true if names in it are free to `command`.
    pub(crate) fn is_own(&self, command: u64, found: &Identity) -> bool {
        self.lock().made.is_own(command, found)
    }

    /// Returns true if `command` has made the directory `levels` above `directory`, or one of its ancestors. The
    /// `moving` directory is treated as if it were already at its target.
    pub(crate) fn holds(
        &self,
        command: u64,
        directory: impl AsFd,
        levels: usize,
        moving: Option<&Moving<'_>>,
    ) -> bool {
        if !self.lock().made.has_own(command) {
            return false;
        }
        let known = Upwards::from(directory, moving).map_while(Result::ok);
        known.skip(levels).any(|(_, identity)| self.is_own(command, &identity))
    }

    /// Makes a name in `holder` a user's place, and returns whether it was none before. The caller holds the name order
    /// exclusively: a note that is taken back must not be one that others rely on.
    pub(crate) fn add_name(&self, holder: Identity, name: &[u8]) -> io::Result<bool> {
        let mut state = self.lock();
        if state.places.is_full() || state.places.holds_name(&holder, name) {
            return Ok(false);
        }
        state.tell(vec![Note::Name(holder, name.to_vec())]).map(|()| true)
    }

    /// Takes back a note of [`Self::add_name`].
    pub(crate) fn remove_name(&self, holder: &Identity, name: &[u8]) {
        let _stays_one = self.lock().tell(vec![Note::NoName(holder.clone(), name.to_vec())]);
    }

    /// Makes user's places of the names and directories that a change makes reachable.
    pub(crate) fn add(&self, reached: &Reached) -> io::Result<()> {
        let names = reached.names.iter().map(|(holder, name)| Note::Name(holder.clone(), name.clone()));
        let notes = names.chain(reached.directories.iter().cloned().map(Note::Directory)).collect::<Vec<_>>();
        if notes.is_empty() { Ok(()) } else { self.lock().tell(notes) }
    }

    /// Returns true if `place` is a user's place or is in one, as if the `moving` directory were already at its
    /// target.
    pub(crate) fn cover(&self, place: &ResolvedName, moving: Option<&Moving<'_>>) -> bool {
        if let Some(known) = self.lock().places.known_by_name(place) {
            return known;
        }
        let mut names = place.path.iter().rev();
        Upwards::from(&place.directory, moving).any(|found| {
            // A directory that cannot be examined counts as one.
            let Ok((_, identity)) = found else { return true };
            let name = names.next().unwrap_or_default();
            self.lock().places.holds(&identity, name.as_encoded_bytes())
        })
    }

    /// Locks the state, brought up to date with the record.
    fn lock(&self) -> MutexGuard<'_, KnowledgeState> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.catch_up();
        state
    }
}

impl KnowledgeState {
    /// Reports notes to all brokers.
    fn tell(&mut self, notes: Vec<Note>) -> io::Result<()> {
        // If every place is the user's, no further note changes anything.
        if self.places.is_full() {
            return Ok(());
        }
        let Some(record) = &mut self.record else {
            notes.into_iter().for_each(|note| self.take(note, true));
            return Ok(());
        };
        if let Err(error) = record.append(&notes) {
            self.places.fill();
            return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        }
        self.catch_up();
        Ok(())
    }

    fn catch_up(&mut self) {
        let Some(mut record) = self.record.take() else { return };
        if record.catch_up(|note, is_ours| self.take(note, is_ours)).is_err() {
            self.places.fill();
        }
        self.record = Some(record);
    }

    fn take(&mut self, note: Note, is_ours: bool) {
        match note {
            Note::Made(made) => {
                if !self.made.note(made, is_ours) && !is_ours {
                    self.places.fill();
                }
            }
            Note::Gone(gone) => {
                self.made.forget(&gone);
                self.places.forget(&gone);
            }
            Note::Name(holder, name) => self.places.add_name(holder, &name),
            Note::NoName(holder, name) => self.places.remove_name(&holder, &name),
            Note::Directory(directory) => {
                self.made.forget(&directory);
                self.places.add_directory(directory);
            }
            Note::TooMany => self.places.fill(),
        }
    }
}

#[cfg(test)]
mod tests;
