//! Moves in a plan: those that are taken back, and those that stay.

use std::io;

use super::Planner;
use super::step::{Act, Step, Why};
use super::stuck::Names;
use super::version::{Origin, Present, Version};
use crate::paths::moved;
use crate::state::{FileState, State};

/// A move that a call has made.
#[derive(Clone, Copy)]
pub(super) struct RecordedMove<'a> {
    pub(super) names: Names<'a>,
    pub(super) what: &'a State,
    /// When the call ended: seconds and nanoseconds.
    pub(super) ended: (i64, u32),
}

impl RecordedMove<'_> {
    /// Returns true if a state is that of the file or directory that was moved, or that an undo made of it.
    fn is_of(&self, state: &State) -> bool {
        match (state, self.what) {
            (State::File(now), State::File(was)) => now.id == was.id || is_given_back(now, was),
            // The partner of an exchange is no newer than that.
            (State::Directory(now), State::Directory(was)) => {
                now.id == was.id || !self.names.exchange || now.id.born > self.ended
            }
            (now, was) => now == was,
        }
    }
}

impl Planner<'_> {
    pub(super) fn move_back_or_leave(&mut self, recorded: RecordedMove<'_>) -> io::Result<()> {
        match self.move_back(recorded) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let Present { path, .. } = self.stuck.present(recorded.names.to);
                self.leave(&path, Why::Closed, Vec::new());
                self.stuck.add(recorded.names, false);
                Ok(())
            }
            moved => moved,
        }
    }

    fn move_back(&mut self, recorded: RecordedMove<'_>) -> io::Result<()> {
        let RecordedMove { names, what, .. } = recorded;
        let partner = self.stuck.present(names.from);
        let Present { path: from, is_replaced: is_moved_away } = self.stuck.slot(names.from);
        // If a later move that stays has moved the file on, it stays where it is.
        let place = self.stuck.slot(names.to).path;
        let Present { path: to, is_replaced } = self.stuck.present(names.to);
        let is_elsewhere = to != place;
        if from == to {
            // Moves that stay have brought it back, so this one stays as well.
            self.stuck.add(names, false);
            return Ok(());
        }
        let Version { state: there, origin, .. } = self.look(&to)?;
        let is_ours = origin != Origin::Disk;
        let former = self.look(&from)?.state;
        // One of two that were exchanged may be gone, or elsewhere.
        let is_partner = partner.path == from && !partner.is_replaced;
        let exchange = names.exchange && is_partner && !former.is_absent();
        let paths = Names { from: &from, to: &to, exchange };
        let why = if is_replaced || is_moved_away || is_elsewhere {
            Some(Why::Removed)
        } else if from.starts_with(&to) || to.starts_with(&from) {
            // A directory that stays where it was moved holds the other one now.
            Some(Why::Occupied)
        } else if recorded.is_of(&there) || is_ours && !there.is_absent() {
            match exchange || former.is_absent() {
                true => self.without_directory(&from, what)?,
                false => Some(Why::Occupied),
            }
        } else if recorded.is_of(&former) {
            // It never happened, or was taken back already.
            self.stuck.take_back(names, Names { exchange: names.exchange, ..paths });
            return Ok(());
        } else {
            Some(Why::Removed)
        };
        if let Some(why) = why {
            self.steps.push(Step::new(to.clone(), None, Act::Leave { why, beside: None }));
            self.unmoved.extend(what.id());
            self.stuck.add(names, there.is_absent());
            return Ok(());
        }
        self.stuck.take_back(names, paths);
        moved(&mut self.made, &to, &from, exchange);
        self.back.push((to.clone(), from.clone(), exchange));
        // After a redo, the move of the redo and that of the undo before it cancel out.
        let is_opposite =
            |last: &Step| last.path == from && last.act == Act::MoveBack { to: to.clone(), exchange };
        if self.steps.last().is_some_and(is_opposite) {
            self.steps.pop();
            return Ok(());
        }
        let act = Act::MoveBack { to: from, exchange };
        self.steps.push(Step::new(to, (!is_ours).then_some(there), act));
        Ok(())
    }
}

/// Returns true if a file has another number than a recorded one because it was given back: with its size and its time,
/// which is older than the new file. Another file can have both by chance, but then it is as old as its time.
fn is_given_back(now: &FileState, was: &FileState) -> bool {
    let is_known = now.id.born != (0, 0);
    (now.size, now.modified) == (was.size, was.modified) && (!is_known || now.id.born > now.modified)
}
