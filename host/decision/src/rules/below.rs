//! What the rules say about names that are not known yet, below a directory.

use std::path::Path;

use super::RuleSet;
use crate::pattern::steps::Steps;
use crate::profile::FileRight;
use crate::verdict::Effect;

impl RuleSet {
    /// Whether a rule restricts `right` on some name at or below `directory`, there now or later.
    #[must_use]
    pub fn restricts_below(&self, directory: &Path, right: FileRight) -> bool {
        let rules = self.layers.iter().flat_map(|layer| &layer.profile.files);
        rules
            .filter(|rule| rule.effect != Effect::Allow && rule.rights.contains(right))
            .any(|rule| Steps::of(&rule.pattern).is_none_or(|steps| steps.can_reach_below(directory)))
    }

    /// Whether the rules say the same of every name below one directory as of that name below the other.
    #[must_use]
    pub fn is_alike_below(&self, one: &Path, other: &Path) -> bool {
        // Patterns that are not in the tree are not followed half-way: who moves a directory looks into it.
        self.globs.is_empty()
            && self.grants.is_empty()
            && self.base.is_alike_below(one, other)
            && self.trie.standing(one) == self.trie.standing(other)
    }
}
