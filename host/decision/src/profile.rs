//! The declarative rules of one policy, as in the WIT interface `confinement`.

use serde::{Deserialize, Serialize};

pub use crate::file_right::{FileRight, FileRights};
use crate::pattern::{FilePattern, NetworkPattern};
use crate::request::Attribute;
use crate::verdict::Effect;

/// Rules for every tool and every command. In every list the last matching rule answers; if none matches, the profile
/// has no opinion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Profile {
    /// Rules on files.
    pub files: Vec<FileRule>,
    /// Rules on outgoing connections.
    pub network: Vec<NetworkRule>,
    /// Limits on bytes sent.
    pub budgets: Vec<BudgetRule>,
    /// Rules on which variables of the host's environment commands see.
    pub environment: Vec<EnvironmentRule>,
    /// Variables to set for commands.
    pub variables: Vec<(String, String)>,
    /// Limits of one command.
    pub limits: Limits,
    /// Extra facts.
    pub attributes: Vec<Attribute>,
}

/// One rule on files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FileRule {
    /// Stable id within the policy.
    pub id: String,
    /// The paths.
    pub pattern: FilePattern,
    /// The rights.
    pub rights: FileRights,
    /// The answer.
    pub effect: Effect,
    /// Whether the path is invisible to commands when reading is not allowed.
    pub conceal: bool,
    /// A further condition; empty for none.
    pub condition: String,
    /// One sentence for the user.
    pub reason: String,
    /// The setting that the rule came from: a JSON pointer into the configuration, or a position in a file.
    #[serde(default)]
    pub setting: String,
}

/// One rule on outgoing connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NetworkRule {
    /// Stable id within the policy.
    pub id: String,
    /// The hosts and ports.
    pub target: NetworkPattern,
    /// Path or last component of the program; `*` for any.
    pub program: String,
    /// The answer.
    pub effect: Effect,
    /// One sentence for the user.
    pub reason: String,
    /// The setting that the rule came from: a JSON pointer into the configuration, or a position in a file.
    #[serde(default)]
    pub setting: String,
}

/// A limit on bytes sent to a target in a session, after which `effect` applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BudgetRule {
    /// Stable id within the policy.
    pub id: String,
    /// The hosts and ports.
    pub target: NetworkPattern,
    /// The budget in KiB.
    pub kib: u32,
    /// The answer once it is used up.
    pub effect: Effect,
    /// One sentence for the user.
    pub reason: String,
    /// The setting that the rule came from: a JSON pointer into the configuration, or a position in a file.
    #[serde(default)]
    pub setting: String,
}

/// One rule on environment variables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct EnvironmentRule {
    /// Stable id within the policy.
    pub id: String,
    /// Glob over names.
    pub name: String,
    /// `allow` keeps the variable, everything else drops it.
    pub effect: Effect,
    /// One sentence for the user.
    pub reason: String,
    /// The setting that the rule came from: a JSON pointer into the configuration, or a position in a file.
    #[serde(default)]
    pub setting: String,
}

/// Limits of one command; `None` means the host's default, never "unlimited".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Limits {
    /// Wall-clock time.
    pub wall_ms: Option<u32>,
    /// Processor time.
    pub cpu_ms: Option<u32>,
    /// Memory.
    pub memory_mib: Option<u32>,
    /// Processes.
    pub processes: Option<u32>,
    /// Open files of one process.
    pub open_files: Option<u32>,
    /// Size of one file.
    pub file_mib: Option<u32>,
    /// Output.
    pub output_kib: Option<u32>,
}

impl Limits {
    /// Returns the stricter of two, field by field.
    #[must_use]
    pub fn strictest(self, other: Self) -> Self {
        self.joined(other, |one, two| match (one, two) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        })
    }

    /// Returns these limits, tightened by those of `other` that are stricter than the limits without them: these, or
    /// `defaults` where these have none.
    #[must_use]
    pub fn tightened(self, other: Self, defaults: Self) -> Self {
        let within = other
            .joined(defaults, |one, default| one.filter(|one| default.is_none_or(|default| *one <= default)));
        self.joined(other, |one, other| one.map(|one| other.map_or(one, |other| one.min(other))))
            .joined(within, Option::or)
    }

    fn joined(self, other: Self, join: impl Fn(Option<u32>, Option<u32>) -> Option<u32>) -> Self {
        Self {
            wall_ms: join(self.wall_ms, other.wall_ms),
            cpu_ms: join(self.cpu_ms, other.cpu_ms),
            memory_mib: join(self.memory_mib, other.memory_mib),
            processes: join(self.processes, other.processes),
            open_files: join(self.open_files, other.open_files),
            file_mib: join(self.file_mib, other.file_mib),
            output_kib: join(self.output_kib, other.output_kib),
        }
    }
}
