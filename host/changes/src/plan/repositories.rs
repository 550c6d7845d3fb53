//! Git repositories in a plan: objects that the user's commits may need stay.
//!
//! An undo of what the agent's git has made would remove its objects. Once the user has committed on top of them, or
//! only staged something, his commits may lead to them, and git keeps no list of what leads to an object. So objects stay
//! if anything else of the repository was changed since. If nothing leads to them, `git gc` removes them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::step::{Act, Step, Why, World};
use crate::history::History;
use crate::state::State;

/// How many names of a repository are looked at. One with more counts as used.
const LOOKED_AT: usize = 50_000;

/// What becomes of the files that a plan would remove from a repository.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spared {
    Nothing,
    /// The user has used the repository since.
    Objects,
    /// The user has used a repository that the session has made.
    All,
}

/// Leaves steps out that would remove objects which the user's commits may need.
pub(super) fn without_objects(
    steps: Vec<Step>,
    history: &History,
    world: &dyn World,
) -> io::Result<Vec<Step>> {
    let removed: BTreeSet<&Path> =
        steps.iter().filter(|step| is_removal(step)).map(|step| step.path.as_path()).collect();
    let mut repositories: BTreeMap<PathBuf, Spared> = BTreeMap::new();
    for path in &removed {
        let Some(repository) = repository_of(path) else { continue };
        if !repositories.contains_key(repository) {
            let is_made = removed.contains(repository.join("HEAD").as_path());
            repositories.insert(repository.to_owned(), spared(repository, is_made, history, world)?);
        }
    }
    let is_spared = |step: &Step| {
        let is_in = |(repository, spared): (&PathBuf, &Spared)| match spared {
            Spared::Nothing => false,
            Spared::Objects => step.path.starts_with(repository.join("objects")),
            Spared::All => step.path.starts_with(repository),
        };
        is_removal(step) && repositories.iter().any(is_in)
    };
    let of_session = repositories.iter().filter(|(_, spared)| **spared == Spared::All).map(|(path, _)| path);
    let act = || Act::Leave { why: Why::MadeAndChanged, beside: None };
    let left: Vec<_> = of_session.map(|path| Step::new(path.clone(), None, act())).collect();
    Ok(steps.into_iter().filter(|step| !is_spared(step)).chain(left).collect())
}

fn is_removal(step: &Step) -> bool {
    matches!(step.act, Act::Restore(State::Absent))
}

/// Returns the directory around the topmost `objects` of a path.
fn repository_of(path: &Path) -> Option<&Path> {
    path.ancestors().filter(|above| above.ends_with("objects")).last()?.parent()
}

fn spared(path: &Path, is_made: bool, history: &History, world: &dyn World) -> io::Result<Spared> {
    let is_file = matches!(world.look(&path.join("HEAD"))?, State::File(_) | State::Link { .. });
    let is_repository = is_file && matches!(world.look(&path.join("refs"))?, State::Directory(_));
    let Some(last) = history.last_end().filter(|_| is_repository) else { return Ok(Spared::Nothing) };
    let mut left = vec![path.to_owned()];
    let mut count = 0;
    while let Some(directory) = left.pop() {
        for name in world.names(&directory)? {
            let found = directory.join(&name);
            // A look at the state of a repository that is to go writes its index.
            if directory == path && (name == "objects" || is_made && name == "index") {
                continue;
            }
            count += 1;
            match world.look(&found)? {
                State::Directory(_) => left.push(found),
                State::Absent => {}
                _ if count <= LOOKED_AT && world.changed_at(&found)? <= last => {}
                State::File(_) | State::Link { .. } | State::Special { .. } => {
                    return Ok(if is_made { Spared::All } else { Spared::Objects });
                }
            }
        }
    }
    Ok(Spared::Nothing)
}
