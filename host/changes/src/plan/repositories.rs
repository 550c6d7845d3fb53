//! Git repositories in a plan: objects that the user's commits may need stay.
//!
//! An undo of what the agent's git has made would remove its objects. Once the user has committed on top of them, or
//! only staged something, the new commits may lead to them, and git keeps no list of what leads to an object. So objects
//! stay if the user has changed anything of the repository since. They also stay if other objects cannot be given back,
//! because a pack may have the only copies of those. If nothing leads to an object, `git gc` removes it.
//!
//! References are files like others, except that a loose one is not given back if it would hide what the user has packed
//! since.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::Planner;
use super::step::{Act, Step, Why};
use super::used_repository::Repository;
use crate::paths::{OBJECTS, is_below, is_temporary};
use crate::record::Record;
use crate::state::{Content, State};

/// The directory of loose references.
pub(super) const REFERENCES: &str = "refs";

/// What the user's commits may need of a repository: objects, the list of commits without their parents, and the heads of
/// other worktrees.
const NEEDED: [&str; 3] = [OBJECTS, SHALLOW, "worktrees"];

/// The commits whose parents were not fetched.
const SHALLOW: &str = "shallow";

/// What becomes of the files that a plan would remove from a repository.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spared {
    Nothing,
    /// The user has used the repository since.
    Needed,
    /// The user has used a repository that the session has made.
    All,
}

impl Planner<'_> {
    /// Leaves steps out that would remove what the user's commits may need, and gives back what later calls have removed of
    /// that. The plan takes back the entries from `start` on.
    pub(super) fn without_needed(&self, steps: Vec<Step>, start: usize) -> io::Result<Vec<Step>> {
        let repositories = self.used_repositories(&steps, start)?;
        if repositories.is_empty() {
            return Ok(steps);
        }
        let mut kept = Vec::new();
        let mut missing = self.removed_since(&repositories, start)?;
        let packed = self.packed_since(repositories.keys(), (&steps, start))?;
        for step in steps {
            // The repository of a submodule is below another one, and comes after it.
            let spared = repositories.iter().rev().find(|(repository, _)| is_below(&step.path, repository));
            let Some((repository, spared)) = spared else {
                kept.push(step);
                continue;
            };
            let is_needed = is_needed(&step.path, repository);
            if (is_removal(&step) || is_stuck(&step)) && (is_needed || *spared == Spared::All)
                || step.path == repository.join(SHALLOW)
            {
                continue;
            }
            // Git would take a former version beside an object for a damaged one.
            if let Act::Leave { beside: Some(former), .. } = &step.act
                && is_needed
            {
                if self.world.look(&step.path)?.is_absent() {
                    missing.entry(step.path.clone()).or_insert_with(|| former.clone());
                }
                continue;
            }
            if matches!(step.act, Act::Restore(_)) {
                missing.remove(&step.path);
            }
            kept.push(packed.or_left(step, repository));
        }
        // Sorted by path, so each directory is made before its files.
        kept.extend(missing.into_iter().map(|(path, state)| Step::new(path, None, Act::Restore(state))));
        let of_session = repositories.into_iter().filter(|(_, spared)| *spared == Spared::All);
        let act = || Act::Leave { why: Why::MadeAndChanged, beside: None };
        kept.extend(of_session.map(|(path, _)| Step::new(path, None, act())));
        Ok(kept)
    }

    /// Returns the repositories that the user has used, or whose objects cannot all be given back, among those of which the
    /// plan, or one of the calls that it takes back, removes something.
    fn used_repositories(&self, steps: &[Step], start: usize) -> io::Result<BTreeMap<PathBuf, Spared>> {
        let removed = steps.iter().filter(|step| is_removal(step)).map(|step| step.path.as_path());
        let recorded = self.history.entries().iter().skip(start).filter_map(|entry| {
            if let Record::Before { was, .. } = entry { Some(was.path.as_path()) } else { None }
        });
        let mut known: BTreeSet<&Path> = BTreeSet::new();
        let mut used = BTreeMap::new();
        for path in removed.chain(recorded).flat_map(around_parts) {
            if known.insert(path) {
                let head = path.join("HEAD");
                let is_made =
                    steps.iter().any(|step| step.path == head && (is_removal(step) || is_stuck(step)));
                let mut spared = self.spared(path, is_made, start)?;
                if spared == Spared::Nothing && steps.iter().any(|step| is_lost(step, path)) {
                    spared = Spared::Needed;
                }
                if spared != Spared::Nothing {
                    used.insert(path.to_owned(), spared);
                }
            }
        }
        Ok(used)
    }

    /// Returns the objects and worktree entries of these repositories that calls have recorded and that no longer exist,
    /// with their last recorded states.
    fn removed_since(
        &self,
        repositories: &BTreeMap<PathBuf, Spared>,
        start: usize,
    ) -> io::Result<BTreeMap<PathBuf, State>> {
        let mut missing = BTreeMap::new();
        for entry in self.history.entries().iter().skip(start).rev() {
            let Record::Before { was, .. } = entry else { continue };
            let is_kept = match &was.state {
                State::File(file) => matches!(file.content, Content::Kept(_)),
                State::Directory(_) => true,
                State::Absent | State::Link { .. } | State::Special { .. } => false,
            };
            let is_of_use = is_kept && !is_temporary(&was.path);
            if is_of_use
                && repositories.keys().any(|repository| is_needed(&was.path, repository))
                && self.world.look(&was.path)?.is_absent()
            {
                missing.entry(was.path.clone()).or_insert_with(|| was.state.clone());
            }
        }
        Ok(missing)
    }

    fn spared(&self, path: &Path, is_made: bool, start: usize) -> io::Result<Spared> {
        // A move of the agent may be taken back before or after the removal.
        for real in [Some(path.to_owned()), self.real(path)].into_iter().flatten() {
            let is_file = matches!(self.world.look(&real.join("HEAD"))?, State::File(_) | State::Link { .. });
            if !is_file || !matches!(self.world.look(&real.join(REFERENCES))?, State::Directory(_)) {
                continue;
            }
            let repository = Repository { path, real, is_made };
            if !self.is_used_since(&repository, start)? {
                return Ok(Spared::Nothing);
            }
            return Ok(if is_made { Spared::All } else { Spared::Needed });
        }
        Ok(Spared::Nothing)
    }
}

fn is_removal(step: &Step) -> bool {
    matches!(step.act, Act::Restore(State::Absent))
}

/// Returns true if a name that the session made stays because of the user.
fn is_stuck(step: &Step) -> bool {
    matches!(step.act, Act::Leave { why: Why::MadeAndChanged | Why::NotEmpty, beside: None })
}

/// Returns true if a step cannot give an object of a repository back.
fn is_lost(step: &Step, repository: &Path) -> bool {
    matches!(step.act, Act::Leave { why: Why::Lost(_), .. }) && is_needed(&step.path, repository)
}

fn is_needed(path: &Path, repository: &Path) -> bool {
    NEEDED.iter().any(|name| is_below(path, &repository.join(name)))
}

/// Returns the directories in a path that may be repositories, because of the name that follows.
fn around_parts(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors().filter_map(|part| {
        let above = part.parent()?;
        let has_objects = NEEDED.iter().any(|name| part.ends_with(name));
        // The logs of references look like a repository.
        let has_references = part.ends_with(REFERENCES) && !above.ends_with("logs");
        (has_objects || has_references).then_some(above)
    })
}
