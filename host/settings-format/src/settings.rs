//! Decoded settings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use portcullis_decision::combine::Combine;
use portcullis_decision::pattern::{HostPattern, NetworkPattern};
use portcullis_decision::profile::Limits;

use crate::brokered::{BrokeredCredential, HostRequests};
use crate::choices::{Elsewhere, UnlistedHosts};
use crate::entry::{Entry, Origin, PathEntry};
use crate::grant_entry::GrantEntry;
use crate::kept_field::KeptField;
use crate::parent_proxy::ParentProxy;
use crate::pushes::HostPushes;
use crate::signing::SigningCredential;
use crate::source_map::Sites;
use crate::ssh::SshCredential;
use crate::warning::Warning;

/// A complete, checked set of settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Whether the sandbox is on.
    pub enabled: bool,
    /// Names of presets, whose hosts are allowed.
    pub presets: Vec<Entry<String>>,
    /// Names of presets to whose hosts only requests are sent that read.
    pub read_only_presets: Vec<Entry<String>>,
    /// Connections.
    pub network: Network,
    /// Files.
    pub filesystem: Filesystem,
    /// Files and variables that hold secrets.
    pub credentials: Credentials,
    /// The policy chain, in order; never empty.
    pub policies: Vec<PolicyEntry>,
    /// How the verdicts of several policies are combined.
    pub combine: Combine,
    /// Settings of questions to the user.
    pub ask: Ask,
    /// Whether the agent may ask to run a command outside the sandbox.
    pub escalation: Escalation,
    /// The behaviour of a client without an interface after refusals.
    pub unattended_refusals: UnattendedRefusals,
    /// The size of a private home, in MiB.
    pub home_mib: Option<u64>,
    /// What is kept for undoing.
    pub undo: Undo,
    /// The minimum tier of the sandbox for commands.
    pub required_tier: RequiredTier,
    /// Limits for one command; `None` means the host's default.
    pub limits: Limits,
    /// Environment variables of commands.
    pub environment: Environment,
    /// Ids of the host's rules that are lifted.
    pub lifted: Vec<String>,
    /// Grants.
    pub grants: Vec<GrantEntry>,
    /// Reports that are suppressed.
    pub ignored: Vec<Ignored>,
    /// Fields that are set and have no effect.
    pub kept: Vec<KeptField>,
}

/// Reports of refusals that are suppressed for some commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// Text that the command contains; `*` matches every command.
    pub command: String,
    /// Texts that the report contains: a path, a host.
    pub parts: Vec<String>,
}

impl Ignored {
    /// Returns true if a report on this command is suppressed.
    #[must_use]
    pub fn covers(&self, command: &str, report: &str) -> bool {
        let is_meant = self.command == "*" || command.contains(&self.command);
        is_meant && self.parts.iter().any(|part| report.contains(part))
    }
}

/// Connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// Hosts to connect to without a question.
    pub allowed_domains: Vec<Entry<NetworkPattern>>,
    /// Hosts that are always denied.
    pub denied_domains: Vec<Entry<NetworkPattern>>,
    /// Reasons for entries of `denied_domains`, by their text.
    pub denied_domain_reasons: BTreeMap<String, String>,
    /// Whether hosts that are not allowed are denied instead of asked about.
    pub strict_allowlist: bool,
    /// Addresses that are always denied, whatever the host name.
    pub denied_resolved_addresses: Vec<Entry<HostPattern>>,
    /// Unix sockets that commands may use.
    pub unix_sockets: Vec<Entry<PathEntry>>,
    /// Checks on connections.
    pub connecting: Connecting,
    /// MiB that may be sent to one host and port per session without a question; `None` means the host's default.
    pub upload_budget_mib: Option<Entry<u32>>,
    /// The user's own proxy.
    pub parent_proxy: ParentProxy,
    /// Hosts that are neither allowed nor denied.
    pub unlisted_hosts: UnlistedHosts,
    /// The reason for which no host is reached, with the key that says so as its text.
    pub closed: Option<Entry<String>>,
    /// Warnings on keys that are honoured by refusing more.
    pub warnings: Vec<Warning>,
    /// Hosts to which only some requests are sent.
    pub requests: Vec<HostRequests>,
    /// Pushes of git that are sent, by host.
    pub pushes: Vec<HostPushes>,
}

/// Checks on connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connecting {
    /// Whether TLS and plain HTTP must name the allowed server.
    pub names_match: bool,
    /// Whether TLS may hide or omit the server name.
    pub hidden_names: bool,
    /// Whether servers that commands run may be opened to this machine.
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
    /// Paths that are never read.
    pub deny_read: Vec<Entry<PathEntry>>,
    /// Paths to read without a question.
    pub allow_read: Vec<Entry<PathEntry>>,
    /// Paths to read and write without a question.
    pub allow_write: Vec<Entry<PathEntry>>,
    /// Paths that are never written.
    pub deny_write: Vec<Entry<PathEntry>>,
    /// What commands see besides what is allowed.
    pub elsewhere: Elsewhere,
    /// Where it is written that `/tmp` is the machine's; `None` if it is the session's own.
    pub shared_tmp: Option<Origin>,
}

/// Secrets: files and variables that commands do not see, and credentials that they use without having them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The files.
    pub files: Vec<Entry<PathEntry>>,
    /// The names of the variables.
    pub variables: Vec<String>,
    /// Warnings on entries that are to be masked, and are denied.
    pub warnings: Vec<Warning>,
    /// Credentials that commands use without having them.
    pub brokered: Vec<BrokeredCredential>,
    /// Hosts that git reaches by the user's own `ssh`.
    pub ssh: Vec<SshCredential>,
    /// The key with which commits and tags of commands are signed outside.
    pub signing: Option<SigningCredential>,
    /// The files that these come from, each with the index of its entry; all are denied.
    pub source_files: Vec<(usize, Entry<PathEntry>)>,
    /// The private key beside the public one of `signing`, which is denied.
    pub signing_key: Option<Entry<PathEntry>>,
}

/// One policy of the chain.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyEntry {
    /// Its name, unique in the chain.
    pub name: String,
    /// The source of its component.
    pub source: PolicySource,
    /// Its configuration.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// The file with its configuration, as written: relative to the settings file's directory, or below `~`.
    pub config_file: Option<PathBuf>,
    /// Whether its verdicts count.
    pub mode: PolicyMode,
    /// Where it is named; `None` for the default.
    pub origin: Option<Origin>,
    /// Where the values of its configuration were written.
    pub sites: Sites,
}

/// The source of a policy component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicySource {
    /// Shipped with Portcullis.
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
    /// They count where they are stricter than the verdict without them.
    Tighten,
    /// They are logged but do not count.
    Observe,
}

/// The minimum tier of the sandbox for commands, in ascending order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequiredTier {
    /// Landlock, rules over names and a stricter system call filter, without namespaces.
    Landlock,
    /// Namespaces, mounts and the system call filter.
    Namespaces,
    /// All layers.
    #[default]
    Full,
}

/// Settings of questions to the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ask {
    /// Time after which an unanswered question counts as "no"; `None` means the host's default.
    pub timeout_ms: Option<u32>,
    /// Lifetime of an answer for one project or all projects; `None` means no expiry.
    pub grant_seconds: Option<u32>,
    /// Where connections wait for an answer.
    pub hold: Hold,
    /// Whether answers for a host that last cover every port of it.
    pub every_port: bool,
}

/// Where connections wait for an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hold {
    /// Inside connect(2).
    #[default]
    Connect,
    /// After the connection is accepted.
    Accept,
}

/// Whether the agent may ask to run a command outside the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Escalation {
    /// It may not.
    #[default]
    Off,
    /// It may, and the user is asked each time.
    Ask,
}

/// What a session keeps, so that its changes can be undone; `None` means the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Undo {
    /// The largest file that is kept, in MiB.
    pub max_file_mib: Option<u64>,
    /// How much one session keeps, in MiB.
    pub max_session_mib: Option<u64>,
    /// For how many days it is kept.
    pub keep_days: Option<u64>,
}

/// The behaviour of a client without an interface, such as `pi -p`, after refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnattendedRefusals {
    /// It prints them, and fails if a question could be put to nobody.
    #[default]
    Fail,
    /// It prints them.
    Report,
    /// It says nothing.
    Quiet,
}

/// Environment variables of commands, in addition to the host's own rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Globs over names to keep although the host would drop them.
    pub keep: Vec<String>,
    /// Globs over names to drop; overrides `keep`.
    pub drop: Vec<String>,
    /// Values to set.
    pub set: BTreeMap<String, String>,
}

/// The settings without a settings file: the defaults of `@oddsjam/pi-sandbox`, unchanged.
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
