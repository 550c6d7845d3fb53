//! Rules on connections.

use super::{BaseRuling, RuleSet, Ruling};
use crate::profile::NetworkRule;
use crate::request::{Endpoint, ProcessInfo};
use crate::verdict::Effect;

impl RuleSet {
    /// Answers for one outgoing connection. Where no layer has an opinion, it asks.
    #[must_use]
    pub fn connection(&self, target: &Endpoint, port: u16, process: &ProcessInfo) -> Ruling {
        let mut strictest: Option<Ruling> = None;
        for layer in &self.layers {
            let mut rules = layer.profile.network.iter().rev();
            let last = rules.find(|rule| rule.target.matches(target, port) && program_matches(rule, process));
            let Some(rule) = last else { continue };
            if strictest.as_ref().is_none_or(|known| rule.effect > known.effect) {
                strictest = Some(Ruling {
                    effect: rule.effect,
                    policy: layer.name.clone(),
                    rule: rule.id.clone(),
                    reason: rule.reason.clone(),
                    setting: rule.setting.clone(),
                    conceal: false,
                });
            }
        }
        strictest.unwrap_or_else(|| {
            let (rule, reason) = ("base.network", "no rule names this host");
            BaseRuling { effect: Effect::Ask, rule, reason }.into()
        })
    }
}

/// A rule for a program matches its whole path or its last component.
fn program_matches(rule: &NetworkRule, process: &ProcessInfo) -> bool {
    if rule.program == "*" || rule.program == process.program {
        return true;
    }
    if process.program.is_empty() {
        // The program is not known: a rule that restricts is taken as meant, one that allows is not.
        return rule.effect != Effect::Allow;
    }
    !rule.program.contains('/') && process.program.rsplit('/').next() == Some(rule.program.as_str())
}
