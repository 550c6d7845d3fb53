//! The places at which what commands may do can change: one for each literal path of the base, a rule or a grant.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Caller, RuleLayer, RuleSet};
use crate::location::Location;
use crate::profile::{FileRight, FileRule};
use crate::verdict::Effect;

/// The name of the host's own layers; no policy can have it.
const HOST: &str = "host";

/// What commands may do at a path and below it, until a deeper place changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Where it lies; the path is absolute and canonical.
    pub location: Location,
    /// Whether it can be read, as far as `reach` says.
    pub read: bool,
    /// Whether it can be written; never without `read`.
    pub write: bool,
    /// Whether it can give more than the place around it.
    pub reach: Reach,
}

/// What a place can do to the tree around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It gives what it says, also inside of something hidden: it is a workspace, or a rule that allows or a grant
    /// names it.
    Opens,
    /// It takes away and never gives: whatever names it only restricts.
    Restricts,
}

impl RuleSet {
    /// Returns a place for every literal path that the base, a rule or a grant names, shallow first. Patterns over
    /// names are left out: commands are held to those name by name.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
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

    /// Returns what commands may do at one path.
    #[must_use]
    pub fn place(&self, path: &Path) -> Place {
        let allows = |right| self.answer(path, right, Caller::Command).effect == Effect::Allow;
        let read = allows(FileRight::Read);
        let reach = if self.opens(path) { Reach::Opens } else { Reach::Restricts };
        Place { location: self.locate(path), read, write: read && allows(FileRight::Write), reach }
    }

    /// Returns which directory a path means that commands and tools use.
    #[must_use]
    pub fn locate(&self, path: &Path) -> Location {
        match path.strip_prefix(&self.base.temp) {
            Ok(rest) if self.base.temp.is_absolute() && !self.base.is_shown_in_temp(path) => {
                Location::Session(rest.to_owned())
            }
            _ => Location::Machine(path.to_owned()),
        }
    }

    /// Whether something that can give names this very path.
    pub(super) fn opens(&self, path: &Path) -> bool {
        path == Path::new("/")
            || self.base.workspace.iter().any(|workspace| workspace == path)
            || opening_rules(&self.layers).any(|rule| rule.pattern.literal() == Some(path))
            || self.grants.iter().any(|grant| grant.pattern.literal() == Some(path))
            || self.is_exception_of_host(path)
    }

    /// Whether the host's own protections except this very path from a directory that they close, as `known_hosts` in
    /// `~/.ssh`. It is then as the rules around that directory say. Exceptions of other layers that only tighten stay
    /// closed to commands: whether what lies around them is shown is not known here.
    fn is_exception_of_host(&self, path: &Path) -> bool {
        let host = self.layers.iter().filter(|layer| layer.tightens && layer.name == HOST);
        host.flat_map(|layer| &layer.profile.files)
            .any(|rule| rule.effect == Effect::Allow && rule.pattern.literal() == Some(path))
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

/// The rules that can show something to commands: those that allow reading or writing, of layers that count in full.
pub(super) fn opening_rules(layers: &[RuleLayer]) -> impl Iterator<Item = &FileRule> {
    let rules = layers.iter().filter(|layer| !layer.tightens).flat_map(|layer| &layer.profile.files);
    rules.filter(|rule| {
        rule.effect == Effect::Allow && (rule.rights.read || rule.rights.write) && rule.condition.is_empty()
    })
}
