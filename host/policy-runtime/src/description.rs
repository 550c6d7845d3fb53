//! The description that a policy gives of itself: name, version, and the actions it wants to see.

use portcullis_decision::context::VcsParts;
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
    /// The capabilities that the policy asks for; `None` if its contract leaves them to the manifest.
    pub capabilities: Option<Capabilities>,
    /// The parts of the project's version control that the policy depends on.
    pub depends_on: VcsParts,
}

/// The capabilities that a policy asks for. It gets those that the user has agreed to as well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Seeing the output of tools.
    pub output: bool,
    /// Changing the input of tools.
    pub rewrites: bool,
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
