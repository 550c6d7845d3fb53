//! Statistics of logs.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use crate::record::{Line, Record, VerdictLine};

/// Maximum length of an outcome to count by itself, as in `done`, `exit 127`, `signal 9`.
///
/// Longer ones are specific errors with paths.
const LONGEST_OUTCOME: usize = 12;

/// Statistics of several logs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Number of logs.
    pub logs: u64,
    /// Number of unreadable lines.
    pub unreadable: u64,
    /// Time of the first decision, in milliseconds since 1970-01-01 UTC.
    pub first_at_ms: Option<u64>,
    /// Time of the last decision.
    pub last_at_ms: Option<u64>,
    /// Number of decisions by effect.
    pub effects: BTreeMap<String, u64>,
    /// Number of decisions by kind of action, then by effect.
    pub actions: BTreeMap<String, BTreeMap<String, u64>>,
    /// Number of answered questions, by the author of the answer.
    pub answered: BTreeMap<String, u64>,
    /// Number of outcomes; all longer error texts count as `error`.
    pub outcomes: BTreeMap<String, u64>,
    /// Number of allowed actions without an outcome: still running, or the host was stopped.
    pub open: u64,
    /// The rules that decided, the most frequent first.
    pub rules: Vec<RuleCount>,
    /// Statistics of the policies.
    pub policies: BTreeMap<String, PolicyStats>,
    /// Median time of a decision, in microseconds.
    pub median_us: u64,
    /// Maximum time of a decision, in microseconds.
    pub longest_us: u64,
    #[serde(skip)]
    costs: Vec<u64>,
}

/// The number of decisions of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleCount {
    /// The author of the decision.
    pub policy: String,
    /// The rule.
    pub rule: String,
    /// The effect.
    pub effect: String,
    /// The number.
    pub count: u64,
}

/// Statistics of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyStats {
    /// Number of votes by verdict.
    pub verdicts: BTreeMap<String, u64>,
    /// Total time, in microseconds.
    pub total_us: u64,
}

impl Stats {
    /// Adds one log.
    pub fn add<E>(&mut self, lines: impl Iterator<Item = Result<Line, E>>) {
        self.logs = self.logs.saturating_add(1);
        let mut open = HashSet::new();
        for line in lines {
            let Ok(line) = line else {
                self.unreadable = self.unreadable.saturating_add(1);
                continue;
            };
            match line.record {
                Record::Verdict(verdict) => {
                    if verdict.effect == "allow" {
                        open.insert(line.sequence);
                    }
                    self.verdict(&verdict);
                }
                Record::Outcome(outcome) => {
                    open.remove(&outcome.verdict);
                    let is_word = outcome.result.len() <= LONGEST_OUTCOME;
                    add(&mut self.outcomes, if is_word { &outcome.result } else { "error" });
                }
            }
        }
        self.open = self.open.saturating_add(u64::try_from(open.len()).unwrap_or(u64::MAX));
        self.rules.sort_by(|one, two| two.count.cmp(&one.count).then_with(|| one.rule.cmp(&two.rule)));
        self.costs.sort_unstable();
        self.median_us = self.costs.get(self.costs.len() / 2).copied().unwrap_or(0);
        self.longest_us = self.costs.last().copied().unwrap_or(0);
    }

    fn verdict(&mut self, verdict: &VerdictLine) {
        let at = verdict.at_ms;
        self.first_at_ms = Some(self.first_at_ms.map_or(at, |first| first.min(at)));
        self.last_at_ms = Some(self.last_at_ms.map_or(at, |last| last.max(at)));
        add(&mut self.effects, &verdict.effect);
        add(self.actions.entry(kind(verdict)).or_default(), &verdict.effect);
        if !verdict.answered_by.is_empty() {
            add(&mut self.answered, &verdict.answered_by);
        }
        self.costs.push(verdict.cost_us);
        self.rule(verdict);
        for vote in &verdict.policies {
            let policy = self.policies.entry(vote.name.clone()).or_default();
            add(&mut policy.verdicts, &vote.verdict);
            policy.total_us = policy.total_us.saturating_add(vote.cost_us);
        }
    }

    fn rule(&mut self, verdict: &VerdictLine) {
        let same = |known: &&mut RuleCount| {
            known.policy == verdict.policy && known.rule == verdict.rule && known.effect == verdict.effect
        };
        match self.rules.iter_mut().find(same) {
            Some(known) => known.count = known.count.saturating_add(1),
            None => self.rules.push(RuleCount {
                policy: verdict.policy.clone(),
                rule: verdict.rule.clone(),
                effect: verdict.effect.clone(),
                count: 1,
            }),
        }
    }
}

fn add(counts: &mut BTreeMap<String, u64>, key: &str) {
    let count = counts.entry(key.to_owned()).or_default();
    *count = count.saturating_add(1);
}

/// Returns the kind of action, or `other` if the request was too long to be logged.
///
/// The kind is the only key of the request's action.
fn kind(verdict: &VerdictLine) -> String {
    let action = verdict.request.get("action").and_then(serde_json::Value::as_object);
    action.and_then(|action| action.keys().next()).cloned().unwrap_or_else(|| "other".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::{OutcomeLine, PolicyLine};

    fn line(sequence: u64, record: Record) -> Result<Line, ()> {
        let session = "s".to_owned();
        Ok(Line { version: 1, sequence, session, previous: String::new(), head: false, record })
    }

    fn verdict(effect: &str, action: &str, at_ms: u64) -> Record {
        let vote = PolicyLine {
            name: "p".to_owned(),
            verdict: effect.to_owned(),
            cost_us: 3,
            ..PolicyLine::default()
        };
        Record::Verdict(VerdictLine {
            at_ms,
            request: json!({ "action": { action: {} } }),
            effect: effect.to_owned(),
            policy: "p".to_owned(),
            rule: format!("p.{effect}"),
            policies: vec![vote],
            cost_us: at_ms,
            ..VerdictLine::default()
        })
    }

    #[test]
    fn counts() {
        let mut stats = Stats::default();
        let done = OutcomeLine { verdict: 1, result: "done".to_owned(), ..OutcomeLine::default() };
        let error = OutcomeLine { verdict: 9, result: "opening `/a/b`".to_owned(), ..OutcomeLine::default() };
        stats.add(
            [
                line(1, verdict("allow", "file", 10)),
                line(2, Record::Outcome(done)),
                line(2, Record::Outcome(error)),
                line(3, verdict("deny", "file", 5)),
                line(4, verdict("allow", "command", 30)),
                Err(()),
            ]
            .into_iter(),
        );
        // In another log the same number is a different decision.
        stats.add([line(1, verdict("deny", "file", 40))].into_iter());
        let number = |counts: &BTreeMap<String, u64>, key: &str| counts.get(key).copied();
        assert_eq!((stats.logs, stats.unreadable, stats.open), (2, 1, 1));
        assert_eq!((stats.first_at_ms, stats.last_at_ms), (Some(5), Some(40)));
        assert_eq!((number(&stats.effects, "allow"), number(&stats.effects, "deny")), (Some(2), Some(2)));
        assert_eq!(number(&stats.actions["file"], "deny"), Some(2));
        assert_eq!((number(&stats.outcomes, "done"), number(&stats.outcomes, "error")), (Some(1), Some(1)));
        assert_eq!((stats.median_us, stats.longest_us), (30, 40));
        assert_eq!(stats.policies["p"].total_us, 12);
        let rules: Vec<_> = stats.rules.iter().map(|rule| (rule.rule.as_str(), rule.count)).collect();
        assert_eq!(rules, [("p.allow", 2), ("p.deny", 2)]);
    }

    #[test]
    fn nothing_is_no_division() {
        let mut stats = Stats::default();
        stats.add(std::iter::empty::<Result<Line, ()>>());
        assert_eq!((stats.median_us, stats.first_at_ms), (0, None));
    }
}
