//! Decisions of a log, to be repeated.

use std::path::Path;

use anyhow::Context as _;
use portcullis_audit::{PolicyLine, Recall, Record, VerdictLine, is_whole, read_all};
use portcullis_bootstrap::context_json::LoggedContext;
use portcullis_bootstrap::streams::say;
use portcullis_decision::{Context, Request};
use portcullis_text::counted;
use serde_json::Value;

use crate::corpus::PolicyAnswer;

/// A logged decision.
#[derive(Debug)]
pub struct Logged {
    /// Session and line.
    pub name: String,
    /// The request.
    pub request: Request,
    /// Its context; `None` if the log does not have it.
    pub context: Option<Context>,
    /// The decision of policies and rules, before the user was asked.
    pub said: PolicyAnswer,
    /// The time, in milliseconds since 1970.
    pub at_ms: u64,
    /// The vote of each policy.
    pub votes: Vec<PolicyLine>,
    /// Whether request and context are complete, neither masked nor cut.
    is_whole: bool,
}

/// Why a repeated decision may differ from the first one although no rule has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lacks {
    /// The log does not have the context.
    Context,
    /// Secrets were masked, or long texts cut.
    Parts,
}

impl Lacks {
    /// Returns it in words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Context => "without its context",
            Self::Parts => "without what the log masks",
        }
    }
}

impl Logged {
    /// Returns which part of the log is missing for repeating the decision.
    pub fn lacks(&self) -> Option<Lacks> {
        match (&self.context, self.is_whole) {
            (None, _) => Some(Lacks::Context),
            (Some(_), false) => Some(Lacks::Parts),
            (Some(_), true) => None,
        }
    }

    /// Returns the context to decide in: its own, or else `now`'s at its time.
    pub fn context_or(&self, now: &Context) -> Context {
        self.context.clone().unwrap_or_else(|| Context {
            now: u32::try_from(self.at_ms / 1000).unwrap_or(u32::MAX),
            grants: Vec::new(),
            ..now.clone()
        })
    }
}

/// Reads the whole log that `log` is a part of, and reports the decisions that cannot be repeated exactly.
pub(crate) fn read(log: &Path) -> anyhow::Result<Vec<Logged>> {
    let reading = || format!("reading the log `{}`", log.display());
    let mut recall = Recall::default();
    let mut decisions = Vec::new();
    let mut unread = 0_usize;
    for line in read_all(log).with_context(reading)? {
        let line = line.with_context(reading)?;
        let Record::Verdict(verdict) = line.record else { continue };
        let facts = recall.facts(line.sequence, &verdict).cloned().unwrap_or_default();
        let name = format!("{}:{}", line.session, line.sequence);
        match logged(name, verdict, facts) {
            Some(logged) => decisions.push(logged),
            None => unread += 1,
        }
    }
    tell(&decisions, unread);
    Ok(decisions)
}

/// Returns `None` for a request of another version, or one whose masked parts are no longer valid.
pub fn logged(name: String, verdict: VerdictLine, facts: Value) -> Option<Logged> {
    let is_whole = [&verdict.request, &verdict.grants, &facts].into_iter().all(is_whole);
    let said = PolicyAnswer::new(said_at_first(&verdict), &verdict.rule, &verdict.reason);
    let told = LoggedContext { facts, now: verdict.now, grants: verdict.grants };
    Some(Logged {
        name,
        request: serde_json::from_value(verdict.request).ok()?,
        context: told.context(),
        said,
        at_ms: verdict.at_ms,
        votes: verdict.policies,
        is_whole,
    })
}

/// Returns the effect before the user's answer, since the user is not asked again.
///
/// An answer by a grant is repeated if the log has the grant.
fn said_at_first(verdict: &VerdictLine) -> &str {
    let has_grants = verdict.grants.as_array().is_some_and(|grants| !grants.is_empty());
    match verdict.answered_by.as_str() {
        "" if verdict.policy != "grant" => &verdict.effect,
        "" | "grant" if has_grants => &verdict.effect,
        _ => "ask",
    }
}

fn tell(decisions: &[Logged], unread: usize) {
    if unread > 0 {
        say(&format!("left out, as they cannot be taken again: {}", counted(unread, "decision")));
    }
    let count = |lacks| decisions.iter().filter(|logged| logged.lacks() == Some(lacks)).count();
    let total = decisions.len();
    let without = count(Lacks::Context);
    if without > 0 {
        say(&format!(
            "in the log without their context, and taken in that of this directory: {without} of {}",
            counted(total, "decision")
        ));
    }
    let cut = count(Lacks::Parts);
    if cut > 0 {
        say(&format!(
            "in the log without their secrets or long texts: {cut} of {}",
            counted(total, "decision")
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(effect: &str, answered_by: &str, grants: Value) -> String {
        let (effect, answered_by) = (effect.to_owned(), answered_by.to_owned());
        said_at_first(&VerdictLine { effect, answered_by, grants, ..VerdictLine::default() }).to_owned()
    }

    #[test]
    fn a_question_stays_one() {
        assert_eq!(said("allow", "", Value::Null), "allow");
        assert_eq!(said("deny", "", Value::Null), "deny");
        assert_eq!(said("allow", "user", Value::Null), "ask");
        for answered_by in ["user", "nobody", "timeout", "withdrawal"] {
            assert_eq!(said("deny", answered_by, Value::Null), "ask", "{answered_by}");
        }
        assert_eq!(said("allow", "grant", json!([{ "scope": "session" }])), "allow");
        assert_eq!(said("allow", "grant", Value::Null), "ask");
    }
}
