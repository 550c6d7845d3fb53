//! The rules that a policy declares.

use std::collections::BTreeSet;

use portcullis_policy_runtime::Description;

/// The id that stands for the rules of a text in the configuration, which `describe` does not know.
pub(crate) const RULES_OF_TEXT: &str = "*";

/// The declared rules.
#[derive(Debug)]
pub(crate) struct Declared<'a>(BTreeSet<&'a str>);

impl<'a> Declared<'a> {
    /// Returns the rules in a description.
    pub(crate) fn of(description: &'a Description) -> Self {
        Self(description.rules.iter().map(|rule| rule.id.as_str()).collect())
    }

    /// Returns true if a verdict may name this rule.
    pub(crate) fn has(&self, rule: &str) -> bool {
        self.0.contains(rule) || self.0.contains(RULES_OF_TEXT)
    }
}
