//! Places: the paths at which the access of commands can change, one for each literal path in the base, a rule or a
//! grant.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::rule_set::RuleSet;
use super::ruling::{Caller, RuleLayer};
use crate::location::Location;
use crate::profile::{FileRight, FileRule};
use crate::verdict::Effect;

/// The access of commands at a path and below it, until a deeper place changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulePlace {
    /// The location; its path is absolute and canonical.
    pub location: Location,
    /// Whether it is readable, as far as `reach` says.
    pub read: bool,
    /// Whether it is writable; never without `read`.
    pub write: bool,
    /// Whether it can give more access than its surroundings.
    pub reach: Reach,
}

/// Whether a place can widen access within its surroundings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It gives its access even inside a hidden tree: it is a workspace, or an allowing rule or a grant names it.
    Opens,
    /// It only restricts and never gives access.
    Restricts,
}

impl RuleSet {
    /// Returns a place for every literal path that the base, a rule or a grant names, shallow first. Patterns over
    /// names are left out: they are enforced name by name.
    #[must_use]
    pub fn places(&self) -> Vec<RulePlace> {
        let mut paths: BTreeSet<&Path> = BTreeSet::new();
        paths.insert(Path::new("/"));
        paths.extend(self.base.workspace.iter().map(PathBuf::as_path));
        paths.extend(self.base.closed.iter().map(PathBuf::as_path));
        let rules = self.layers.iter().flat_map(|layer| &layer.profile.files);
        paths.extend(rules.filter_map(|rule| rule.pattern.literal()));
        paths.extend(self.grants.iter().filter_map(|grant| grant.pattern.literal()));
        let mut paths: Vec<&Path> = paths.into_iter().filter(|path| path.is_absolute()).collect();
        paths.sort_by_key(|path| path.components().count());
        paths.into_iter().map(|path| self.place(path)).collect()
    }

    /// Returns the access of commands at one path.
    #[must_use]
    pub fn place(&self, path: &Path) -> RulePlace {
        let allows = |right| self.answer(path, right, Caller::Command).effect == Effect::Allow;
        let read = allows(FileRight::Read);
        let reach = if self.opens(path) { Reach::Opens } else { Reach::Restricts };
        RulePlace { location: self.locate(path), read, write: read && allows(FileRight::Write), reach }
    }

    /// Returns the location that a path means to commands and tools.
    #[must_use]
    pub fn locate(&self, path: &Path) -> Location {
        match path.strip_prefix(&self.base.temp) {
            Ok(rest) if self.base.temp.is_absolute() && !self.base.is_shown_in_temp(path) => {
                Location::Session(rest.to_owned())
            }
            _ if self.base.is_own(path) => Location::Session(path.to_owned()),
            _ => Location::Machine(path.to_owned()),
        }
    }

    /// Returns true if a workspace, an allowing rule or a grant names exactly this path.
    pub(super) fn opens(&self, path: &Path) -> bool {
        path == Path::new("/") || self.opened.contains(path)
    }

    /// Returns the rules over names that restrict reading, each with its layer. Tools follow them; for commands they
    /// require a mechanism that sees each name as it is read.
    pub fn patterns_on_reading(&self) -> impl Iterator<Item = (&RuleLayer, &FileRule)> {
        self.restricting_patterns(FileRight::Read)
    }

    /// Returns the rules over names that restrict writing but not reading, each with its layer. For commands they
    /// require a mechanism that sees each name as it is created.
    pub fn patterns_on_writing(&self) -> impl Iterator<Item = (&RuleLayer, &FileRule)> {
        self.restricting_patterns(FileRight::Write).filter(|(_, rule)| !rule.rights.contains(FileRight::Read))
    }

    /// Returns the rules over names that restrict `right`.
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
