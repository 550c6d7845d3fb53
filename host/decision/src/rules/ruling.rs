//! The layers of rules, and the answers of the rule set.

use serde::{Deserialize, Serialize};

use crate::profile::{FileRule, Profile};
use crate::verdict::Effect;

/// The subject of a file access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A file tool, which the host carries out.
    Tool,
    /// A confined command.
    Command,
}

/// The rules of one policy, or the settings' ceiling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleLayer {
    /// Name of the policy, or `settings`.
    pub name: String,
    /// Its rules.
    pub profile: Profile,
    /// Whether the layer can only tighten: it has no opinion where it allows.
    #[serde(default)]
    pub tightens: bool,
}

/// The answer of the rule set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// The answer.
    pub effect: Effect,
    /// The source of the answer: a policy, `settings`, `base` or `grant`.
    pub policy: String,
    /// Id of the rule.
    pub rule: String,
    /// One sentence for the user.
    pub reason: String,
    /// The setting that the rule came from, if known.
    pub setting: String,
    /// Whether the path is invisible to commands that may not read it.
    pub conceal: bool,
}

/// The source name of the base's answers.
pub(super) const BASE: &str = "base";

/// An answer of the rule set in short form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleAnswer<'a> {
    /// The answer.
    pub effect: Effect,
    /// The source of the answer.
    pub policy: &'a str,
    /// Id of the rule.
    pub rule: &'a str,
}

impl RuleAnswer<'_> {
    /// Returns true if no rule matches, and the base answers.
    #[must_use]
    pub fn is_of_the_base(&self) -> bool {
        self.policy == BASE
    }
}

/// An answer of the base.
pub(super) struct BaseRuling {
    pub(super) effect: Effect,
    pub(super) rule: &'static str,
    pub(super) reason: &'static str,
}

impl From<BaseRuling> for Ruling {
    fn from(ruling: BaseRuling) -> Self {
        let BaseRuling { effect, rule, reason } = ruling;
        Self {
            effect,
            policy: BASE.to_owned(),
            rule: rule.to_owned(),
            reason: reason.to_owned(),
            setting: String::new(),
            conceal: effect != Effect::Allow,
        }
    }
}

impl Ruling {
    pub(super) fn of_rule(layer: &RuleLayer, rule: &FileRule) -> Self {
        Self {
            effect: rule.effect,
            policy: layer.name.clone(),
            rule: rule.id.clone(),
            reason: rule.reason.clone(),
            setting: rule.setting.clone(),
            conceal: rule.conceal,
        }
    }
}

/// A rule by position: its layer, and its index among the file rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RuleRef {
    pub(super) layer: usize,
    pub(super) rule: usize,
}
