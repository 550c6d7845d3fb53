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

/// Version control of a project, as its files state it.
///
/// A command that may write the project's `.git` can change all of it: these are facts for a policy about the user's
/// own workflow, and no barrier against a hostile command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Vcs {
    /// `git`, `jj`, ...
    pub kind: String,
    /// Its top directory.
    pub root: String,
    /// The branch, if known; `None` for a detached head.
    pub branch: Option<String>,
    /// The id of the commit that is checked out, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Whether there are uncommitted changes; `None` if unknown.
    pub dirty: Option<bool>,
    /// The remotes in the repository's own configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remotes: Vec<Remote>,
}

/// A remote of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Remote {
    /// For example `origin`.
    pub name: String,
    /// The address, without a user name or password.
    pub url: String,
}

/// The parts of [`Vcs`] that a policy depends on. The host reads no others, and passes no others to the policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct VcsParts {
    /// The kind, the top directory and the branch.
    pub branch: bool,
    /// The commit that is checked out.
    pub head: bool,
    /// Whether there are uncommitted changes.
    pub dirty: bool,
    /// The remotes.
    pub remotes: bool,
}

impl VcsParts {
    /// The branch alone.
    pub const BRANCH: Self = Self { branch: true, head: false, dirty: false, remotes: false };
    /// All parts.
    pub const ALL: Self = Self { branch: true, head: true, dirty: true, remotes: true };

    /// Returns true if there is no part.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Returns the parts of either.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self {
            branch: self.branch || other.branch,
            head: self.head || other.head,
            dirty: self.dirty || other.dirty,
            remotes: self.remotes || other.remotes,
        }
    }
}

impl Vcs {
    /// Returns only `parts` of it; `None` without any.
    #[must_use]
    pub fn only(&self, parts: VcsParts) -> Option<Self> {
        (!parts.is_empty()).then(|| Self {
            kind: self.kind.clone(),
            root: self.root.clone(),
            branch: self.branch.clone().filter(|_| parts.branch),
            head: self.head.clone().filter(|_| parts.head),
            dirty: self.dirty.filter(|_| parts.dirty),
            remotes: if parts.remotes { self.remotes.clone() } else { Vec::new() },
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_gets_the_parts_that_it_depends_on() {
        let remotes = vec![Remote { name: "origin".into(), url: "https://a.test/b".into() }];
        let vcs = Vcs {
            kind: "git".into(),
            root: "/p".into(),
            branch: Some("main".into()),
            head: Some("0".repeat(40)),
            dirty: Some(true),
            remotes,
        };
        assert_eq!(vcs.only(VcsParts::default()), None);
        assert_eq!(vcs.only(VcsParts::ALL), Some(vcs.clone()));
        let branch = vcs.only(VcsParts::BRANCH).unwrap();
        assert_eq!((branch.branch.as_deref(), branch.head, branch.dirty), (Some("main"), None, None));
        assert!(branch.remotes.is_empty());
        let head = VcsParts { head: true, ..VcsParts::default() };
        assert_eq!(
            VcsParts::BRANCH.union(head).union(VcsParts::default()),
            VcsParts { head: true, ..VcsParts::BRANCH }
        );
    }

    #[test]
    fn a_context_of_an_older_log_still_parses() {
        let older = r#"{"kind":"git","root":"/p","branch":null,"dirty":null}"#;
        let vcs = Vcs { kind: "git".into(), root: "/p".into(), ..Vcs::default() };
        assert_eq!(serde_json::from_str::<Vcs>(older).unwrap(), vcs);
        assert_eq!(serde_json::to_string(&vcs).unwrap(), older);
    }
}
