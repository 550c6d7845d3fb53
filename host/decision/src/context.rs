//! The context of a decision: facts that come with a request.

use serde::{Deserialize, Serialize};

use crate::grant::Grant;
use crate::request::Attribute;

/// Facts that come with every request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Context {
    /// Unique for the lifetime of one agent session.
    pub session_id: String,
    /// The agent that makes the request.
    pub agent: AgentInfo,
    /// The project.
    pub workspace: Workspace,
    /// The machine.
    pub machine: Machine,
    /// Whether a user can answer an ask.
    pub interactive: bool,
    /// Seconds since 1970-01-01 UTC.
    pub now: u32,
    /// Live grants that match the request, or all live grants without a request.
    pub grants: Vec<Grant>,
    /// Whether traces are wanted.
    pub explain: bool,
    /// Extra facts.
    pub attributes: Vec<Attribute>,
}

/// The agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AgentInfo {
    /// For example `pi`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Model identifier, if known.
    pub model: Option<String>,
    /// Name of the sub-agent; empty for the main agent.
    pub sub_agent: String,
    /// The agent's settings directory.
    pub directory: String,
    /// Path of the transcript; empty for none.
    pub session_file: String,
}

/// The project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Workspace {
    /// Absolute and canonical; the first is where the agent was started.
    pub roots: Vec<String>,
    /// Whether the user has marked it as trusted.
    pub trusted: bool,
    /// Its version control, if there is one.
    pub vcs: Option<Vcs>,
}

/// Version control of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Vcs {
    /// `git`, `jj`, ...
    pub kind: String,
    /// Its top directory.
    pub root: String,
    /// The branch, if known.
    pub branch: Option<String>,
    /// Whether there are uncommitted changes; `None` if unknown.
    pub dirty: Option<bool>,
}

/// The machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Machine {
    /// `linux`, ...
    pub os: String,
    /// `x86-64`, ...
    pub arch: String,
    /// The user's home directory.
    pub home: String,
    /// The temporary directory as commands and tools see it.
    pub temp: String,
    /// User name.
    pub user: String,
    /// User id.
    pub uid: u32,
    /// Directories of PATH, in order.
    pub path: Vec<String>,
    /// Roots of toolchains in PATH.
    pub toolchains: Vec<String>,
}
