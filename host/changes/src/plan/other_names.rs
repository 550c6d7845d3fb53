//! Files with several names in a plan: each name goes back through the states that were recorded for all of them.

use std::cmp::Reverse;
use std::io;
use std::path::Path;

use super::Planner;
use super::by_file::ByFile;
use super::version::{Recorded, Version};
use crate::state::{FileState, State};

impl Planner<'_> {
    /// Adds the states of a file that were recorded for other names of it to those of a name.
    ///
    /// A name that the user has made in between did not lead to older states: the file had fewer names then. Newer ones
    /// count if the name led to the file then.
    pub(super) fn with_other_names<'a>(
        &self,
        path: &Path,
        states: &[Recorded<'a>],
        all: &ByFile<'_, 'a>,
    ) -> Vec<Recorded<'a>> {
        let mut states = states.to_vec();
        let Some(oldest) = states.last().copied() else { return states };
        // A name that a call has made was not there before that.
        let is_made = oldest.was.is_absent();
        let of_file = if is_made { states.split_last().map_or(&[][..], |(_, newer)| newer) } else { &states };
        let Some(file) = of_file.last().and_then(|recorded| recorded.was.file()) else { return states };
        let others = all.get(&file.id).into_iter().flatten().filter(|(name, _)| *name != path);
        let mut others: Vec<_> = others.map(|(_, recorded)| *recorded).collect();
        if others.is_empty() {
            return states;
        }
        let is_it = |state: &State| state.id() == Some(file.id);
        let left = self.history.left_before(oldest.position).and_then(State::file);
        let are_of_calls = left.is_some_and(|left| left.id == file.id && left.links >= file.links);
        let links = if are_of_calls { 2 } else { file.links.max(2) };
        let leads_to_it = self.look(path).is_ok_and(|version| is_it(&version.state));
        // What the name had when it was recorded next, or has now.
        let led_to_it = |position: usize| {
            let next = of_file.iter().rev().find(|recorded| recorded.position > position);
            next.map_or(leads_to_it, |recorded| is_it(recorded.was))
        };
        others.retain(|other| match other.position < oldest.position {
            true => !is_made && other.was.file().is_some_and(|was| was.links >= links),
            false => led_to_it(other.position),
        });
        states.extend(others);
        states.sort_by_key(|recorded| Reverse(recorded.position));
        states
    }

    /// Returns true if a name is to become another name of a file again of which the user has made the version that its
    /// other names have.
    pub(super) fn is_edited_by_another_name(&self, found: &State, wanted: &State) -> bool {
        wanted.file().is_some_and(|file| found.id() != Some(file.id) && self.edited.contains(&file.id))
    }

    /// Notes the planned version of a file with several names. The other names share it, because a write by one name
    /// changes them all.
    pub(super) fn note_version(
        &mut self,
        found: &State,
        reached: &mut Version,
        is_separate: bool,
    ) -> io::Result<()> {
        let Some(file) = reached.state.file() else { return Ok(()) };
        let id = file.id;
        if reached.text.is_some() || self.changed_since(reached)?.is_some() {
            self.edited.insert(id);
        }
        let found = found.file().filter(|found| found.id == id);
        reached.is_shared = !is_separate && file.links.max(found.map_or(0, |found| found.links)) > 1;
        if reached.is_shared {
            let is_known = found.is_some() || self.files.contains_key(&id);
            let versions = if is_known { &mut self.files } else { &mut self.given_back };
            versions.insert(id, reached.clone());
        }
        Ok(())
    }

    /// Returns the version of a file after a planned step that restores another of its names. The step writes the file, so
    /// this differs from the version on the disk. `None` without such a step, or if the user has changed the file since.
    pub(super) fn given_back(&self, on_disk: &Version) -> io::Result<Option<Version>> {
        let id = on_disk.state.id();
        let Some(version) = id.and_then(|id| self.given_back.get(&id)) else { return Ok(None) };
        if self.changed_since(on_disk)?.is_some() {
            return Ok(None);
        }
        Ok(Some(Version { on_disk: Some(on_disk.state.clone()), ..version.clone() }))
    }

    /// Returns what the last step by any name of a file makes of a version of it.
    pub(super) fn as_shared<'v>(&'v self, made: &'v Version) -> &'v Version {
        let id = made.state.id().filter(|_| made.is_shared);
        id.and_then(|id| self.files.get(&id)).unwrap_or(made)
    }

    /// Returns true if a file on the disk has more names than the session knows of.
    pub(super) fn is_linked_since(&self, found: &State) -> bool {
        let is_more = |now: &FileState| now.links > self.history.known_links(now.id).unwrap_or(1).max(1);
        found.file().is_some_and(is_more)
    }
}
