//! Whether the user has used a git repository since the agent did. Only then may the user's commits need the objects that
//! the agent's git made.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use super::Planner;
use super::version::{Origin, Version};
use crate::paths::{OBJECTS, is_below};
use crate::record::Record;
use crate::state::State;

/// How many names of a repository are looked at. One with more counts as used.
const LOOKED_AT: usize = 50_000;

/// A repository from which a plan would remove something.
pub(super) struct Repository<'a> {
    /// Its path where the steps are made.
    pub(super) path: &'a Path,
    /// Where it is now.
    pub(super) real: PathBuf,
    /// Whether the session has made it, so that all of it would go.
    pub(super) is_made: bool,
}

impl Planner<'_> {
    /// Returns true if the user has changed something of a repository since the first of the calls that are taken back, which
    /// begin at `start`.
    pub(super) fn is_used_since(&self, repository: &Repository<'_>, start: usize) -> io::Result<bool> {
        Ok(self.had_other_objects(repository, start)
            || self.was_used(repository, start)?
            || self.has_other_objects(&repository.real.join(OBJECTS))?
            || self.is_used(repository, start)?)
    }

    /// Returns true if calls have found that the user had changed something of a repository between two of them.
    fn was_used(&self, repository: &Repository<'_>, start: usize) -> io::Result<bool> {
        let since = self.first_end(start);
        for (position, entry) in self.history.entries().iter().enumerate().skip(start) {
            let Record::Before { call, was, .. } = entry else { continue };
            let is_in =
                [repository.path, &repository.real].iter().any(|path| repository.has(path, &was.path));
            if !is_in || self.history.is_of_undo(*call) {
                continue;
            }
            let found = Version::of(was.state.clone(), Origin::Recorded(position));
            let is_used = match self.history.left_before(position) {
                Some(_) => self.changed_since(&found)?.is_some(),
                None => was.state.file().is_some_and(|file| since.is_some_and(|since| file.modified > since)),
            };
            if is_used {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if names in a directory of objects were added or removed between two of the calls.
    fn had_other_objects(&self, repository: &Repository<'_>, start: usize) -> bool {
        let objects = [repository.path, &repository.real].map(|top| top.join(OBJECTS));
        let mut since = None;
        // The directories that calls have changed since then.
        let mut changed = HashSet::new();
        for entry in self.history.entries().iter().skip(start) {
            match entry {
                Record::Ended { call, .. } => {
                    since = Some(self.history.end_of(*call));
                    changed.clear();
                }
                // It was put back after the last end.
                Record::Undone { complete: false, .. } => since = None,
                Record::Before { was, around, .. } => {
                    let directory = was
                        .path
                        .parent()
                        .filter(|directory| objects.iter().any(|objects| is_below(directory, objects)));
                    let Some(directory) = directory else { continue };
                    let is_first = changed.insert(directory);
                    if is_first && around.zip(since).is_some_and(|(around, since)| around > since) {
                        return true;
                    }
                    // It may be a directory that the call makes.
                    changed.insert(was.path.as_path());
                }
                Record::Turn { .. }
                | Record::Moved { .. }
                | Record::NotMoved { .. }
                | Record::Left { .. }
                | Record::LeftSoFar { .. }
                | Record::Reaches { .. }
                | Record::Undo { .. }
                | Record::Whole { .. }
                | Record::Undone { complete: true, .. }
                | Record::NotMade { .. }
                | Record::Opens { .. }
                | Record::Closes { .. } => {}
            }
        }
        false
    }

    /// Returns true if something of a repository is not as the session has left it, and was changed since.
    fn is_used(&self, repository: &Repository<'_>, start: usize) -> io::Result<bool> {
        let mut left = vec![repository.real.clone()];
        let mut count = 0;
        while let Some(directory) = left.pop() {
            for name in self.world.names(&directory)? {
                let found = directory.join(&name);
                if !repository.has(&repository.real, &found) {
                    continue;
                }
                count += 1;
                let state = self.world.look(&found)?;
                if matches!(state, State::Directory(_)) {
                    left.push(found);
                    continue;
                }
                let version = Version { real: Some(found.clone()), ..Version::of(state, Origin::Disk) };
                if self.is_of_user(&version, start)? || count > LOOKED_AT {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns true if the user or another program has made a version on the disk since the first of the calls ended that
    /// are taken back.
    pub(super) fn is_of_user(&self, version: &Version, start: usize) -> io::Result<bool> {
        Ok(match (self.changed_since(version)?, &version.real) {
            (Some(None), Some(real)) => {
                self.is_later_than(real, self.first_end(start).unwrap_or(self.history.written))
            }
            (changed, _) => changed.is_some(),
        })
    }

    /// Returns true if names in a directory of objects were added or removed after the last call.
    fn has_other_objects(&self, objects: &Path) -> io::Result<bool> {
        let since = self.history.last_end();
        let below = self.world.names(objects)?.into_iter().map(|name| objects.join(name));
        for path in std::iter::once(objects.to_owned()).chain(below) {
            let is_directory = matches!(self.world.look(&path)?, State::Directory(_));
            if is_directory && self.is_later_than(&path, since) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_later_than(&self, path: &Path, time: (i64, u32)) -> bool {
        self.world.changed_at(path).is_ok_and(|changed| changed > time)
    }

    /// Returns when the first of the calls ended that are taken back; `None` if none has.
    fn first_end(&self, start: usize) -> Option<(i64, u32)> {
        self.history.entries().iter().skip(start).find_map(|entry| {
            let Record::Ended { call, .. } = entry else { return None };
            Some(self.history.end_of(*call))
        })
    }
}

impl Repository<'_> {
    /// Returns true if `path` is in the repository at `top`, and a change of it by the user means that the user has used
    /// the repository.
    fn has(&self, top: &Path, path: &Path) -> bool {
        let Ok(name) = path.strip_prefix(top) else { return false };
        // A look at the state of a repository writes its index. If that goes, it needs no objects.
        !(name.starts_with(OBJECTS) || self.is_made && name == Path::new("index"))
    }
}
