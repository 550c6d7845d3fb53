//! The policies of a session: finding, loading and configuring them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use portcullis_decision::{Chain, Combine, Member, Mode};
use portcullis_packs::digest;
use portcullis_policy_runtime::{CachePlace, Compiler, Limits, Runtime, SnapshotJob};
use portcullis_settings::{AllowLists, PolicyAt, Resolved, ResolvedPolicy};
use portcullis_settings_format::{PolicyMode, Sites, is_policy_name};
use serde_json::{Map, Value};

use crate::manifest;
use crate::policy_source::{self, Component, Origin, PolicySources};
use crate::setting_provenance::WithProvenance;
use crate::{process_env, shipped};

/// The policies of a session.
#[derive(Debug)]
pub struct Loaded {
    /// The policies in order.
    pub chain: Chain,
    /// Whether one of them uses the allow lists.
    pub lists: AllowLists,
    snapshots: Vec<SnapshotJob>,
}

impl Loaded {
    /// Takes snapshots of policies without one, some time after the session has started.
    ///
    /// The delay keeps short sessions from spending processor time on them.
    pub fn take_snapshots_later(&mut self) {
        let jobs = std::mem::take(&mut self.snapshots);
        if jobs.is_empty() {
            return;
        }
        let work = move || {
            std::thread::sleep(UNTIL_SNAPSHOT);
            // A policy without a snapshot still works.
            jobs.iter().for_each(|job| drop(job.run()));
        };
        // Without a thread, decisions take a little longer.
        drop(std::thread::Builder::new().name("snapshots".to_owned()).spawn(work));
    }
}

/// Time from the start of a session until snapshots are taken.
const UNTIL_SNAPSHOT: Duration = Duration::from_secs(5);

/// Loads the chain: the policies named on the command line, or those of the settings.
pub fn load(
    resolved: &Resolved,
    named: &[PathBuf],
    cache: &Path,
    agent_directory: &Path,
) -> anyhow::Result<Loaded> {
    let policy_source = PolicySources::open(agent_directory)?;
    let mut loader = Loader::new(resolved, cache)?;
    let mut members = Vec::new();
    if named.is_empty() {
        for (policy, at) in resolved.policies.iter().zip(&resolved.policies_at) {
            let component = policy_source.component(&policy.source).with_context(|| loading(&policy.name))?;
            members.push(loader.configured(policy, at, &component)?);
        }
    } else {
        for file in named {
            // A file named on the command line is trusted.
            let (component, config) = match policy_source::text(file)? {
                Some(text) => text,
                None => (policy_source.file(file)?, Map::new()),
            };
            let name = unique(&members, file)?;
            members.push(loader.member(&name, &component, (&config, &Sites::default()), Mode::Enforce)?);
        }
    }
    loader.team(agent_directory, &mut members)?;
    let combine = if named.is_empty() { resolved.combine.clone() } else { Combine::Strictest };
    let chain = Chain { members, combine, stopwatch: process_env::stopwatch };
    Ok(Loaded { chain, lists: loader.lists, snapshots: loader.snapshots })
}

/// A policy of the settings, for display.
#[derive(Debug, serde::Serialize)]
pub struct Shown {
    /// Its name.
    pub name: String,
    /// `sha256:...` of the component.
    pub digest: String,
    /// How its verdicts count: `enforce`, `tighten` or `observe`.
    pub mode: Mode,
    /// Its source and trust.
    pub origin: String,
    /// Why a session would refuse it, and with it the whole chain.
    pub problem: Option<String>,
}

/// Loads each policy of the settings as a session does, and returns the results.
pub fn shown(resolved: &Resolved, cache: &Path, agent_directory: &Path) -> anyhow::Result<Vec<Shown>> {
    let policy_source = PolicySources::open(agent_directory)?;
    let mut loader = Loader::new(resolved, cache)?;
    let mut of = |(policy, at): (&ResolvedPolicy, &PolicyAt)| {
        let (mode, name) = (mode_of(policy.mode), policy.name.clone());
        let found = policy_source.component(&policy.source).with_context(|| loading(&name));
        match found {
            Ok(component) => Shown {
                name,
                digest: format!("sha256:{}", digest(&component.bytes)),
                mode: component.origin.at_most(mode),
                origin: component.origin.words(),
                problem: loader.configured(policy, at, &component).err().map(|error| format!("{error:#}")),
            },
            Err(error) => Shown {
                name,
                digest: String::new(),
                mode,
                origin: String::new(),
                problem: Some(format!("{error:#}")),
            },
        }
    };
    let mut all: Vec<Shown> = resolved.policies.iter().zip(&resolved.policies_at).map(&mut of).collect();
    for pack in policy_source::team_packs(agent_directory)? {
        let origin = Origin::Team(pack.team.clone()).words();
        let mut chain = Vec::new();
        let loaded = pack.open().and_then(|(name, component)| {
            let member = loader.member(&name, &component, (&pack.config, &Sites::default()), pack.mode)?;
            chain.push(member);
            Ok(())
        });
        all.push(Shown {
            name: pack.name.clone(),
            digest: pack.digest.clone(),
            mode: pack.mode,
            origin,
            problem: loaded.err().map(|error| format!("{error:#}")),
        });
    }
    Ok(all)
}

fn loading(name: &str) -> String {
    format!("loading policy `{name}`")
}

fn mode_of(mode: PolicyMode) -> Mode {
    match mode {
        PolicyMode::Enforce => Mode::Enforce,
        PolicyMode::Tighten => Mode::Tighten,
        PolicyMode::Observe => Mode::Observe,
    }
}

/// Creates the runtime for policies. Components are compiled in a separate process.
pub fn runtime(cache: &CachePlace) -> anyhow::Result<Runtime> {
    let program = std::env::current_exe().context("finding this program's own file")?;
    let runtime = Runtime::new(Limits::default(), cache, Compiler::of_program(&program))?;
    Ok(runtime.with_embedded(shipped::machine_code()))
}

struct Loader<'a> {
    runtime: Runtime,
    resolved: &'a Resolved,
    lists: AllowLists,
    snapshots: Vec<SnapshotJob>,
}

impl<'a> Loader<'a> {
    fn new(resolved: &'a Resolved, cache: &Path) -> anyhow::Result<Self> {
        let runtime = runtime(&CachePlace::Directory(cache.to_owned()))?;
        Ok(Self { runtime, resolved, lists: AllowLists::Unheard, snapshots: Vec::new() })
    }

    /// Loads a policy of the settings.
    fn configured(
        &mut self,
        policy: &ResolvedPolicy,
        at: &PolicyAt,
        component: &Component,
    ) -> anyhow::Result<Member> {
        let mode = component.origin.at_most(mode_of(policy.mode));
        self.member(&policy.name, component, (&policy.config, &at.sites), mode)
    }

    /// Adds the packs of the team's bundle, which can only tighten, whichever policies were chosen.
    fn team(&mut self, agent_directory: &Path, members: &mut Vec<Member>) -> anyhow::Result<()> {
        for pack in policy_source::team_packs(agent_directory)? {
            let (name, component) = pack.open()?;
            anyhow::ensure!(
                !members.iter().any(|member| member.policy.name() == name),
                "a policy of yours is called `{name}` like a pack of the team; give yours another `name`"
            );
            members.push(self.member(&name, &component, (&pack.config, &Sites::default()), pack.mode)?);
        }
        Ok(())
    }

    /// Instantiates a policy with its configuration; `sites` holds the origins of the values.
    fn member(
        &mut self,
        name: &str,
        component: &Component,
        (config, sites): (&Map<String, Value>, &Sites),
        mode: Mode,
    ) -> anyhow::Result<Member> {
        let context = || loading(name);
        let Component { bytes, origin } = component;
        let unloaded = self.runtime.take(bytes).with_context(context)?;
        let description = unloaded.describe().with_context(context)?;
        let mut sites = sites.clone();
        let (config, lists) = configuration(self.resolved, &description.config_schema, config, &mut sites)?;
        if lists == AllowLists::Heard && mode == Mode::Enforce {
            self.lists = AllowLists::Heard;
        }
        let policy = unloaded.load(name, &config).with_context(context)?;
        self.snapshots.extend(policy.snapshot_job());
        let rewrites = match origin {
            Origin::Shipped => false,
            Origin::File(file, _) => {
                let manifest = manifest::find(bytes, file, &description.id).with_context(context)?;
                let says = || manifest.is_some_and(|manifest| manifest.capabilities.rewrites);
                // Since contract 0.2 the policy itself says it.
                description.capabilities.map_or_else(says, |needs| needs.rewrites)
            }
            Origin::Pack(locked) => locked.capabilities.contains("rewrites"),
            Origin::Team(_) => false,
        };
        let policy = if rewrites { policy.rewriting() } else { policy };
        // A pack has only the capabilities that the user agreed to when adding it. Most components export all
        // functions, because SDKs do.
        let is_blind = matches!(origin, Origin::Pack(locked) if !locked.capabilities.contains("output"));
        let policy = if is_blind { policy.without_output() } else { policy };
        let ignores_vcs = matches!(origin, Origin::Shipped) && !shipped::uses_vcs(&description.id);
        let policy = if ignores_vcs { policy.without_vcs() } else { policy };
        Ok(Member { policy: Arc::new(WithProvenance { policy, sites }), mode })
    }
}

/// Returns the configuration of a policy: the values from the settings, and those allow lists that its schema declares.
///
/// Their origins are added to `sites`.
fn configuration(
    resolved: &Resolved,
    schema: &str,
    given: &Map<String, Value>,
    sites: &mut Sites,
) -> anyhow::Result<(String, AllowLists)> {
    let schema: Value = match schema {
        "" => Value::Null,
        text => serde_json::from_str(text).context("reading the policy's own schema of its configuration")?,
    };
    let declares = |key: &str| schema.pointer(&format!("/properties/{key}")).is_some();
    let domains: Vec<String> = resolved.allowed_domains.iter().map(ToString::to_string).collect();
    let lists = [
        ("allowRead", serde_json::to_value(&resolved.allow_read)?),
        ("allowWrite", serde_json::to_value(&resolved.allow_write)?),
        ("allowedDomains", serde_json::to_value(domains)?),
        ("strictAllowlist", Value::Bool(resolved.strict_allowlist)),
    ];
    let mut config = given.clone();
    let takes = |key: &str| declares(key) && !given.contains_key(key);
    let takes_all = ["allowRead", "allowWrite", "allowedDomains"].into_iter().all(takes);
    for (key, value) in lists {
        if takes(key) {
            config.insert(key.to_owned(), value);
            sites.add_from(&resolved.lists_at, key);
        }
    }
    let heard = if takes_all { AllowLists::Heard } else { AllowLists::Unheard };
    Ok((Value::Object(config).to_string(), heard))
}

/// Returns the file's name without extension, numbered if another policy has the same.
fn unique(members: &[Member], file: &Path) -> anyhow::Result<String> {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).filter(|stem| is_policy_name(stem)).with_context(
        || {
            format!(
                "`{}` cannot be the name of a policy: letters, digits, `-` and `_` only, and none of the host's own \
                 (`base`, `settings`, ...); rename the file",
                file.display()
            )
        },
    )?;
    let taken = |name: &str| members.iter().any(|member| member.policy.name() == name);
    if !taken(stem) {
        return Ok(stem.to_owned());
    }
    let numbered = (2_u32..).map(|number| format!("{stem}-{number}")).find(|name| !taken(name));
    numbered.context("there are too many policies of this name")
}
