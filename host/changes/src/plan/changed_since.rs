//! Whether a version of a name was made by a call, or by the user or another program.

use std::io;

use super::Planner;
use super::status::has_status_between;
use super::version::{Origin, Version, is_given_back};
use crate::history::{Expected, Written, is_of_call};
use crate::state::{Content, FileState, State};

impl Planner<'_> {
    /// Returns `Some` if the user or another program made this version: with the state that the session had left
    /// there before, or `None` if it had left nothing.
    pub(super) fn changed_since<'v>(&'v self, version: &'v Version) -> io::Result<Option<Option<&'v State>>> {
        let left = match version.origin {
            Origin::Implied => return Ok(None),
            Origin::Disk => match version.real.as_ref().map(|real| self.history.expected(real)) {
                Some(Expected::Left(left)) => left,
                Some(Expected::Between(earlier, to)) => {
                    return Ok((!self.is_between(version, earlier, to)?).then_some(None));
                }
                Some(Expected::Written(Written { left, found, end, is_undo })) => {
                    let before = Version::of(State::File(found.clone()), Origin::Disk);
                    if self.is_as_left(version, &before.state)? {
                        return Ok((!self.is_as_left(&before, left)?).then_some(Some(left)));
                    }
                    // A command may have written the file before it removed the name, without a record. An undo has not.
                    let left = is_undo.then_some(left);
                    return Ok((!self.is_written(version, found, end)?).then_some(left));
                }
                Some(Expected::Anything) | None => return Ok(self.is_later(version)?.then_some(None)),
                Some(Expected::Nothing) => return Ok((!version.state.is_absent()).then_some(None)),
            },
            Origin::Recorded(position) => match self.history.left_before(position) {
                Some(left) => left,
                // Later edits were merged into what the call itself had made before.
                None if version.text.is_some() => return Ok(Some(self.history.recorded(position))),
                None => return Ok(None),
            },
            Origin::Removed(position) => {
                let left = self.history.left_before(position).or_else(|| self.history.recorded(position));
                let Some(left) = left else { return Ok(None) };
                left
            }
        };
        Ok((!self.is_as_left(version, left)?).then_some(Some(left)))
    }

    /// Returns true if a call may have written a version. The call found the file as `then`, and ended at `end`.
    fn is_written(&self, version: &Version, then: &FileState, end: u64) -> io::Result<bool> {
        let (State::File(now), Some(real)) = (&version.state, &version.real) else { return Ok(false) };
        let changed = self.world.changed_at(real)?;
        Ok(is_of_call(now, then, end) && self.history.last_change(now.id).is_some_and(|last| changed <= last))
    }

    /// Returns true if a name got this version much later than the journal was written: a call that did not end has not
    /// made it. A file that was put there may have an old time of its content.
    fn is_later(&self, version: &Version) -> io::Result<bool> {
        let real = version.real.as_ref();
        let Some(real) = real.filter(|_| !matches!(version.state, State::Absent | State::Directory(_)))
        else {
            return Ok(false);
        };
        Ok(self.world.changed_at(real)? > self.history.killed_until())
    }

    /// Returns true if a step that makes `to` of `earlier` may have stopped at this version.
    fn is_between(&self, version: &Version, earlier: &State, to: &State) -> io::Result<bool> {
        let is_directory = |state: &State| matches!(state, State::Directory(_));
        let (State::File(now), Some(real)) = (&version.state, &version.real) else {
            return Ok(match &version.state {
                State::Directory(_) => is_directory(earlier) || is_directory(to),
                // One kind takes the place of another in two calls of the system, if one of them is a directory.
                State::Absent => {
                    [earlier, to].into_iter().any(|state| state.is_absent() || is_directory(state))
                }
                now @ (State::File(_) | State::Link { .. } | State::Special { .. }) => {
                    now == earlier || now == to
                }
            });
        };
        let is_as = |other: &FileState| (now.size, now.modified) == (other.size, other.modified);
        if !has_status_between(now, earlier.file(), to.file()) {
            return Ok(false);
        }
        if earlier.file().is_some_and(|earlier| earlier.id == now.id && is_as(earlier)) {
            return Ok(true);
        }
        let Some(to) = to.file() else { return Ok(false) };
        match to.content {
            _ if is_as(to) => Ok(true),
            Content::Kept(_) => self.world.is_beginning(real, now, to),
            Content::Unread | Content::Lost(_) => Ok(false),
        }
    }

    /// Returns true if a version is the same as the state `left`, which a call left.
    fn is_as_left(&self, version: &Version, left: &State) -> io::Result<bool> {
        if version.text.is_some() {
            return Ok(false);
        }
        let mut now = version.state.clone();
        let mut left = left.clone();
        if let (State::File(file), State::File(left)) = (&mut now, &mut left)
            && left.digest.is_some()
        {
            match &version.real {
                Some(real) => file.digest = self.world.digest(real, file)?,
                // Only its times are known.
                None if !matches!(file.content, Content::Kept(_)) => left.digest = None,
                None => file.digest = self.world.digest_of_kept(file)?,
            }
        }
        // The undo of another session gives back a removed file as another one.
        if let (State::File(file), State::File(left)) = (&mut now, &left)
            && version.real.is_some()
            && is_given_back(file, left)
        {
            file.id = left.id;
        }
        Ok(now.is_still(&left))
    }
}
