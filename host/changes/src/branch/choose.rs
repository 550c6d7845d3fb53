//! Which changes of a branch are committed, and which are left.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::change::{BranchChange, Obstacle};

/// Why a change is left in the branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// It was not named.
    NotNamed,
    /// It cannot be committed, or is a conflict.
    Obstacle(Obstacle),
    /// Other programs of the user execute it or take settings from it, and it was not asked for.
    Protected(String),
    /// The rules do not allow it.
    Refused(String),
    /// It needs the change of another name, which is left.
    Needs(PathBuf),
}

impl fmt::Display for Left {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNamed => formatter.write_str("not named"),
            Self::Obstacle(obstacle) => obstacle.fmt(formatter),
            Self::Protected(reason) => write!(formatter, "protected: {reason}"),
            Self::Refused(reason) => write!(formatter, "refused: {reason}"),
            Self::Needs(path) => write!(formatter, "`{}` is left", path.display()),
        }
    }
}

/// Returns the changes that are left, each with the reason. `paths` are the chosen ones, all if it is empty; `left`
/// returns the reason that a change has by itself.
pub fn choose(
    changes: &[BranchChange],
    paths: &[PathBuf],
    left: impl Fn(&BranchChange) -> Option<Left>,
) -> BTreeMap<PathBuf, Left> {
    let by_path: BTreeMap<&Path, &BranchChange> =
        changes.iter().map(|change| (change.path.as_path(), change)).collect();
    let is_named = |change: &BranchChange| {
        let holds = |named: &PathBuf| {
            // A file needs the directories that it is in.
            change.path.starts_with(named) || change.makes_directory() && named.starts_with(&change.path)
        };
        paths.is_empty() || paths.iter().any(holds)
    };
    let reason = |change: &BranchChange| if is_named(change) { left(change) } else { Some(Left::NotNamed) };
    let mut all: BTreeMap<PathBuf, Left> =
        changes.iter().filter_map(|change| Some((change.path.clone(), reason(change)?))).collect();
    // A directory that still holds something stays.
    for path in all.keys().cloned().collect::<Vec<_>>() {
        for around in path.ancestors().skip(1) {
            if by_path.get(around).is_some_and(|change| change.takes_directory()) {
                all.entry(around.to_owned()).or_insert_with(|| Left::Needs(path.clone()));
            }
        }
    }
    // Without its directory nothing can be made in it.
    for change in changes {
        let missing = change.path.ancestors().skip(1).find(|around| {
            all.contains_key(*around) && by_path.get(around).is_some_and(|change| change.makes_directory())
        });
        if let Some(missing) = missing.map(Path::to_owned) {
            all.entry(change.path.clone()).or_insert(Left::Needs(missing));
        }
    }
    all
}
