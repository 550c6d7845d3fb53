//! Settings as the rest of Portcullis reads them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use portcullis_decision::combine::Combine;
use portcullis_decision::pattern::{HostPattern, NetworkPattern};
use portcullis_decision::profile::Limits;
use serde::Serialize;

use crate::check::{Completeness, KeptField, bad_value, check, step};
use crate::entries::EXTENDS;
use crate::error::ConfigError;
use crate::grants::GrantEntry;
use crate::json::{Fault, Node, Position};
use crate::layout::chooses_layered;
use crate::parent_proxy::ParentProxy;
use crate::sites::Sites;

/// One complete set of settings, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Whether the sandbox is on.
    pub enabled: bool,
    /// Connections.
    pub network: Network,
    /// Files.
    pub filesystem: Filesystem,
    /// Files and variables that hold secrets.
    pub credentials: Credentials,
    /// The policy chain, in order; never empty.
    pub policies: Vec<PolicyEntry>,
    /// How the verdicts of several policies become one.
    pub combine: Combine,
    /// Questions to the user.
    pub ask: Ask,
    /// Whether the agent may ask for a command outside of the sandbox.
    pub escalation: Escalation,
    /// The least that the sandbox of commands must be.
    pub required_tier: RequiredTier,
    /// Limits of one command; none: the host's default.
    pub limits: Limits,
    /// What commands see of the environment.
    pub environment: Environment,
    /// Ids of rules of the host that do not hold.
    pub lifted: Vec<String>,
    /// Answers that are kept.
    pub grants: Vec<GrantEntry>,
    /// Reports that are not made.
    pub ignored: Vec<Ignored>,
    /// What is set and changes nothing.
    pub kept: Vec<KeptField>,
}

/// Reports of refusals that are not made of some commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// What the command has in it; `*` for every command.
    pub command: String,
    /// What the report has in it: a path, a host.
    pub parts: Vec<String>,
}

impl Ignored {
    /// Whether a report on this command is not made.
    #[must_use]
    pub fn covers(&self, command: &str, report: &str) -> bool {
        let is_meant = self.command == "*" || command.contains(&self.command);
        is_meant && self.parts.iter().any(|part| report.contains(part))
    }
}

/// Connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// Hosts reached without a question.
    pub allowed_domains: Vec<Entry<NetworkPattern>>,
    /// Hosts never reached.
    pub denied_domains: Vec<Entry<NetworkPattern>>,
    /// Reasons for entries of `denied_domains`, by their text.
    pub denied_domain_reasons: BTreeMap<String, String>,
    /// Whether what is not allowed is refused in place of asked for.
    pub strict_allowlist: bool,
    /// Addresses never reached, under whatever name.
    pub denied_resolved_addresses: Vec<Entry<HostPattern>>,
    /// Unix sockets that commands may use.
    pub unix_sockets: Vec<Entry<PathEntry>>,
    /// What is looked at in connections.
    pub connecting: Connecting,
    /// MiB that may be sent to one host and port in a session without a question; none: the host's default.
    pub upload_budget_mib: Option<Entry<u32>>,
    /// The user's own proxy.
    pub parent_proxy: ParentProxy,
}

/// What is looked at in connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connecting {
    /// Whether TLS and plain HTTP have to name the server that was allowed.
    pub names_match: bool,
    /// Whether TLS may hide the name of the server, or not say it.
    pub hidden_names: bool,
    /// Whether servers of commands may be opened to this machine.
    pub opens_ports: bool,
}

impl Default for Connecting {
    fn default() -> Self {
        Self { names_match: true, hidden_names: false, opens_ports: true }
    }
}

/// Files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filesystem {
    /// Paths not read.
    pub deny_read: Vec<Entry<PathEntry>>,
    /// Paths read without a question.
    pub allow_read: Vec<Entry<PathEntry>>,
    /// Paths written and read without a question.
    pub allow_write: Vec<Entry<PathEntry>>,
    /// Paths never written.
    pub deny_write: Vec<Entry<PathEntry>>,
}

/// Files and variables that hold secrets; all of mode `deny`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The files.
    pub files: Vec<Entry<PathEntry>>,
    /// The names of the variables.
    pub variables: Vec<String>,
}

/// A path as written: `~`, relative paths and globs are not yet resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PathEntry {
    /// The text.
    pub text: String,
    /// Whether it is taken literally, glob characters included.
    pub literal: bool,
}

/// Something from a settings file with the place it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry<T> {
    /// The thing.
    pub value: T,
    /// The text it was written as.
    pub text: String,
    /// Where it stands.
    pub origin: Origin,
}

/// A place in a settings file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The file; a name in angle brackets for what is built in.
    pub file: PathBuf,
    /// JSON pointer.
    pub pointer: String,
    /// Line and column.
    pub at: Position,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = crate::error::shown(&self.file.to_string_lossy());
        write!(formatter, "{file}:{}:{} ({})", self.at.line, self.at.column, self.pointer)
    }
}

/// One policy of the chain.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyEntry {
    /// The name it goes by; unique in the chain.
    pub name: String,
    /// Where its component comes from.
    pub source: PolicySource,
    /// What is handed to it.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// The file that has what is handed to it, as written: relative to the settings file's directory, or below `~`.
    pub config_file: Option<PathBuf>,
    /// Whether its verdicts count.
    pub mode: PolicyMode,
    /// Where it is named; none for the default.
    pub origin: Option<Origin>,
    /// Where its configuration was written.
    pub sites: Sites,
}

/// Where a policy component comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicySource {
    /// It comes with Portcullis.
    Shipped(String),
    /// A pack by its id, as `policy.lock` beside the user's settings names it.
    Pack(String),
    /// A file as written: relative to the settings file's directory, or below `~`.
    File(PathBuf),
}

/// Whether the verdicts of a policy count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PolicyMode {
    /// They count.
    #[default]
    Enforce,
    /// They count where they are stricter than what holds without them.
    Tighten,
    /// They are logged and do not count.
    Observe,
}

/// The least that the sandbox of commands must be, the milder first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequiredTier {
    /// Landlock, rules over names and a stricter filter of system calls, without namespaces.
    Landlock,
    /// Namespaces, mounts and the filter of system calls.
    Namespaces,
    /// Everything.
    #[default]
    Full,
}

/// Questions to the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ask {
    /// After so long an unanswered question is a no; none: the host's default.
    pub timeout_ms: Option<u32>,
    /// So long an answer for a project or for all of them lasts; none: for ever.
    pub grant_seconds: Option<u32>,
    /// Where connections wait for an answer.
    pub hold: Hold,
}

/// Where connections wait for an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hold {
    /// Inside connect(2).
    #[default]
    Connect,
    /// Once they are there.
    Accept,
}

/// Whether the agent may ask for a command outside of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Escalation {
    /// It may not.
    #[default]
    Off,
    /// It may, and the user is asked each time.
    Ask,
}

/// What commands see of the environment, beside the host's own rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Globs over names that are kept although the host would drop them.
    pub keep: Vec<String>,
    /// Globs over names that are dropped; stronger than `keep`.
    pub drop: Vec<String>,
    /// Values given to commands.
    pub set: BTreeMap<String, String>,
}

/// The settings that hold where there is no file: the first seed's default, word for word.
pub const BUILT_IN: &str = r#"{
  "enabled": true,
  "network": { "allowedDomains": [], "deniedDomains": [] },
  "filesystem": {
    "denyRead": ["/Users", "/home"],
    "allowRead": [".", "~/.pi"],
    "allowWrite": ["."],
    "denyWrite": []
  }
}
"#;

impl Settings {
    /// Reads the text of the settings file `file`, which is named in errors and origins.
    ///
    /// ```
    /// use std::path::Path;
    /// let text = r#"{ "network": { "allowedDomain": [] } }"#;
    /// let error = portcullis_config::Settings::parse(text, Path::new("default.json")).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "reading settings `default.json`: line 1, column 16: \
    ///      unknown key `allowedDomain`, did you mean `allowedDomains`?",
    /// );
    /// ```
    ///
    /// # Errors
    /// When the text is no JSON, has an unknown or duplicate key, a value of the wrong type, or a field that is
    /// refused.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        let document = crate::json::read(text).map_err(|fault| invalid(file, fault))?;
        Self::from_node(&document, file, "")
    }

    /// Returns the settings that hold where there is no file.
    ///
    /// # Errors
    /// Never in a build whose tests pass; a caller denies if it does.
    pub fn built_in() -> Result<Self, ConfigError> {
        Self::parse(BUILT_IN, Path::new("<built in>"))
    }

    /// Reads settings that stand at `pointer` in `file`.
    pub(crate) fn from_node(node: &Node, file: &Path, pointer: &str) -> Result<Self, ConfigError> {
        let kept = check(node, pointer, Completeness::Whole).map_err(|fault| invalid(file, fault))?;
        if chooses_layered(node) {
            let place = crate::decode::Place::top(node, file).child("layout");
            let fault = place.fault("only `default.json` chooses the layout, and holds nothing else then");
            return Err(invalid(file, fault));
        }
        if let Some(extends) = node.member(EXTENDS) {
            let reason = "only an entry of `projects.json` extends other settings";
            return Err(invalid(file, bad_value(extends, &step(pointer, EXTENDS), reason)));
        }
        crate::decode::settings(node, file, pointer, kept).map_err(|fault| invalid(file, fault))
    }
}

/// Adds the file to a fault.
pub(crate) fn invalid(file: &Path, fault: Fault) -> ConfigError {
    ConfigError::Invalid {
        file: file.to_owned(),
        at: fault.at,
        pointer: fault.pointer,
        problem: fault.problem,
    }
}
