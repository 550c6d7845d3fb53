//! A record of the log as collectors get it.

use portcullis_audit::{Line, Mark, Record, VerdictLine};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A record of the log as collectors get it.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// `LOG:NUMBER`, the same each time the record is sent.
    pub id: String,
    /// Decision, outcome or unreadable line.
    pub kind: Kind,
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The session.
    pub session: String,
    /// One line for people.
    pub summary: String,
    /// Who decided; of an outcome, who decided about its action.
    pub decider: Decider,
    /// Whether an earlier batch with it may have arrived.
    pub repeated: bool,
    /// The whole record as it was logged; null if the line could not be read.
    pub record: Value,
    /// Its file in the log, and the position after it.
    pub(crate) position: Option<(String, Mark)>,
}

/// The kind of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A decision: `allow`, `ask` or `deny`.
    Decision,
    /// The outcome of an action.
    Outcome {
        /// The id of its decision.
        decision: String,
        /// `done`, the exit status, or the error.
        result: String,
    },
    /// A line or a log that could not be read, with the reason.
    Unreadable(String),
}

impl Kind {
    /// Returns its name in all formats.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Outcome { .. } => "outcome",
            Self::Unreadable(_) => "unreadable",
        }
    }
}

/// Who decided about an action, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decider {
    /// The kind of the action: `command`, `file`, `network`, `tool`.
    pub action: String,
    /// `allow`, `ask` or `deny`.
    pub effect: String,
    /// A policy, or a layer of the settings.
    pub policy: String,
    /// The id of its rule.
    pub rule: String,
    /// The setting behind the rule, if known.
    pub setting: String,
    /// `user`, `grant`, or why there was no answer; empty without a question.
    pub answered_by: String,
    /// The reason.
    pub reason: String,
}

impl Decider {
    pub(crate) fn of(verdict: &VerdictLine) -> Self {
        let action = verdict.request.get("action").and_then(Value::as_object);
        let kind = action.and_then(|kinds| kinds.keys().next()).cloned().unwrap_or_default();
        Self {
            action: kind,
            effect: verdict.effect.clone(),
            policy: verdict.policy.clone(),
            rule: verdict.rule.clone(),
            setting: verdict.setting.clone(),
            answered_by: verdict.answered_by.clone(),
            reason: verdict.reason.clone(),
        }
    }

    /// Returns its fields that are not empty, by their names in all formats.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("action", &self.action),
            ("effect", &self.effect),
            ("policy", &self.policy),
            ("rule", &self.rule),
            ("setting", &self.setting),
            ("answered_by", &self.answered_by),
            ("reason", &self.reason),
        ];
        all.into_iter().map(|(name, value)| (name, value.as_str())).filter(|(_, value)| !value.is_empty())
    }
}

impl Event {
    /// Makes the event of a line. `decider` is for outcomes: who decided about the action.
    pub(crate) fn of(log: &str, line: &Line, decider: Decider, summary: String) -> Self {
        let id = |number: u64| format!("{log}:{number}");
        let (kind, at_ms) = match &line.record {
            Record::Verdict(verdict) => (Kind::Decision, verdict.at_ms),
            Record::Outcome(outcome) => {
                let result = outcome.result.clone();
                (Kind::Outcome { decision: id(outcome.verdict), result }, outcome.at_ms)
            }
        };
        Self {
            id: id(line.sequence),
            kind,
            at_ms,
            session: line.session.clone(),
            summary,
            decider,
            repeated: false,
            record: serde_json::to_value(line).unwrap_or_default(),
            position: None,
        }
    }

    /// Makes the event of a line or log that could not be read.
    pub(crate) fn unreadable(id: String, at_ms: u64, reason: String) -> Self {
        Self {
            id,
            at_ms,
            session: String::new(),
            summary: format!("the audit log has a line that cannot be read: {reason}"),
            kind: Kind::Unreadable(reason),
            decider: Decider::default(),
            repeated: false,
            record: Value::Null,
            position: None,
        }
    }

    /// Returns true for a refusal.
    pub(crate) fn is_refusal(&self) -> bool {
        self.kind == Kind::Decision && self.decider.effect == "deny"
    }
}
