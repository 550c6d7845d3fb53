//! Moves in a plan: those that are taken back, and those that stay.

use std::io;

use super::Planner;
use super::recorded_move::RecordedMove;
use super::step::{Act, Step, Why};
use super::stuck::Names;
use super::version::{Origin, Present, Version};
use crate::paths::moved;

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
