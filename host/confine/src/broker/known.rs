//! What all brokers know: which directories and links commands have made, and which places are the user's.
//!
//! Where the sandbox has an order of names, everything comes from its record, so it is the same for all brokers; what only
//! commands of this sandbox may do in directories of their own is this broker's.

use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::{self, Errno};

use super::directories::Made;
use super::identity::{Identity, Moving, Upwards};
use super::record::{Note, Record};
use super::resolve::Place;
use super::user_places::{Reached, UserPlaces};

/// The knowledge of one broker.
#[derive(Default)]
pub(super) struct Known(Mutex<State>);

#[derive(Default)]
struct State {
    made: Made,
    places: UserPlaces,
    /// Nothing where no other sandbox takes part.
    record: Option<Record>,
}

impl Known {
    pub(super) fn new(record: Option<Record>) -> Self {
        Self(Mutex::new(State { record, ..State::default() }))
    }

    /// Notes a directory or link that a command has made. One that cannot be noted counts as the user's.
    pub(super) fn note_made(&self, made: Identity) {
        if made.is_unique() {
            let _not_noted = self.lock().tell(vec![Note::Made(made)]);
        }
    }

    /// Notes a directory in which names are free to `command`; those of commands that no longer run are forgotten.
    pub(super) fn note_own(&self, command: u64, made: Identity, runs: impl Fn(u64) -> bool) {
        self.lock().made.note_own(command, made, runs);
    }

    /// Forgets a directory or link that is no more, with the names in it.
    pub(super) fn forget(&self, gone: &Identity) {
        let mut state = self.lock();
        if state.made.is_one(gone) || state.places.knows(gone) {
            let _stays_known = state.tell(vec![Note::Gone(gone.clone())]);
        }
    }

    /// Whether a command of this session has made it, and it does not count as the user's.
    pub(super) fn is_ours(&self, found: &Identity) -> bool {
        self.lock().made.is_ours(found)
    }

    /// Whether a command of any session has made it, and it does not count as the user's.
    pub(super) fn is_made(&self, found: &Identity) -> bool {
        self.lock().made.is_one(found)
    }

    /// Whether names in it are free to `command`.
    pub(super) fn is_own(&self, command: u64, found: &Identity) -> bool {
        self.lock().made.is_own(command, found)
    }

    /// Whether the directory so many levels above `directory`, or one that it lies in, was made by `command`. What is
    /// `moving` is looked at as if it lay where it goes to.
    pub(super) fn holds(
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

    /// Makes a user's place of a name in `holder`, and says whether it was none before. Nobody else may do anything with
    /// names meanwhile: what is taken back must not be what somebody else relies on.
    pub(super) fn add_name(&self, holder: Identity, name: &[u8]) -> io::Result<bool> {
        let mut state = self.lock();
        if state.places.is_full() || state.places.holds_name(&holder, name) {
            return Ok(false);
        }
        state.tell(vec![Note::Name(holder, name.to_vec())]).map(|()| true)
    }

    /// Takes back what [`Self::add_name`] has added.
    pub(super) fn remove_name(&self, holder: &Identity, name: &[u8]) {
        let _stays_one = self.lock().tell(vec![Note::NoName(holder.clone(), name.to_vec())]);
    }

    /// Makes user's places of what a change makes reachable.
    pub(super) fn add(&self, reached: &Reached) -> io::Result<()> {
        let names = reached.names.iter().map(|(holder, name)| Note::Name(holder.clone(), name.clone()));
        let notes = names.chain(reached.directories.iter().cloned().map(Note::Directory)).collect::<Vec<_>>();
        if notes.is_empty() { Ok(()) } else { self.lock().tell(notes) }
    }

    /// Whether `place` is a user's place or lies in one, as if what is `moving` lay where it goes to.
    pub(super) fn cover(&self, place: &Place, moving: Option<&Moving<'_>>) -> bool {
        if let Some(known) = self.lock().places.known_by_name(place) {
            return known;
        }
        let mut names = place.path.iter().rev();
        Upwards::from(&place.directory, moving).any(|found| {
            // What cannot be looked at may be one.
            let Ok((_, identity)) = found else { return true };
            let name = names.next().unwrap_or_default();
            self.lock().places.holds(&identity, name.as_encoded_bytes())
        })
    }

    /// The state, with all that has been recorded so far.
    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.catch_up();
        state
    }
}

impl State {
    /// Tells all brokers.
    fn tell(&mut self, notes: Vec<Note>) -> io::Result<()> {
        // Nothing matters any more where nothing is free.
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
