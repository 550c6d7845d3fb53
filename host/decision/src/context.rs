//! Where a decision is taken: facts handed in with a request.

use serde::{Deserialize, Serialize};

use crate::grant::Grant;
use crate::request::Attribute;

/// Facts that come with every request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Context {
    /// Unique for the life of one agent session.
    pub session_id: String,
    /// The agent that asks.
    pub agent: AgentInfo,
    /// The project.
    pub workspace: Workspace,
    /// The machine.
    pub machine: Machine,
    /// Whether someone is there to answer an ask.
    pub interactive: bool,
    /// Seconds since 1970-01-01 UTC.
    pub now: u32,
    /// Live grants that match the request, or all of them where there is none.
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
    /// Model identifier, where known.
    pub model: Option<String>,
    /// Name of the sub-agent; empty: the main one.
    pub sub_agent: String,
    /// Where the agent keeps its settings.
    pub directory: String,
    /// The transcript; empty: none.
    pub session_file: String,
}

/// The project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Workspace {
    /// Absolute, canonical; the first is where the agent was started.
    pub roots: Vec<String>,
    /// Whether the user has marked it as trusted.
    pub trusted: bool,
    /// Its version control, where there is one.
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
    /// The branch, where known.
    pub branch: Option<String>,
    /// Whether uncommitted changes exist; none when nobody looked.
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
    /// Roots of toolchains that PATH leads to.
    pub toolchains: Vec<String>,
}
