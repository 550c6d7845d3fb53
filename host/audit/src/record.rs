//! The content of a log line.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The version of the line format; readers refuse higher ones.
pub const VERSION: u32 = 1;

/// Size limit of a line in bytes, including its end.
///
/// `write(2)` writes this much to a file in one piece, and readers can hold it in memory.
pub const LARGEST_LINE: usize = 64 * 1024;

/// A line of the log: a record with its position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Version of the format.
    pub version: u32,
    /// Line number in the log, counted from one over all its files.
    pub sequence: u64,
    /// The session.
    pub session: String,
    /// SHA-256 of the previous line in hex; empty in the first line.
    pub previous: String,
    /// Whether the log has a separate record of its end; only in the first line. False in older logs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub head: bool,
    /// The record.
    #[serde(flatten)]
    pub record: Record,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "lines are written and read one at a time")]
pub enum Record {
    /// A verdict, before the action.
    Verdict(VerdictLine),
    /// An outcome, after the action.
    Outcome(OutcomeLine),
}

/// A verdict, written before the action.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerdictLine {
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The request; secrets are masked on writing.
    pub request: Value,
    /// The votes of the policies, in the order of the chain.
    pub policies: Vec<PolicyLine>,
    /// The effect: `allow`, `ask` or `deny`.
    pub effect: String,
    /// The author of the decision: a policy, or a layer of the settings.
    pub policy: String,
    /// Id of the rule.
    pub rule: String,
    /// Its reason.
    pub reason: String,
    /// The setting behind the rule, if known.
    pub setting: String,
    /// The author of the answer that turned `ask` into the effect; empty without a question.
    ///
    /// One of `grant`, `user`, or the cause of a missing answer: `nobody` (no user interface), `timeout`, `withdrawal`
    /// (of the question).
    pub answered_by: String,
    /// How long the decision took, without waiting for the user.
    pub cost_us: u64,
    /// The time that policies got, in seconds since 1970-01-01 UTC.
    #[serde(skip_serializing_if = "is_zero")]
    pub now: u64,
    /// The live grants that policies got; secrets are masked on writing.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub grants: Value,
    /// The other facts that policies got with the request; secrets are masked on writing.
    ///
    /// If null, see [`facts_at`](Self::facts_at).
    #[serde(skip_serializing_if = "Value::is_null")]
    pub facts: Value,
    /// Number of the line in the same file that contains the same `facts`: this one or an earlier one.
    ///
    /// Zero if policies got no facts, or the log is from a version that did not store them. Set on writing.
    #[serde(skip_serializing_if = "is_zero")]
    pub facts_at: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The vote of one policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolicyLine {
    /// Its name in the settings.
    pub name: String,
    /// SHA-256 of its component, in hex.
    pub digest: String,
    /// `abstain`, `allow`, `ask`, `deny`, or `failed`.
    pub verdict: String,
    /// Id of the rule.
    pub rule: String,
    /// Its reason, or the error.
    pub reason: String,
    /// The setting behind the rule, if known.
    pub setting: String,
    /// Whether the vote counts.
    ///
    /// False for a policy that is only observed, and for an "allow" of one that can only tighten.
    pub counts: bool,
    /// Whether the policy can only tighten.
    pub tightens: bool,
    /// Time of the evaluation.
    pub cost_us: u64,
}

/// The outcome of an action, written after it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutcomeLine {
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Sequence number of its verdict.
    pub verdict: u64,
    /// `done`, the exit status of a command, or the error; secrets are masked on writing.
    pub result: String,
    /// Further details, such as exit status and bytes; secrets are masked on writing.
    pub detail: Value,
    /// Time of the action.
    pub cost_us: u64,
}

/// The key of the details of an outcome that says which policy changed the output, before the model saw it.
pub const OUTPUT: &str = "output";

impl OutcomeLine {
    /// Returns the outcome with a later line about the same decision: a change of the output adds to it, another
    /// outcome replaces it.
    #[must_use]
    pub(crate) fn followed_by(self, later: Self) -> Self {
        let Some(output) = later.detail.get(OUTPUT).filter(|_| !self.result.is_empty()) else { return later };
        let mut detail = self.detail.as_object().cloned().unwrap_or_default();
        detail.insert(OUTPUT.to_owned(), output.clone());
        let result = format!("{}, output {}", self.result, later.result);
        Self { result, detail: Value::Object(detail), ..self }
    }
}

/// Returns the SHA-256 of `bytes` in lower-case hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|half| char::from_digit(half.into(), 16));
    Sha256::digest(bytes).iter().flat_map(digits).flatten().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_of_the_output_adds_to_the_outcome() {
        let line =
            |result: &str, detail| OutcomeLine { result: result.into(), detail, ..OutcomeLine::default() };
        let redacted = || line("redacted", json!({ "output": { "rule": "secrets.key" } }));
        let both = line("exit 0", json!({ "bytes": 3 })).followed_by(redacted());
        assert_eq!(both.result, "exit 0, output redacted");
        assert_eq!(both.detail, json!({ "bytes": 3, "output": { "rule": "secrets.key" } }));
        assert_eq!(line("rewritten", Value::Null).followed_by(line("done", Value::Null)).result, "done");
    }
}
