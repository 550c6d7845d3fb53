//! The part of one policy in a decision, and whether another part can lead to a milder decision.

use std::fmt;

use portcullis_decision::{Effect, Ruling};
use serde::Serialize;

/// The part of one policy in the decision on one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Contribution {
    /// Its verdict; `None` if it abstains.
    pub(crate) verdict: Option<Effect>,
    /// The answer of its standing rules; `None` if no rule matches.
    pub(crate) rule: Option<Effect>,
    /// The host's answer if no rule of any policy matches; `None` for requests without rules.
    pub(crate) base: Option<Effect>,
}

/// The other policies with which a change loosens a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beside {
    /// No other policy has an opinion.
    Nothing,
    /// Another policy allows the request.
    Allowing,
}

impl Beside {
    const EACH: [Self; 2] = [Self::Nothing, Self::Allowing];

    fn opinion(self) -> Option<Effect> {
        match self {
            Self::Nothing => None,
            Self::Allowing => Some(Effect::Allow),
        }
    }
}

impl fmt::Display for Beside {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Nothing => "alone",
            Self::Allowing => "beside a policy that allows it",
        })
    }
}

impl Contribution {
    /// Returns the part of standing rules alone.
    pub(crate) fn of_ruling(ruling: &Ruling, base: Effect) -> Self {
        let rule = (ruling.policy != "base").then_some(ruling.effect);
        Self { verdict: None, rule, base: Some(base) }
    }

    /// Returns the policy's own answer: the stricter of its verdict and its rules.
    pub(crate) fn own(self) -> Option<Effect> {
        self.verdict.max(self.rule)
    }

    /// Returns the others beside which the decision is milder with `new` in place of this; `None` if it never is.
    ///
    /// The strictest opinion decides, so others that ask or deny cannot make a difference that these two do not show.
    pub(crate) fn loosened_by(self, new: Self) -> Option<Beside> {
        Beside::EACH.into_iter().find(|beside| {
            let other = beside.opinion();
            new.decided(other) < self.decided(other)
        })
    }

    /// Returns the decision beside another policy whose verdict and rules are both `other`.
    fn decided(self, other: Option<Effect>) -> Effect {
        let ruling = self.base.map(|base| self.rule.max(other).unwrap_or(base));
        self.verdict.max(other).max(ruling).unwrap_or(Effect::Ask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPINIONS: [Option<Effect>; 4] = [None, Some(Effect::Allow), Some(Effect::Ask), Some(Effect::Deny)];

    fn all() -> Vec<Contribution> {
        let mut all = Vec::new();
        for base in OPINIONS {
            for verdict in OPINIONS {
                for rule in OPINIONS.into_iter().filter(|rule| base.is_some() || rule.is_none()) {
                    all.push(Contribution { verdict, rule, base });
                }
            }
        }
        all
    }

    #[test]
    fn two_kinds_of_others_show_what_all_kinds_show() {
        for old in all() {
            for new in all().into_iter().filter(|new| new.base == old.base) {
                let decided = |one: Contribution, verdict: Option<Effect>, rule: Option<Effect>| {
                    let ruling = one.base.map(|base| one.rule.max(rule).unwrap_or(base));
                    one.verdict.max(verdict).max(ruling).unwrap_or(Effect::Ask)
                };
                let mut pairs =
                    OPINIONS.iter().flat_map(|verdict| OPINIONS.iter().map(move |rule| (*verdict, *rule)));
                let is_looser =
                    pairs.any(|(verdict, rule)| decided(new, verdict, rule) < decided(old, verdict, rule));
                assert_eq!(old.loosened_by(new).is_some(), is_looser, "{old:?} → {new:?}");
            }
        }
    }

    #[test]
    fn a_question_that_is_gone_loosens_beside_a_policy_that_allows() {
        let verdict = |verdict| Contribution { verdict, rule: None, base: None };
        let (ask, abstain) = (verdict(Some(Effect::Ask)), verdict(None));
        assert_eq!(ask.loosened_by(abstain), Some(Beside::Allowing));
        assert_eq!(abstain.loosened_by(ask), None);
        assert_eq!(abstain.loosened_by(verdict(Some(Effect::Allow))), Some(Beside::Nothing));
    }
}
