//! Descriptions of the policy in force: sentences computed from the compiled rules.
//!
//! `/sandbox`, `config show`, `config import`, `doctor` and the model's system prompt use these sentences. No other
//! code describes the policy in force.

mod hosts;
mod lists;
mod text;

use std::path::{Component, Path, PathBuf};

use portcullis_approvals::Cancel;
use portcullis_decision::profile::FileRight;
use portcullis_decision::request::{Content, FileOperation, Origin};
use portcullis_decision::rules::{Availability, FileFacts, HostFacts};
use portcullis_decision::{Base, Caller, Effect, Grant, Mode, RuleSet};
use portcullis_sandbox::Tier;
use portcullis_session_sandbox::confining::Confining;
use portcullis_settings_format::PolicySource;
use portcullis_text::counted;
use serde_json::{Value, json};

use crate::basis::Basis;
use crate::command_call::{CommandCall, Program};
use crate::commands;
use crate::effective_policy::EffectivePolicy;
use crate::files::{self, FileCall};
use crate::session::Session;
use lists::{Items, Names};
pub use text::Statement;

/// Facts about the policy in force, to be turned into sentences.
#[derive(Debug, Clone)]
pub struct Statements {
    files: Vec<FileFacts>,
    hosts: HostFacts,
    /// Hosts that a grant allows.
    granted: Vec<String>,
    base: Base,
    homes: Vec<PathBuf>,
    commands: Commands,
    tier: Tier,
    /// Policies that decide on each file operation of tools in addition to the rules.
    stricter: Vec<String>,
    /// Whether the user has lifted protections of the host.
    has_lifted: bool,
    /// Whether new dot files ask in a project that is writable.
    asks_for_names: bool,
}

/// Whether and how commands run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Commands {
    /// In a sandbox with a network of its own.
    Run,
    /// In a sandbox without network.
    WithoutNetwork,
    /// Commands are refused.
    Refused,
}

/// Whether the sandbox of this tier watches the names that commands change.
fn watches_names(tier: Tier) -> bool {
    match tier {
        Tier::Full | Tier::Landlock | Tier::Profile | Tier::None => true,
        Tier::Namespaces => false,
    }
}

/// All callers and rights with statements.
const RIGHTS: [(Caller, FileRight); 4] = [
    (Caller::Command, FileRight::Read),
    (Caller::Tool, FileRight::Read),
    (Caller::Command, FileRight::Write),
    (Caller::Tool, FileRight::Write),
];

/// Returns the rules for an unknown command, if they differ from the session's.
fn stricter_rules(session: &Session, effective: &EffectivePolicy) -> Option<RuleSet> {
    let cwd = effective.basis.resolved.workspace.clone();
    let call = CommandCall {
        program: Program::Script(ANY_SCRIPT.to_owned()),
        cwd: &cwd,
        environment: Vec::new(),
        timeout: None,
        origin: Origin::Agent,
        call: None,
    };
    let request = session.request(Origin::Agent, commands::action(session, &call).ok()?);
    let context = session.context_for(&request, &session.live_grants());
    effective.stricter_rules(&session.setup, &request, &context)
}

/// Names that no rule mentions.
const NEW_FILE: &str = "portcullis-example";
const NEW_DOT_FILE: &str = ".portcullis-example";
/// A command without effect.
const ANY_SCRIPT: &str = "true";

/// Returns the policies that decide on each file operation of tools.
///
/// The default policy is not among them, since it decides there as its rules say.
fn stricter(basis: &Basis) -> Vec<String> {
    let is_default = |name: &str| {
        let mut policies = basis.resolved.policies.iter();
        policies
            .any(|policy| policy.name == name && policy.source == PolicySource::Shipped(DEFAULT.to_owned()))
    };
    let members = basis.chain.members.iter().filter(|member| member.mode != Mode::Observe);
    let names = members.filter(|member| member.policy.handles().file).map(|member| member.policy.name());
    names.filter(|name| !is_default(name)).map(str::to_owned).collect()
}

/// The default policy.
const DEFAULT: &str = "workspace";

impl Statements {
    /// Returns the policy in force in a session.
    ///
    /// If the session runs no commands, it describes those of a session with a sandbox of `tier`.
    #[must_use]
    pub fn for_session(session: &Session, tier: Tier) -> Self {
        let effective = session.effective_policy();
        let tier = match (&session.setup.confinement, &effective.confinement) {
            (Confining::NoCommands, _) => tier,
            (Confining::Sandbox { .. } | Confining::Profile(_), Ok(confinement)) => {
                confinement.report().tier()
            }
            (Confining::Sandbox { .. } | Confining::Profile(_), Err(_)) => Tier::None,
        };
        let stricter = stricter_rules(session, &effective);
        let commands = stricter.as_ref().unwrap_or(&effective.rules);
        let mut statements =
            Self::new((&effective.rules, commands), &session.live_grants(), tier, &effective.basis);
        statements.find_names_that_ask(session);
        statements
    }

    /// Adds whether names ask in writable places.
    ///
    /// The rules on names are the same for commands and tools, and are not part of the rules on places.
    fn find_names_that_ask(&mut self, session: &Session) {
        let asks = |file: &Path| {
            let call = FileCall { path: file, given: "", call: None, cancel: &Cancel::default() };
            let request = files::request(session, call, FileOperation::Write(Content::Unknown)).ok()?;
            let effective = session.policy.unchecked();
            let ruling = session.exec_surface(&effective).ruling(&request, &session.live_grants())?;
            (ruling.effect != Effect::Allow).then_some(())
        };
        let workspace = self.base.workspace.first().cloned();
        let writing = |facts: &FileFacts| facts.right == FileRight::Write;
        for facts in self.files.iter_mut().filter(|facts| writing(facts)) {
            let dotted = facts.places.iter_mut().filter(|place| {
                let below = workspace.as_ref().and_then(|top| place.path.strip_prefix(top).ok());
                let has_dot = |name: Component<'_>| name.as_os_str().as_encoded_bytes().starts_with(b".");
                place.standing == Availability::Free
                    && below.is_some_and(|rest| rest.components().any(has_dot))
            });
            for place in dotted.filter(|place| asks(&place.path.join(NEW_FILE)).is_some()) {
                place.standing = Availability::Asked;
            }
        }
        let is_free = |top: &PathBuf| {
            let mut writing = self.files.iter().filter(|facts| writing(facts));
            writing.all(|facts| facts.at(top) == Availability::Free)
        };
        self.asks_for_names =
            workspace.is_some_and(|top| is_free(&top) && asks(&top.join(NEW_DOT_FILE)).is_some());
    }

    /// Computes the facts from the rules of the session and of a command.
    fn new((rules, commands): (&RuleSet, &RuleSet), grants: &[Grant], tier: Tier, basis: &Basis) -> Self {
        let files = RIGHTS.map(|(caller, right)| match caller {
            Caller::Command => commands.file_facts(caller, right),
            Caller::Tool => rules.file_facts(caller, right),
        });
        let (hosts, granted) = hosts::with_grants(commands.host_facts(), grants);
        let run = match tier {
            Tier::None => Commands::Refused,
            Tier::Landlock => Commands::WithoutNetwork,
            Tier::Profile | Tier::Namespaces | Tier::Full => Commands::Run,
        };
        Self {
            files: files.to_vec(),
            hosts,
            granted,
            base: rules.base().clone(),
            homes: basis.resolved.homes.clone(),
            commands: run,
            tier,
            stricter: stricter(basis),
            has_lifted: !basis.resolved.lifted.is_empty(),
            asks_for_names: false,
        }
    }

    /// Returns all statements, each fact once. Lists are cut to `most` items.
    #[must_use]
    pub fn all(&self, most: usize) -> Vec<Statement> {
        let mut all: Vec<Statement> = self.home(most).into_iter().collect();
        all.extend(self.in_short(most));
        all
    }

    /// Returns all statements except those that follow from the others.
    #[must_use]
    pub fn in_short(&self, most: usize) -> Vec<Statement> {
        let mut all = Vec::new();
        let mut sets: Vec<(&FileFacts, Items)> =
            self.files.iter().map(|facts| (facts, Items::from_facts(facts, &self.names()))).collect();
        let is_any = |_| true;
        let never = [
            ("read or written", lists::take_denied(&mut sets, is_any)),
            ("written", lists::take_denied(&mut sets, |right| right == FileRight::Write)),
        ];
        for pair in sets.chunks(2) {
            match pair {
                [(commands, one), (_, other)] if one == other => {
                    all.push(text::files(&[Caller::Command, Caller::Tool], commands.right, one, most));
                }
                pair => {
                    let each = pair.iter();
                    all.extend(
                        each.map(|(facts, items)| text::files(&[facts.caller], facts.right, items, most)),
                    );
                }
            }
        }
        all.extend(never.iter().filter_map(|(verb, items)| text::never(verb, items, most)));
        all.extend(text::protected(&sets, self.has_lifted));
        all.extend(self.asks_for_names.then(|| text::names_that_ask(watches_names(self.tier))));
        all.extend(self.own());
        all.extend((self.tier == Tier::Landlock).then(text::without_mounts));
        all.extend((self.tier == Tier::Profile).then(text::under_profile));
        all.extend(text::stricter(&self.stricter));
        all.push(self.hosts(most));
        all.extend((self.commands == Commands::Refused).then(text::no_commands));
        all
    }

    /// Returns the statement on commands in the user's home directory.
    fn home(&self, most: usize) -> Option<Statement> {
        let home = self.homes.first().filter(|home| home.as_path() != Path::new("/"))?;
        let [reading, _, writing, _] = self.files.as_slice() else { return None };
        let rights = [reading, writing].map(|facts| self.of_commands_at(home, facts));
        Some(text::home((home, rights), reading, &self.names(), most))
    }

    /// Returns the availability of a path to commands. The session's own directory covers what lies below it on the
    /// disk, except the places that rules name there.
    fn of_commands_at(&self, path: &Path, facts: &FileFacts) -> Availability {
        let is_below = |path: &Path| path != self.base.temp && path.starts_with(&self.base.temp);
        let mut named = facts.places.iter().map(|place| &place.path);
        if is_below(path) && !named.any(|place| is_below(place) && path.starts_with(place)) {
            return Availability::Hidden;
        }
        facts.at(path)
    }

    /// Returns the statement on the directories that the sandbox has of its own, besides the temporary one.
    fn own(&self) -> Option<Statement> {
        let Names { has_mounts: true, base, .. } = self.names() else { return None };
        let is_free =
            |directory: &&PathBuf| self.files.iter().all(|facts| facts.at(directory) == Availability::Free);
        let directories: Vec<&Path> =
            base.own.directories.iter().filter(is_free).map(PathBuf::as_path).collect();
        let home = base.own.home.as_ref().map(|home| home.path.as_path());
        // Where names are not watched there is none.
        let home = home
            .filter(|_| self.tier == Tier::Full)
            .filter(|_| self.files.iter().all(|facts| facts.own_home == Some(Availability::Free)));
        text::own(home, &directories, &self.names())
    }

    /// Returns the statement on hosts.
    fn hosts(&self, most: usize) -> Statement {
        match self.commands {
            Commands::WithoutNetwork => text::no_network(),
            Commands::Run | Commands::Refused => text::hosts(&self.hosts, &self.granted, most),
        }
    }

    /// Returns the number of host rules and grants that allow commands to connect without a question.
    #[must_use]
    pub fn open_hosts(&self) -> usize {
        if self.commands == Commands::WithoutNetwork {
            return 0;
        }
        hosts::open(&self.hosts) + self.granted.len()
    }

    /// Returns the number of places that commands may write without a question, without the session's own directory.
    #[must_use]
    pub fn written_places(&self) -> usize {
        let writing = self.files.iter().find(|facts| facts.right == FileRight::Write);
        let places = writing.into_iter().flat_map(|facts| &facts.places);
        let is_own = |path: &PathBuf| *path == self.base.temp || self.base.own.directories.contains(path);
        places.filter(|place| place.standing == Availability::Free && !is_own(&place.path)).count()
    }

    /// Returns what commands write and reach without a question, in a few words for a footer.
    #[must_use]
    pub fn summary(&self) -> String {
        if self.commands == Commands::Refused {
            return "no commands".to_owned();
        }
        let writing = self.files.iter().find(|facts| facts.right == FileRight::Write);
        let is_free = |top: &PathBuf| writing.is_some_and(|facts| facts.at(top) == Availability::Free);
        let here = self.base.workspace.first().is_some_and(is_free);
        let writes = match (here, self.written_places()) {
            (_, 0) => "writes nothing".to_owned(),
            (true, 1) => "writes here".to_owned(),
            (true, places) => format!("writes here and {}", counted(places - 1, "place")),
            (false, places) => format!("writes {}", counted(places, "place")),
        };
        let elsewhere = match self.hosts.elsewhere {
            Effect::Allow => "allows every host",
            Effect::Ask => "asks network",
            Effect::Deny => "no network",
        };
        let network = match (self.open_hosts(), self.hosts.elsewhere) {
            _ if self.commands == Commands::WithoutNetwork => "no network".to_owned(),
            (0, _) | (_, Effect::Allow) => elsewhere.to_owned(),
            (hosts, Effect::Ask) => format!("{}, asks others", counted(hosts, "host")),
            (hosts, Effect::Deny) => format!("{}, no others", counted(hosts, "host")),
        };
        format!("{writes} · {network}")
    }

    /// Returns all statements as JSON, with all list items.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let files =
            self.files.iter().map(|facts| Items::from_facts(facts, &Names::plain(&self.base)).to_json(facts));
        let texts = self.all(usize::MAX).into_iter();
        let texts = texts.map(|statement| json!({ "about": statement.about, "text": statement.text }));
        let hosts = self.hosts.targets.iter().map(|fact| {
            json!({ "target": fact.target.to_string(), "program": fact.program, "effect": fact.effect.to_string() })
        });
        json!({
            "statements": texts.collect::<Vec<_>>(),
            "files": files.collect::<Vec<_>>(),
            "hosts": {
                "elsewhere": self.hosts.elsewhere.to_string(), "targets": hosts.collect::<Vec<_>>(),
                "granted": self.granted,
            },
        })
    }

    fn names(&self) -> Names<'_> {
        Names {
            homes: &self.homes,
            base: &self.base,
            has_mounts: !matches!(self.tier, Tier::Landlock | Tier::Profile),
        }
    }
}

#[cfg(test)]
mod tests;
