//! What a line of the log holds.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The version of the line format; a reader refuses a higher one.
pub const VERSION: u32 = 1;

/// The longest line in bytes, its end included: what `write(2)` puts into a file in one piece without doubt, and
/// no reader has to fear.
pub const LARGEST_LINE: usize = 64 * 1024;

/// One line of the log: a record and its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Version of the format.
    pub version: u32,
    /// Counts from one in each file.
    pub sequence: u64,
    /// The session.
    pub session: String,
    /// SHA-256 of the line before, in hex; empty in the first.
    pub previous: String,
    /// Whether the end of the log is recorded apart from it; in the first line only. False in older logs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub head: bool,
    /// What is recorded.
    #[serde(flatten)]
    pub record: Record,
}

/// What is recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "lines are written and read one at a time")]
pub enum Record {
    /// Before an act.
    Verdict(VerdictLine),
    /// After it.
    Outcome(OutcomeLine),
}

/// A verdict, written before the act.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerdictLine {
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The request; secrets are masked when it is written.
    pub request: Value,
    /// What each policy said, in the order of the chain.
    pub policies: Vec<PolicyLine>,
    /// The answer: `allow`, `ask` or `deny`.
    pub effect: String,
    /// Who gave it: a policy, or a layer of the settings.
    pub policy: String,
    /// Id of the rule.
    pub rule: String,
    /// Its reason.
    pub reason: String,
    /// The setting that made it so, where it is known.
    pub setting: String,
    /// What turned an `ask` into the answer: `grant`, `user`, or that none came: `nobody` was there, `timeout`, or
    /// `withdrawal` of the question. Empty: nothing did.
    pub answered_by: String,
    /// How long the decision took, without waiting for the user.
    pub cost_us: u64,
    /// What the policies were told that it was, in seconds since 1970-01-01 UTC.
    #[serde(skip_serializing_if = "is_zero")]
    pub now: u64,
    /// The live grants that they were told of; secrets are masked when it is written.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub grants: Value,
    /// The rest of what they were told beside the request; secrets are masked when it is written. Null: see
    /// [`facts_at`](Self::facts_at).
    #[serde(skip_serializing_if = "Value::is_null")]
    pub facts: Value,
    /// The line of the same file in which `facts` stand, where they are the same: itself or one before. Zero: nobody
    /// was told anything, or the log is of a version that did not keep it. Filled in when it is written.
    #[serde(skip_serializing_if = "is_zero")]
    pub facts_at: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What one policy said.
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
    /// Its reason, or what failed.
    pub reason: String,
    /// The setting that made it so, where it is known.
    pub setting: String,
    /// False for a policy that is only observed, and for the permission of one that can only tighten.
    pub counts: bool,
    /// Whether it can only tighten.
    pub tightens: bool,
    /// How long it took.
    pub cost_us: u64,
}

/// What came of an act, written after it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutcomeLine {
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Sequence number of the verdict it belongs to.
    pub verdict: u64,
    /// `done`, how a command ended, or what went wrong; secrets are masked when it is written.
    pub result: String,
    /// Whatever else is known: exit status, bytes; secrets are masked when it is written.
    pub detail: Value,
    /// How long the act took.
    pub cost_us: u64,
}

/// Returns the SHA-256 of `bytes` in lower-case hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|half| char::from_digit(half.into(), 16));
    Sha256::digest(bytes).iter().flat_map(digits).flatten().collect()
}
