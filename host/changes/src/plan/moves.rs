//! Moves in a plan: those that are taken back, and those that stay.

use std::io;
use std::path::{Path, PathBuf};

use super::Planner;
use super::step::{Act, Step, Why};
use super::stuck::Stuck;
use super::version::{Origin, Present, Version};
use crate::paths::{follow, moved};
use crate::state::{FileState, State};

impl Planner<'_> {
    /// Returns where the file that had a name before the moves that stay is now.
    pub(super) fn present(&self, name: &Path) -> Present {
        let mut path = name.to_owned();
        for stuck in self.stuck.iter().rev() {
            match stuck.renamed(&path) {
                Some(moved) => path = moved,
                None if stuck.replaces(&path) => return Present { path, is_replaced: true },
                None => {}
            }
        }
        Present { path, is_replaced: false }
    }

    /// Returns true if a path is that of a file whose move stays, or below it.
    pub(super) fn is_of_stuck(&self, path: &Path) -> bool {
        let mut later: Vec<&Stuck> = Vec::new();
        self.stuck.iter().any(|stuck| {
            let now = |name: &Path| {
                let steps = later.iter().rev();
                steps.fold(name.to_owned(), |now, step| step.renamed(&now).unwrap_or(now))
            };
            let other = stuck.from.as_deref().filter(|_| stuck.exchange);
            let is_it =
                path.starts_with(now(&stuck.to)) || other.is_some_and(|from| path.starts_with(now(from)));
            later.push(stuck);
            is_it
        })
    }

    pub(super) fn move_back_or_leave(
        &mut self,
        (from, to): (&Path, &Path),
        what: &State,
        exchange: bool,
    ) -> io::Result<()> {
        match self.move_back((from, to), what, exchange) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let Present { path, .. } = self.present(to);
                self.leave(&path, Why::Closed, Vec::new());
                self.stick((from, to), exchange);
                Ok(())
            }
            moved => moved,
        }
    }

    fn move_back(&mut self, (from, to): (&Path, &Path), what: &State, exchange: bool) -> io::Result<()> {
        let names = (from, to);
        let partner = self.present(from);
        let (from, is_moved_away) = self.slot(from);
        // If a later move that stays has moved the file on, it stays where it is.
        let (place, _) = self.slot(to);
        let Present { path: to, is_replaced } = self.present(to);
        let is_elsewhere = to != place;
        if from == to {
            // Moves that stay have brought it back, so this one stays as well.
            self.stick(names, exchange);
            return Ok(());
        }
        let Version { state: there, origin, .. } = self.look(&to)?;
        let is_ours = origin != Origin::Disk;
        let former = self.look(&from)?.state;
        let is_exchange = exchange;
        // One of two that were exchanged may be gone, or elsewhere.
        let is_partner = partner.path == from && !partner.is_replaced;
        let exchange = exchange && is_partner && !former.is_absent();
        let is_it = |state: &State| match (state, what) {
            (State::File(now), State::File(was)) => now.id == was.id || is_given_back(now, was),
            (State::Directory(_), State::Directory(_)) => true,
            (now, was) => now == was,
        };
        let why = if is_replaced || is_moved_away || is_elsewhere {
            Some(Why::Removed)
        } else if from.starts_with(&to) || to.starts_with(&from) {
            // A directory that stays where it was moved holds the other one now.
            Some(Why::Occupied)
        } else if is_it(&there) || is_ours && !there.is_absent() {
            match exchange || former.is_absent() {
                true => self.without_directory(&from, what)?,
                false => Some(Why::Occupied),
            }
        } else if is_it(&former) {
            // It never happened, or was taken back already.
            self.rename_stuck(names, is_exchange);
            return Ok(());
        } else {
            Some(Why::Removed)
        };
        if let Some(why) = why {
            self.steps.push(Step::new(to.clone(), None, Act::Leave { why, beside: None }));
            self.unmoved.extend(what.id());
            self.stick(names, is_exchange);
            return Ok(());
        }
        self.rename_stuck(names, is_exchange);
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

    /// Returns the path of a name in its directory, wherever that is now, and whether another directory replaced that.
    fn slot(&self, name: &Path) -> (PathBuf, bool) {
        let (Some(directory), Some(file)) = (name.parent(), name.file_name()) else {
            return (name.to_owned(), false);
        };
        let Present { path, is_replaced } = self.present(directory);
        (path.join(file), is_replaced)
    }

    /// Adds a move that is not taken back. Its paths are those before the move; `rename_stuck` updates them when an
    /// older move is taken back.
    fn stick(&mut self, (from, to): (&Path, &Path), exchange: bool) {
        self.stuck.push(Stuck { from: Some(from.to_owned()), to: to.to_owned(), exchange });
    }

    /// Gives the moves in `stuck` the paths that they had before an older move, which is taken back.
    fn rename_stuck(&mut self, (from, to): (&Path, &Path), exchange: bool) {
        for stuck in &mut self.stuck {
            stuck.to = follow(&stuck.to, to, from, exchange);
            stuck.from = match stuck.from.take() {
                Some(name) if !exchange && name.starts_with(from) => None,
                name => name.map(|name| follow(&name, to, from, exchange)),
            };
        }
    }
}

/// Returns true if a file has another number than a recorded one because it was given back: with its size and its time,
/// which is older than the new file. Another file can have both by chance, but then it is as old as its time.
fn is_given_back(now: &FileState, was: &FileState) -> bool {
    let is_known = now.id.born != (0, 0);
    (now.size, now.modified) == (was.size, was.modified) && (!is_known || now.id.born > now.modified)
}
