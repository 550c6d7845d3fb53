//! Settings ready for use.

use std::path::PathBuf;

use portcullis_decision::Grant;
use portcullis_decision::combine::Combine;
use portcullis_decision::pattern::{FilePattern, NetworkPattern};
use portcullis_decision::profile::{BudgetRule, Limits, Profile};
use portcullis_decision::rules::{Base, RuleLayer};
use portcullis_decision::verdict::Effect;

use crate::check::KeptField;
use crate::old_settings::OldFile;
use crate::parent_proxy::ParentProxy;
use crate::rule::{ConnectionRule, Rule, environment_rules, layers};
use crate::settings::{
    Ask, Connecting, Environment, Escalation, Ignored, Origin, PolicyMode, PolicySource, RequiredTier,
};
use crate::sites::Sites;
use crate::tighten::Layer;

/// Settings ready for use: plain data, every path absolute and canonical.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Whether the sandbox is on.
    pub enabled: bool,
    /// The canonical working directory.
    pub workspace: PathBuf,
    /// The canonical home directories of the user.
    pub homes: Vec<PathBuf>,
    /// The repository of a workspace that is a linked worktree or a submodule, where it lies elsewhere.
    pub git_directory: Option<PathBuf>,
    /// The temporary directory as commands and tools see it.
    pub temp: PathBuf,
    /// Regions hidden from commands and a question for tools, where no rule speaks.
    pub closed: Vec<PathBuf>,
    /// Rules on files of the host, the user, the machine and the project; for each layer in the order in which
    /// the last match answers.
    pub rules: Vec<Rule>,
    /// Rules on connections, in the same way.
    pub connections: Vec<ConnectionRule>,
    /// What is read without a question: configuration for policies. What may be written is in it.
    pub allow_read: Vec<FilePattern>,
    /// What is written without a question: configuration for policies.
    pub allow_write: Vec<FilePattern>,
    /// Hosts reached without a question: configuration for policies.
    pub allowed_domains: Vec<NetworkPattern>,
    /// Hosts never reached.
    pub denied_domains: Vec<NetworkPattern>,
    /// Whether hosts that are not allowed are refused in place of asked for.
    pub strict_allowlist: bool,
    /// Unix sockets that commands may use.
    pub sockets: Vec<PathBuf>,
    /// What is looked at in connections.
    pub connecting: Connecting,
    /// The user's own proxy.
    pub parent_proxy: ParentProxy,
    /// What may be sent without a question, for each layer that says so.
    pub budgets: Vec<(Layer, BudgetRule)>,
    /// The policy chain, in order; never empty.
    pub policies: Vec<ResolvedPolicy>,
    /// Where the policies are named, in the same order, and their configurations written.
    pub policies_at: Vec<PolicyAt>,
    /// Where the lists stand that are configuration for policies, under the names that policies know them by:
    /// `/allowRead/0`.
    pub lists_at: Sites,
    /// How the verdicts of several policies become one.
    pub combine: Combine,
    /// Questions to the user.
    pub ask: Ask,
    /// Whether the agent may ask for a command outside of the sandbox.
    pub escalation: Escalation,
    /// The least that the sandbox of commands must be, the strictest of all layers.
    pub required_tier: RequiredTier,
    /// The user's limits of one command; none: the host's default.
    pub limits: Limits,
    /// The strictest limits of the layers that can only tighten: they count where they are stricter than the user's,
    /// or than the host's default.
    pub tightened_limits: Limits,
    /// What commands see of the environment.
    pub environment: Environment,
    /// Names that the layers drop which can only tighten: of what is inherited, not of what the user sets.
    pub dropped: Vec<String>,
    /// Ids of rules of the host that the user has lifted; none of them is in `rules`.
    pub lifted: Vec<String>,
    /// Answers that are kept beside the allow lists.
    pub grants: Vec<Grant>,
    /// Reports to the model that are not made.
    pub ignored: Vec<Ignored>,
    /// What is set and changes nothing.
    pub kept: Vec<KeptField>,
    /// What the user should know although it is no error.
    pub warnings: Vec<Warning>,
    /// Settings files of other sandboxes that nothing here reads.
    pub unread: Vec<OldFile>,
    /// Where stands what a project's own file takes away, or says in vain.
    pub narrowed: Vec<Origin>,
}

/// A policy of the chain, its file found.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedPolicy {
    /// The name it goes by.
    pub name: String,
    /// Where its component comes from; a file is absolute and canonical.
    pub source: PolicySource,
    /// What is handed to it.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// The file that this came from, absolute and canonical; none: the settings.
    pub config_file: Option<PathBuf>,
    /// Whether its verdicts count.
    pub mode: PolicyMode,
}

/// Where a policy of the chain comes from in the settings.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyAt {
    /// Where it is named; none for the default.
    pub origin: Option<Origin>,
    /// Where its configuration was written.
    pub sites: Sites,
}

/// Something the user should know although it is no error.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// What and what to do about it.
    pub text: String,
    /// Where it was written.
    pub origin: Origin,
}

impl Resolved {
    /// Returns the rules that refuse reading.
    pub fn deny_read(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(|rule| rule.effect == Effect::Deny && rule.rights.read)
    }

    /// Returns the rules that refuse writing.
    pub fn deny_write(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(|rule| rule.effect == Effect::Deny && rule.rights.write)
    }

    /// Returns the ceiling for the rule set: the host's, the user's, the machine's and the project's rules, each a
    /// layer of its own, so that the strictest of them answers. Numbers of others than the user are in layers that can
    /// only tighten: where they alone say anything, the host's default holds as well.
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
        for tightening in [Layer::Machine, Layer::Project, Layer::Sandbox] {
            let budgets = self.budgets_of(|owner| owner == tightening).collect();
            let profile = Profile { budgets, ..Profile::default() };
            layers.push(RuleLayer { name: tightening.name().to_owned(), profile, tightens: true });
        }
        let profile = Profile { limits: self.tightened_limits, ..Profile::default() };
        layers.push(RuleLayer { name: "limits".to_owned(), profile, tightens: true });
        layers
    }

    fn budgets_of(&self, is_owner: impl Fn(Layer) -> bool) -> impl Iterator<Item = BudgetRule> {
        self.budgets.iter().filter(move |(owner, _)| is_owner(*owner)).map(|(_, budget)| budget.clone())
    }

    /// Returns what holds where no rule speaks.
    #[must_use]
    pub fn base(&self) -> Base {
        let workspace = std::iter::once(&self.workspace).chain(&self.git_directory).cloned().collect();
        Base { workspace, temp: self.temp.clone(), closed: self.closed.clone() }
    }

    /// Whether what stands there does not hold, because a project's own file takes it away or says it in vain.
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
