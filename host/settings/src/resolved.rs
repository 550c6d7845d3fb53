//! Settings that are ready for use.

use std::path::PathBuf;

use portcullis_decision::Grant;
use portcullis_decision::combine::Combine;
use portcullis_decision::pattern::{FilePattern, NetworkPattern};
use portcullis_decision::profile::{BudgetRule, Limits, Profile};
use portcullis_decision::rules::{Base, RuleLayer};
use portcullis_decision::verdict::Effect;
use portcullis_settings_format::{
    Ask, BrokeredCredential, Connecting, Environment, Escalation, HostPushes, HostRequests, Ignored,
    KeptField, Layer, Origin, ParentProxy, PolicyMode, PolicySource, RequiredTier, SigningCredential, Sites,
    SshCredential, UnattendedRefusals, Undo, UnlistedHosts, Warning,
};

use crate::agent_definition::template::AgentDefinition;
use crate::old_settings::OldFile;
use crate::presets::PRESET_RULE;
use crate::rule::{ConnectionRule, Rule};
use crate::rule_layers::{environment_rules, layers};

/// Settings that are ready for use: plain data, all paths absolute and canonical.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Whether the sandbox is on.
    pub enabled: bool,
    /// The canonical working directory.
    pub workspace: PathBuf,
    /// The canonical home directories of the user.
    pub homes: Vec<PathBuf>,
    /// The repository of the workspace, if it lies outside.
    ///
    /// This is the case for a linked worktree and for a submodule.
    pub git_directory: Option<PathBuf>,
    /// The temporary directory as commands and tools see it.
    pub temp: PathBuf,
    /// Whether `/tmp` is the machine's.
    pub shares_tmp: bool,
    /// Directories that are hidden from commands and that tools ask about, unless a rule matches.
    pub closed: Vec<PathBuf>,
    /// File rules of the host, the user, the machine and the project. In each layer the last matching rule wins.
    pub rules: Vec<Rule>,
    /// Connection rules, with the same order.
    pub connections: Vec<ConnectionRule>,
    /// Paths to read without a question: configuration for policies. Includes the writable paths.
    pub allow_read: Vec<FilePattern>,
    /// Paths to write without a question: configuration for policies.
    pub allow_write: Vec<FilePattern>,
    /// Hosts to connect to without a question: configuration for policies.
    pub allowed_domains: Vec<NetworkPattern>,
    /// Hosts that are always denied.
    pub denied_domains: Vec<NetworkPattern>,
    /// Whether hosts that are not allowed are denied instead of asked about.
    pub strict_allowlist: bool,
    /// Unix sockets that commands may use.
    pub sockets: Vec<PathBuf>,
    /// What happens to hosts in neither list.
    pub unlisted_hosts: UnlistedHosts,
    /// Checks on connections.
    pub connecting: Connecting,
    /// The user's own proxy.
    pub parent_proxy: ParentProxy,
    /// Credentials that commands use without having them.
    pub brokered: Vec<BrokeredCredential>,
    /// Hosts that git reaches by the user's own `ssh`.
    pub ssh: Vec<SshCredential>,
    /// The key with which commits and tags of commands are signed outside.
    pub signing: Option<SigningCredential>,
    /// Hosts to which only some requests are sent.
    pub requests: Vec<HostRequests>,
    /// Pushes of git that are sent, by host.
    pub pushes: Vec<HostPushes>,
    /// Amount of data to send without a question, for each layer that sets it.
    pub budgets: Vec<(Layer, BudgetRule)>,
    /// The policy chain, in order; never empty.
    pub policies: Vec<ResolvedPolicy>,
    /// The origins of the policies, in the same order.
    pub policies_at: Vec<PolicyAt>,
    /// The origins of the lists that configure policies, by the names that policies use: `/allowRead/0`.
    pub lists_at: Sites,
    /// How the verdicts of several policies are combined.
    pub combine: Combine,
    /// Settings of questions to the user.
    pub ask: Ask,
    /// Whether the agent may ask to run a command outside the sandbox.
    pub escalation: Escalation,
    /// The behaviour of a client without an interface after refusals.
    pub unattended_refusals: UnattendedRefusals,
    /// The size of the project's private home, in MiB.
    pub home_mib: u64,
    /// What a session keeps for undoing.
    pub undo: Undo,
    /// The minimum tier of the sandbox for commands, the strictest of all layers.
    pub required_tier: RequiredTier,
    /// The user's limits for one command; `None` means the host's default.
    pub limits: Limits,
    /// The strictest limits of the layers that can only tighten.
    ///
    /// They apply where they are stricter than the user's limits or the host's defaults.
    pub tightened_limits: Limits,
    /// Environment variables of commands.
    pub environment: Environment,
    /// Variable names dropped by layers that can only tighten.
    ///
    /// They drop inherited variables, not those that the user sets.
    pub dropped: Vec<String>,
    /// Ids of the host's rules that the user has lifted; `rules` does not contain them.
    pub lifted: Vec<String>,
    /// Grants from the settings, besides the allow lists.
    pub grants: Vec<Grant>,
    /// Reports to the model that are suppressed.
    pub ignored: Vec<Ignored>,
    /// Fields that are set and have no effect.
    pub kept: Vec<KeptField>,
    /// Warnings for the user.
    pub warnings: Vec<Warning>,
    /// The user's text for this agent.
    pub definition: Option<AgentDefinition>,
    /// Settings files of other sandboxes, which are not read.
    pub unread: Vec<OldFile>,
    /// Origins of entries that a project's own file takes away, and of its own entries without effect.
    pub narrowed: Vec<Origin>,
}

/// A policy of the chain, with its file resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedPolicy {
    /// Its name.
    pub name: String,
    /// The source of its component; a file is absolute and canonical.
    pub source: PolicySource,
    /// Its configuration.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// The file of the configuration, absolute and canonical; `None` if it is in the settings.
    pub config_file: Option<PathBuf>,
    /// Whether its verdicts count.
    pub mode: PolicyMode,
}

/// The origin of a policy in the settings.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyAt {
    /// Where it is named; `None` for the default.
    pub origin: Option<Origin>,
    /// Where the values of its configuration were written.
    pub sites: Sites,
}

impl Resolved {
    /// Returns the rules that deny reading.
    pub fn deny_read(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(|rule| rule.effect == Effect::Deny && rule.rights.read)
    }

    /// Returns the rules that deny writing.
    pub fn deny_write(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(|rule| rule.effect == Effect::Deny && rule.rights.write)
    }

    /// Returns the ceiling for the rule set.
    ///
    /// The rules of the host, the user, the machine and the project are separate layers, of which the strictest
    /// decides. Limits of layers other than the user's are in layers that can only tighten: if only those set a limit,
    /// the host's default applies as well.
    #[must_use]
    pub fn ceiling(&self) -> Vec<RuleLayer> {
        let mut layers = layers(&self.rules, &self.connections);
        if let Some(user) = layers.iter_mut().find(|layer| layer.name == Layer::User.name()) {
            user.profile.limits = self.limits;
            user.profile.budgets = self.budgets_of(|owner| owner == Layer::User).collect();
            user.profile.environment = environment_rules(&self.environment, &self.dropped);
            user.profile.variables =
                self.environment.set.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        }
        for tightening in [Layer::Machine, Layer::Team, Layer::Project, Layer::Sandbox] {
            let budgets = self.budgets_of(|owner| owner == tightening).collect();
            let profile = Profile { budgets, ..Profile::default() };
            layers.push(RuleLayer { name: tightening.name().to_owned(), profile, tightens: true });
        }
        let profile = Profile { limits: self.tightened_limits, ..Profile::default() };
        layers.push(RuleLayer { name: "limits".to_owned(), profile, tightens: true });
        layers
    }

    /// Returns the hosts of the presets that the settings name.
    pub fn preset_hosts(&self) -> impl Iterator<Item = &NetworkPattern> {
        let of_presets = self.budgets.iter().filter(|(_, budget)| budget.id.starts_with(PRESET_RULE));
        of_presets.map(|(_, budget)| &budget.target)
    }

    fn budgets_of(&self, is_owner: impl Fn(Layer) -> bool) -> impl Iterator<Item = BudgetRule> {
        self.budgets.iter().filter(move |(owner, _)| is_owner(*owner)).map(|(_, budget)| budget.clone())
    }

    /// Returns the base for the rule set, which decides where no rule matches.
    #[must_use]
    pub fn base(&self) -> Base {
        let workspace = std::iter::once(&self.workspace).chain(&self.git_directory).cloned().collect();
        Base { workspace, temp: self.temp.clone(), closed: self.closed.clone(), ..Base::default() }
    }

    /// Returns true if the value at `origin` has no effect because of a project's own file.
    #[must_use]
    pub fn is_narrowed_away(&self, origin: &Origin) -> bool {
        let holds = |gone: &Origin| {
            let rest = origin.pointer.strip_prefix(gone.pointer.as_str());
            gone.file == origin.file && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.narrowed.iter().any(holds)
    }

    /// Returns where the rule with this layer and id was written.
    #[must_use]
    pub fn origin(&self, layer: &str, id: &str) -> Option<&Origin> {
        let files = self.rules.iter().map(|rule| (rule.layer, &rule.id, &rule.origin));
        let connections = self.connections.iter().map(|rule| (rule.layer, &rule.id, &rule.origin));
        let mut all = files.chain(connections);
        all.find(|(owner, known, _)| owner.name() == layer && *known == id).and_then(|(_, _, at)| at.as_ref())
    }
}
