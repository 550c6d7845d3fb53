//! Answers of the rules about still unknown names below a directory.

use std::path::Path;

use super::{Caller, RuleSet};
use crate::pattern::FilePattern;
use crate::pattern::steps::Steps;
use crate::profile::FileRight;
use crate::verdict::Effect;

/// A name that no rule mentions.
pub(super) const ANY_NAME: &str = "\u{1}";

impl RuleSet {
    /// Returns true if a rule restricts `right` on some existing or future name at or below `directory`, or if a region
    /// begins below it.
    #[must_use]
    pub fn restricts_below(&self, directory: &Path, right: FileRight) -> bool {
        let rules = self.layers.iter().flat_map(|layer| &layer.profile.files);
        let mut tops = self.base.tops();
        if tops.any(|(_, top)| top.starts_with(directory) && top != directory) {
            return true;
        }
        rules
            .filter(|rule| rule.effect != Effect::Allow && rule.rights.contains(right))
            .any(|rule| Steps::split(&rule.pattern).is_none_or(|steps| steps.can_reach_below(directory)))
    }

    /// Returns true if every rule that restricts a path below `path`, for reading or writing, restricts the same
    /// relative path below `other` as well. Patterns with alternatives or classes are not considered.
    #[must_use]
    pub fn restricts_alike_below(&self, path: &Path, other: &Path) -> bool {
        let rules = self.layers.iter().flat_map(|layer| &layer.profile.files);
        rules
            .filter(|rule| rule.effect != Effect::Allow)
            .filter(|rule| {
                [FileRight::Read, FileRight::Write].iter().any(|right| rule.rights.contains(*right))
            })
            .filter_map(|rule| Steps::split(&rule.pattern))
            .all(|steps| steps.reaches_alike_below(path, other))
    }

    /// Returns true if permission for `directory` extends to every existing or future name below it: no rule forbids
    /// one, and none asks except the rule that was answered for the directory.
    #[must_use]
    pub fn is_open_below(&self, directory: &Path, right: FileRight, caller: Caller) -> bool {
        let own = self.answer(directory, right, caller);
        let is_open = |path: &Path| {
            let answer = self.answer(path, right, caller);
            answer.effect == Effect::Allow
                || answer.effect == Effect::Ask && (answer.policy, answer.rule) == (own.policy, own.rule)
        };
        let has_open_names = |top: &Path| is_open(top) && is_open(&top.join(ANY_NAME));
        let is_below = |path: &&Path| *path != directory && path.starts_with(directory);
        let rules = self.layers.iter().flat_map(|layer| &layer.profile.files);
        let mut speaking = rules.filter(|rule| rule.rights.contains(right));
        has_open_names(directory)
            && speaking.all(|rule| match &rule.pattern {
                FilePattern::Exact(top) | FilePattern::Tree(top) => {
                    !is_below(&top.as_path()) || has_open_names(top)
                }
                pattern @ (FilePattern::Glob(_) | FilePattern::Name { .. }) => {
                    rule.effect == Effect::Allow
                        || Steps::split(pattern).is_some_and(|steps| !steps.can_reach_below(directory))
                }
            })
            && self.base.tops().map(|(_, top)| top.as_path()).filter(is_below).all(has_open_names)
    }

    /// Returns true if the rules treat every name below one directory like that name below the other.
    #[must_use]
    pub fn is_alike_below(&self, one: &Path, other: &Path) -> bool {
        // Patterns outside the tree cannot be followed part-way: the caller must then examine a moving directory.
        self.globs.is_empty()
            && self.grants.is_empty()
            && self.base.is_alike_below(one, other)
            && self.trie.standing(one) == self.trie.standing(other)
    }
}
