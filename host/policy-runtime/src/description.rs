//! The description that a policy gives of itself: name, version, and the actions it wants to see.

use portcullis_decision::request::ActionKinds;
use serde::{Deserialize, Serialize};

/// A policy's description of itself. Written by a guest: show it as quoted text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The id, `namespace:name`.
    pub id: String,
    /// The version.
    pub version: String,
    /// A short title.
    pub title: String,
    /// The actions that the policy judges.
    pub handles: ActionKinds,
    /// All rules that the policy may name.
    pub rules: Vec<RuleInfo>,
    /// JSON Schema of the configuration. Empty if the policy takes none.
    pub config_schema: String,
}

/// One rule, described for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleInfo {
    /// The id, as in verdicts.
    pub id: String,
    /// A short title.
    pub title: String,
    /// A help text in Markdown. May be empty.
    pub help: String,
}
