//! The answer of a policy, as in `wit/types.wit`.

use serde::{Deserialize, Serialize};

use crate::grant::{GrantPattern, GrantScope};
use crate::request::{Attribute, Request};

/// The strength of an answer; the strictest wins: `Deny` > `Ask` > `Allow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Let the action through.
    Allow,
    /// Ask the user.
    Ask,
    /// Refuse the action.
    Deny,
}

impl std::fmt::Display for Effect {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// The answer of one policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Evaluation {
    /// The verdict.
    pub verdict: Verdict,
    /// The rule and the reason; the rule is empty only for `abstain`.
    pub cause: Cause,
    /// Empty unless the context asks for it.
    pub trace: Vec<TraceStep>,
}

/// The verdict of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// No opinion.
    Abstain,
    /// Yes, with obligations for the host.
    Allow(Vec<Obligation>),
    /// Ask the user.
    Ask(Question),
    /// No.
    Deny(Denial),
}

impl Verdict {
    /// Returns the strength of this verdict; `None` for `abstain`, which has no weight.
    #[must_use]
    pub fn effect(&self) -> Option<Effect> {
        match self {
            Self::Abstain => None,
            Self::Allow(_) => Some(Effect::Allow),
            Self::Ask(_) => Some(Effect::Ask),
            Self::Deny(_) => Some(Effect::Deny),
        }
    }
}

/// The rule that decided, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cause {
    /// Stable id of the rule within its policy.
    pub rule: String,
    /// One sentence for the user.
    pub reason: String,
    /// The setting that the rule came from, if known.
    #[serde(default)]
    pub setting: String,
    /// How severe the action would be.
    pub severity: Severity,
}

/// A severity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Harmless.
    #[default]
    Info,
    /// Slightly harmful.
    Low,
    /// Moderately harmful.
    Medium,
    /// Harmful.
    High,
    /// Very harmful.
    Critical,
}

/// An obligation: a duty of the host if it allows an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Obligation {
    /// Run this script instead.
    RewriteScript(String),
    /// Use this JSON as the tool input instead.
    RewriteInput(String),
    /// Show this to the user, without waiting.
    Notify(String),
    /// Give this to the model together with the result.
    Advise(String),
    /// An obligation that this host may not know; then it denies.
    Other(Attribute),
}

/// Details of a refusal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Denial {
    /// The alternative for the model.
    pub hint: Option<String>,
    /// Whether the user may override it once.
    pub overridable: bool,
}

/// Details of a question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Question {
    /// One line.
    pub title: String,
    /// Longer text, Markdown.
    pub details: Option<String>,
    /// The offered grants, in this order.
    pub options: Vec<GrantOption>,
    /// The host's fallback applies after this time.
    pub timeout_ms: Option<u32>,
}

/// An offered grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GrantOption {
    /// Text of the choice.
    pub label: String,
    /// How long the grant lives.
    pub scope: GrantScope,
    /// The covered actions.
    pub pattern: GrantPattern,
    /// Seconds; 0 for as long as the scope lasts.
    pub lifetime: u32,
}

/// One step of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TraceStep {
    /// The rule that was tried.
    pub rule: String,
    /// Whether it matched.
    pub matched: bool,
    /// Details.
    pub detail: String,
}

/// The output of a tool, before the model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToolOutput {
    /// The request that led to it.
    pub request: Request,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Whether it was truncated before.
    pub truncated: bool,
    /// The blocks.
    pub content: Vec<ContentBlock>,
}

/// One block of tool output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContentBlock {
    /// Text.
    Text(String),
    /// Media type and size in bytes.
    Image(String, u32),
    /// A JSON document.
    Other(String),
}

/// The verdict of a policy on tool output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputVerdict {
    /// No opinion.
    Abstain,
    /// Pass it unchanged.
    Pass,
    /// Replace it by these blocks.
    Replace(Vec<ContentBlock>),
    /// The model sees only the cause.
    Withhold,
}

/// The answer of one policy on tool output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct OutputEvaluation {
    /// The verdict.
    pub verdict: OutputVerdict,
    /// The cause.
    pub cause: Cause,
}
