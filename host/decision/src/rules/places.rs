//! The rule set as commands meet it: one entry for each literal path at which something may change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Caller, RuleLayer, RuleSet};
use crate::pattern::FilePattern;
use crate::profile::{FileRight, FileRule};
use crate::verdict::Effect;

/// What commands may do at a path and below it, until a deeper place changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Absolute and canonical.
    pub path: PathBuf,
    /// Whether it is seen.
    pub read: bool,
    /// Whether it can be written; never without `read`.
    pub write: bool,
}

impl RuleSet {
    /// Every literal path that the base, a rule or a grant names, shallow first, with what commands
    /// may do there. Patterns over names are not in it: whoever holds commands to those
    /// asks for each name as it is used.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        let mut paths: BTreeSet<&Path> = BTreeSet::new();
        paths.insert(Path::new("/"));
        paths.extend(self.base.workspace.iter().map(PathBuf::as_path));
        paths.extend(self.base.closed.iter().map(PathBuf::as_path));
        paths.insert(&self.base.temp);
        for rule in self.layers.iter().flat_map(|layer| &layer.profile.files) {
            if let FilePattern::Exact(path) | FilePattern::Tree(path) = &rule.pattern {
                paths.insert(path);
            }
        }
        paths.extend(self.grants.iter().filter_map(|grant| grant.literal()).map(PathBuf::as_path));
        let absolute = paths.into_iter().filter(|path| path.is_absolute());
        let mut places: Vec<Place> = absolute.map(|path| self.place(path)).collect();
        places.sort_by_key(|place| place.path.components().count());
        places
    }

    /// What commands may do at one path.
    #[must_use]
    pub fn place(&self, path: &Path) -> Place {
        let allows = |right| self.answer(path, right, Caller::Command).effect == Effect::Allow;
        let read = allows(FileRight::Read);
        Place { path: path.to_owned(), read, write: read && allows(FileRight::Write) }
    }

    /// The rules over names that restrict reading, each with its layer. They hold for tools; commands need a
    /// mechanism that sees each name as it is read.
    pub fn patterns_on_reading(&self) -> impl Iterator<Item = (&RuleLayer, &FileRule)> {
        self.restricting_patterns(FileRight::Read)
    }

    /// The rules over names that restrict writing and not reading, each with its layer. Commands need a mechanism
    /// that sees each name as it is made.
    pub fn patterns_on_writing(&self) -> impl Iterator<Item = (&RuleLayer, &FileRule)> {
        self.restricting_patterns(FileRight::Write).filter(|(_, rule)| !rule.rights.contains(FileRight::Read))
    }

    /// The rules over names that restrict `right`.
    pub(super) fn restricting_patterns(
        &self,
        right: FileRight,
    ) -> impl Iterator<Item = (&RuleLayer, &FileRule)> {
        self.layers.iter().flat_map(move |layer| {
            let rules = layer.profile.files.iter();
            rules
                .filter(move |rule| {
                    rule.effect != Effect::Allow && !rule.pattern.is_literal() && rule.rights.contains(right)
                })
                .map(move |rule| (layer, rule))
        })
    }
}
