//! Resolves settings into rules over canonical paths.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use portcullis_decision::GrantScope;
use portcullis_decision::pattern::{FilePattern, HostPattern, NetworkPattern};
use portcullis_decision::profile::{BudgetRule, FileRights, Limits};
use portcullis_decision::verdict::Effect;
use portcullis_settings_format::error::shown;
use portcullis_settings_format::{
    ConfigError, Entry, Layer, Layout, Network, Origin, PathEntry, PolicySource, Position, Settings, Sites,
    Tightening, UnlistedHosts, Warning,
};

use crate::deny_rules::{deny, keep_links};
use crate::disk::{Disk, Remembering};
use crate::found::{FoundSettings, Source};
use crate::git_directory::git_directory;
use crate::narrow::{self, Narrowed};
use crate::old_settings::OldFile;
use crate::pattern::{PathContext, pattern_error};
use crate::places::{Places, canonical};
use crate::protect::HostRuleContext;
use crate::resolved::{PolicyAt, Resolved, ResolvedPolicy};
use crate::rule::{ConnectionRule, Rule, every_port};
use crate::writable::Writable;
use crate::{imports, path_rules, policy_config, report, shared_tmp};

/// Returns what happens to unlisted hosts. A layer that only tightens may narrow the hosts: then all others are a
/// question, or refused.
fn unlisted_hosts(found: &FoundSettings) -> UnlistedHosts {
    let network = &found.settings.network;
    let is_narrowed =
        found.layers.iter().any(|layer| layer.network.strict_allowlist || layer.narrowing.domains.is_some());
    if is_narrowed || network.strict_allowlist { UnlistedHosts::Ask } else { network.unlisted_hosts }
}

/// The usual size of a private home, in MiB.
const HOME_MIB: u64 = 10 << 10;

/// Resolves settings against the paths of the environment.
///
/// ```
/// use portcullis_settings::{Places, RealDisk, discover, resolve};
/// let dir = tempfile::tempdir().unwrap();
/// let places = Places::usual(&dir.path().join("project"), &dir.path().join("home"));
/// let found = discover(&places, &RealDisk).unwrap();
/// let resolved = resolve(&found, &places, &RealDisk).unwrap();
/// assert!(resolved.deny_read().any(|rule| rule.id == "host.agent-secrets"));
/// ```
///
/// # Errors
/// When an entry cannot be made into a pattern, or the links of a path cannot be resolved.
pub fn resolve(found: &FoundSettings, places: &Places, disk: &dyn Disk) -> Result<Resolved, ConfigError> {
    let disk: &dyn Disk = &Remembering::new(disk);
    let workspace = places.canonical_workspace(disk)?;
    let homes = places.canonical_homes(disk)?;
    let home = homes.first().cloned().unwrap_or_else(|| PathBuf::from("/"));
    crate::glob_limit::globs_are_few(found)?;
    let (mut shared, mut places) = (found.clone(), places.clone());
    let tmp_warning = shared_tmp::apply(&mut shared.settings, &mut places, &workspace, &homes);
    let (found, places) = (&shared, &places);
    let writable = writable(&found.settings, &workspace, (&home, &places.temp), disk)?;
    let temp = &places.temp;
    let around = PathContext { workspace: &workspace, home: &home, temp, writable: &writable, disk };
    let (found, useless) = without_useless(found, &around);
    let (found, settings) = (&found, &found.settings);
    let narrowed = narrow::narrowed(found, &around)?;
    let domains = for_policies(&narrowed.domains);
    let (policies, policies_at) = policies(found, &narrowed, &domains, &around)?.into_iter().unzip();
    let git_directory = git_directory(&workspace, disk);

    let ground = HostRuleContext {
        places,
        workspace: &workspace,
        homes: &homes,
        writable: &writable,
        disk,
        git_directory: git_directory.as_deref(),
    };
    let mut rules = ground.rules(&decisive_files(found, places, &around)?)?;
    rules.retain(|rule| !settings.lifted.contains(&rule.id));
    let mut files = path_rules::files(settings, &around, &homes)?;
    if !narrowed.gone.is_empty() {
        narrowed.apply(&mut files, &around)?;
    }
    rules.extend(files.rules);
    let allowed = &narrowed.domains;
    let shares_tmp = shared_tmp::is_shared(settings, places);
    if shares_tmp {
        let listed = settings.filesystem.allow_read.iter().chain(&settings.filesystem.allow_write);
        let listed: Vec<PathBuf> =
            listed.map(|entry| Ok(around.resolve(entry)?.base)).collect::<Result<_, ConfigError>>()?;
        let own = [&workspace, &places.agent_directory, &places.state_directory];
        let opened: Vec<&Path> = listed.iter().chain(own).chain(&homes).map(PathBuf::as_path).collect();
        rules.extend(shared_tmp::rules(&opened, settings.filesystem.shared_tmp.as_ref(), disk)?);
    }
    let mut connections = connection_rules(&settings.network, allowed, Layer::User);
    let tiers = found.layers.iter().filter_map(|layer| layer.required_tier);
    let required_tier = tiers.chain([settings.required_tier]).max().unwrap_or_default();
    let mut tightened_limits = Limits::default();
    let mut dropped = Vec::new();
    let mut environment = settings.environment.clone();
    environment.drop.extend(settings.credentials.variables.iter().cloned());
    for tightening in &found.layers {
        rules.extend(tightening_rules(tightening, &around)?);
        connections.extend(connection_rules(&tightening.network, allowed, tightening.layer));
        tightened_limits = tightened_limits.strictest(tightening.limits);
        dropped.extend(tightening.drop.iter().cloned());
    }
    let network = &settings.network;
    let denied = |network: &Network| network.denied_domains.iter().map(|entry| entry.value.clone()).collect();
    let mut denied_domains: Vec<NetworkPattern> = denied(network);
    denied_domains.extend(found.layers.iter().flat_map(|layer| denied(&layer.network)));
    let mut lists_at = Sites::default();
    if let Some(origin) = report::first_that_is(found, "network.strictAllowlist", &true.into()) {
        lists_at.add("/strictAllowlist", origin);
    }
    let mut resolved = Resolved {
        enabled: settings.enabled,
        workspace: workspace.clone(),
        git_directory,
        temp: places.temp.clone(),
        shares_tmp,
        closed: files.closed,
        rules,
        connections,
        allow_read: narrow::listed("/allowRead", files.allow_read, &mut lists_at),
        allow_write: narrow::listed("/allowWrite", files.allow_write, &mut lists_at),
        allowed_domains: narrow::listed("/allowedDomains", domains, &mut lists_at),
        denied_domains,
        strict_allowlist: network.strict_allowlist
            || found.layers.iter().any(|layer| layer.network.strict_allowlist),
        sockets: sockets(&narrowed.sockets, &around)?,
        unlisted_hosts: unlisted_hosts(found),
        connecting: network.connecting,
        parent_proxy: network.parent_proxy.clone(),
        brokered: settings.credentials.brokered.clone(),
        requests: network.requests.clone(),
        pushes: network.pushes.clone(),
        budgets: budgets(found),
        policies,
        policies_at,
        lists_at,
        combine: settings.combine.clone(),
        ask: settings.ask,
        escalation: settings.escalation,
        unattended_refusals: settings.unattended_refusals,
        home_mib: settings.home_mib.unwrap_or(HOME_MIB),
        undo: settings.undo,
        required_tier,
        limits: settings.limits,
        tightened_limits,
        environment,
        dropped,
        lifted: settings.lifted.clone(),
        homes,
        grants: crate::stored_grants::resolve(&settings.grants, |file| scope(found, file), &around)?,
        ignored: settings.ignored.clone(),
        kept: settings.kept.clone(),
        warnings: Vec::new(),
        definition: found.definition.clone(),
        unread: found.old.clone(),
        narrowed: narrowed.gone,
    };
    resolved.warnings = warnings(found, &resolved, places, &around)?;
    resolved.warnings.extend(network.warnings.iter().chain(&settings.credentials.warnings).cloned());
    resolved.warnings.extend(narrowed.warnings);
    resolved.warnings.extend(useless);
    resolved.warnings.extend(found.warnings.iter().cloned());
    resolved.warnings.extend(tmp_warning);
    Ok(resolved)
}

/// Returns the settings without the entries that have no effect on the current disk, and a warning for each of these.
fn without_useless(found: &FoundSettings, around: &PathContext<'_>) -> (FoundSettings, Vec<Warning>) {
    let (mut found, mut warnings) = (found.clone(), Vec::new());
    let filesystem = &mut found.settings.filesystem;
    let narrowing = found.layers.iter_mut().map(|layer| &mut layer.narrowing);
    let narrowing = narrowing.flat_map(|lists| [&mut lists.read, &mut lists.write]).flatten();
    for list in [&mut filesystem.allow_read, &mut filesystem.allow_write].into_iter().chain(narrowing) {
        list.retain(|entry| {
            let why = around.opens_nothing(entry);
            warnings.extend(why.map(|why| Warning {
                text: format!("`{}` opens nothing: {why}; see what its links lead to", shown(&entry.text)),
                origin: entry.origin.clone(),
            }));
            why.is_none()
        });
    }
    for entry in &found.settings.filesystem.allow_write {
        let why = around.gives_no_device(entry);
        warnings.extend(why.map(|why| Warning {
            text: format!("`{}` opens nothing: {why}", shown(&entry.text)),
            origin: entry.origin.clone(),
        }));
    }
    (found, warnings)
}

fn writable(
    settings: &Settings,
    workspace: &Path,
    (home, temp): (&Path, &Path),
    disk: &dyn Disk,
) -> Result<Writable, ConfigError> {
    let alone = Writable::new(workspace, std::iter::empty());
    let around = PathContext { workspace, home, temp, writable: &alone, disk };
    let entries = settings.filesystem.allow_write.iter().map(|entry| around.resolve(entry));
    let entries =
        entries.chain(crate::stored_grants::written(&settings.grants).map(|entry| around.resolve(entry)));
    let trees: Vec<PathBuf> = entries.map(|entry| Ok(entry?.base)).collect::<Result<_, ConfigError>>()?;
    Ok(Writable::new(workspace, trees.into_iter()))
}

/// Returns the scope of the grants in a settings file.
fn scope(found: &FoundSettings, file: &Path) -> GrantScope {
    let is_projects = matches!(&found.source, Source::Project { file: entries, .. } if entries == file);
    if is_projects { GrantScope::Project } else { GrantScope::User }
}

/// Returns the rules of a layer that can only tighten.
///
/// All its entries are explicit denies: a closed region would give way to paths that the user allows.
fn tightening_rules(layer: &Tightening, around: &PathContext<'_>) -> Result<Vec<Rule>, ConfigError> {
    let lists = [
        ("filesystem.denyRead", &layer.deny_read, FileRights::ALL),
        ("filesystem.denyWrite", &layer.deny_write, FileRights::WRITE),
    ];
    let mut rules = Vec::new();
    for (field, entries, rights) in lists {
        for (index, entry) in entries.iter().enumerate() {
            let id = format!("{field}[{index}]");
            rules.extend(deny(layer.layer, &id, entry, rights, around)?);
            rules.extend(keep_links(layer.layer, &id, entry, around)?);
        }
    }
    Ok(rules)
}

/// Returns the connection rules of one layer.
///
/// `allowed` holds the user's hosts, the only ones that `strictAllowlist` permits in any layer.
fn connection_rules(
    network: &Network,
    allowed: &[Entry<NetworkPattern>],
    layer: Layer,
) -> Vec<ConnectionRule> {
    let rule =
        |id: String, target: NetworkPattern, effect: Effect, reason: String, origin: Option<Origin>| {
            ConnectionRule { layer, id, target, effect, reason, origin }
        };
    let mut rules = Vec::new();
    if network.strict_allowlist {
        let reason = "only the allowed hosts may be reached".to_owned();
        rules.push(rule(
            "network.strictAllowlist".to_owned(),
            every_port(HostPattern::Any),
            Effect::Deny,
            reason,
            None,
        ));
        for (index, entry) in allowed.iter().enumerate() {
            let (id, reason) =
                (format!("network.allowedDomains[{index}]"), "it is an allowed host".to_owned());
            rules.push(rule(id, entry.value.clone(), Effect::Allow, reason, Some(entry.origin.clone())));
        }
    }
    for (index, entry) in network.denied_domains.iter().enumerate() {
        let reason = match network.denied_domain_reasons.get(&entry.text) {
            Some(reason) => shown(reason),
            None => format!("`{}` is denied in the settings", shown(&entry.text)),
        };
        let id = format!("network.deniedDomains[{index}]");
        rules.push(rule(id, entry.value.clone(), Effect::Deny, reason, Some(entry.origin.clone())));
    }
    if let Some(entry) = &network.closed {
        let (id, target) = (format!("network.{}", entry.text), every_port(HostPattern::Any));
        rules.push(rule(id, target, Effect::Deny, entry.value.clone(), Some(entry.origin.clone())));
    }
    for (index, entry) in network.denied_resolved_addresses.iter().enumerate() {
        let id = format!("network.deniedResolvedAddresses[{index}]");
        let reason = format!("the addresses `{}` are denied in the settings", shown(&entry.text));
        let target = every_port(entry.value.clone());
        rules.push(rule(id, target, Effect::Deny, reason, Some(entry.origin.clone())));
    }
    rules
}

/// Returns the allowed hosts as policies compare them: `localhost` is replaced by its addresses.
///
/// The IPv6 address comes after all other entries, so that each entry keeps its index.
fn for_policies(allowed: &[Entry<NetworkPattern>]) -> Vec<(NetworkPattern, Origin)> {
    let loopback = |pattern: &NetworkPattern, address: IpAddr| NetworkPattern {
        host: HostPattern::Block(address.into()),
        ports: pattern.ports.clone(),
    };
    let is_local = |pattern: &NetworkPattern| {
        matches!(pattern.host, HostPattern::Name(_)) && pattern.host.is_of_addresses()
    };
    let patterns = allowed.iter().map(|entry| (&entry.value, entry.origin.clone()));
    let first = patterns.clone().map(|(pattern, origin)| {
        let is_local = is_local(pattern);
        (if is_local { loopback(pattern, Ipv4Addr::LOCALHOST.into()) } else { pattern.clone() }, origin)
    });
    let more = patterns.filter(|(pattern, _)| is_local(pattern));
    let more = more.map(|(pattern, origin)| (loopback(pattern, Ipv6Addr::LOCALHOST.into()), origin));
    first.chain(more).collect()
}

/// Returns the paths of sockets.
///
/// Globs are refused: a glob would also open sockets that are created later, which the user has not seen.
fn sockets(entries: &[Entry<PathEntry>], around: &PathContext<'_>) -> Result<Vec<PathBuf>, ConfigError> {
    let one = |entry: &Entry<PathEntry>| {
        let resolved = around.resolve_to_open(entry)?;
        match resolved.glob {
            None => Ok(resolved.base),
            Some(_) => {
                Err(pattern_error(&entry.origin, "a socket is named by its path, without `*` and `?`"))
            }
        }
    };
    entries.iter().map(one).collect()
}

/// Returns the budgets of the layers.
fn budgets(found: &FoundSettings) -> Vec<(Layer, BudgetRule)> {
    let layers = found.layers.iter().map(|layer| (layer.layer, &layer.network));
    let all = std::iter::once((Layer::User, &found.settings.network)).chain(layers);
    all.filter_map(|(layer, network)| {
        let entry = network.upload_budget_mib.as_ref()?;
        let rule = BudgetRule {
            id: "network.uploadBudgetMib".to_owned(),
            target: every_port(HostPattern::Any),
            kib: entry.value.saturating_mul(1024),
            effect: Effect::Ask,
            reason: format!("more than {} MiB were sent there in this session", entry.value),
            setting: entry.origin.to_string(),
        };
        Some((layer, rule))
    })
    .chain(found.preset_budgets.iter().map(|rule| (Layer::User, rule.clone())))
    .collect()
}

/// Resolves the policy chain.
///
/// Files are relative to the settings file, which the agent cannot write, and never to the project.
fn policies(
    found: &FoundSettings,
    narrowed: &Narrowed,
    allowed: &[(NetworkPattern, Origin)],
    around: &PathContext<'_>,
) -> Result<Vec<(ResolvedPolicy, PolicyAt)>, ConfigError> {
    let place =
        |path: &Path, what: &'static str| canonical(&named_file(path, what, found, around)?, around.disk);
    let resolve = |policy: &portcullis_settings_format::PolicyEntry| {
        let source = match &policy.source {
            PolicySource::Shipped(name) => PolicySource::Shipped(name.clone()),
            PolicySource::Pack(id) => PolicySource::Pack(id.clone()),
            PolicySource::File(path) => PolicySource::File(place(path, POLICY)?),
        };
        let is_shipped = |wanted| matches!(&source, PolicySource::Shipped(name) if name == wanted);
        let config_file = policy.config_file.as_deref().map(|path| place(path, CONFIGURATION));
        let config_file = config_file.transpose()?;
        let mut config = match &config_file {
            None => policy.config.clone(),
            Some(file) => {
                let config = policy_config::read(file, around.disk)?;
                if is_shipped("bosun") { policy_config::lists_of_bosun(config) } else { config }
            }
        };
        let mut at = PolicyAt { origin: policy.origin.clone(), sites: policy.sites.clone() };
        if is_shipped("guard") && matches!(found.source, Source::Layered { .. }) {
            // The policy `guard` decides by the lists of the settings, unless its configuration has lists of its own.
            let (lists, sites) = narrow::guard_lists(found, narrowed, allowed, around)?;
            for (key, list) in lists {
                if !config.contains_key(&key) {
                    at.sites.add_from(&sites, &key);
                    config.insert(key, list);
                }
            }
        }
        let name = policy.name.clone();
        Ok((ResolvedPolicy { name, source, config, config_file, mode: policy.mode }, at))
    };
    found.settings.policies.iter().map(resolve).collect()
}

/// Returns the path of a policy's file, as the settings name it.
fn named_file(
    path: &Path,
    what: &'static str,
    found: &FoundSettings,
    around: &PathContext<'_>,
) -> Result<PathBuf, ConfigError> {
    let directory = found.source.file().and_then(Path::parent).unwrap_or_else(|| Path::new("/"));
    let path = match path.strip_prefix("~") {
        Ok(rest) => around.home.join(rest),
        Err(_) => directory.join(path),
    };
    crate::places::absolute(&path, what)?;
    Ok(path)
}

const POLICY: &str = "the path of a policy";

const CONFIGURATION: &str = "the path of a configuration";

/// Returns the files that decide about the agent in this session.
fn decisive_files(
    found: &FoundSettings,
    places: &Places,
    around: &PathContext<'_>,
) -> Result<Vec<PathBuf>, ConfigError> {
    let sandbox = places.sandbox_directory();
    // Add each file separately: one of them may be a link out of the protected directories, into the project.
    let mut files: Vec<PathBuf> = DECISIVE.iter().map(|name| sandbox.join(name)).collect();
    files.push(sandbox);
    files.extend(found.watched.iter().cloned());
    for file in &found.watched {
        // The temporary file that is renamed to this one.
        files.extend(crate::temporary_name::new_name(&canonical(file, around.disk)?));
    }
    for policy in &found.settings.policies {
        // Packs lie in the directory of the settings, which is protected.
        if let Some(path) = &policy.config_file {
            files.push(named_file(path, CONFIGURATION, found, around)?);
        }
        let PolicySource::File(path) = &policy.source else { continue };
        // Add the unresolved name too: it is resolved again whenever the policies are reloaded.
        let file = named_file(path, POLICY, found, around)?;
        let manifests = [&canonical(&file, around.disk)?, &file].map(|file| file.with_file_name(MANIFEST));
        files.extend(manifests);
        files.push(file);
    }
    Ok(files)
}

/// Other names in the directory of the settings: the lock file of packs, the packs, and the trusted publishers.
const DECISIVE: [&str; 3] = ["packs", "policy.lock", "trust.toml"];

/// Name of the manifest beside a policy, which grants it capabilities beyond verdicts.
const MANIFEST: &str = "policy.toml";

fn warnings(
    found: &FoundSettings,
    resolved: &Resolved,
    places: &Places,
    around: &PathContext<'_>,
) -> Result<Vec<Warning>, ConfigError> {
    let filesystem = &found.settings.filesystem;
    let mut warnings = Vec::new();
    let projects = places.projects_file();
    if found.files.layout == Layout::Layered && around.disk.look(&projects).is_ok() {
        let text = "it does not hold: `default.json` chooses the layered layout".to_owned();
        let at = Position { line: 1, column: 1 };
        warnings.push(Warning { text, origin: Origin { file: projects, pointer: String::new(), at } });
    }
    warnings.extend(found.old.iter().map(OldFile::warning));
    warnings.extend(imports::changed(places, around.disk));
    for entry in filesystem.deny_read.iter().chain(&filesystem.deny_write) {
        let written = &entry.value;
        if !written.literal && !written.text.contains('/') && written.text.contains(['*', '?']) {
            let name = shown(&entry.text);
            let text =
                format!("`{name}` holds in the working directory only, write `**/{name}` for every depth");
            warnings.push(Warning { text, origin: entry.origin.clone() });
        }
    }
    let lists = [&filesystem.allow_read, &filesystem.allow_write, &found.settings.network.unix_sockets];
    for entry in lists.into_iter().flatten().chain(crate::stored_grants::paths(&found.settings.grants)) {
        if let Some(strayed) = around.resolve_to_open(entry)?.strayed {
            let text = format!(
                "`{}` opens nothing: `{}` is a link that commands can have made, and leads to `{}`; remove the link, \
                 or name what is to be opened",
                shown(&entry.text),
                shown(&strayed.link.to_string_lossy()),
                shown(&strayed.target.to_string_lossy())
            );
            warnings.push(Warning { text, origin: entry.origin.clone() });
        }
    }
    // A default that the user denies is no mistake.
    for entry in filesystem.allow_write.iter().filter(|entry| !entry.origin.is_built_in()) {
        let path = around.resolve_to_open(entry)?.base;
        let covers =
            |rule: &&Rule| matches!(&rule.pattern, FilePattern::Tree(tree) if path.starts_with(tree));
        if let Some(rule) = resolved.deny_write().find(covers) {
            let text = format!("`{}` stays denied by the rule `{}`", shown(&entry.text), rule.id);
            warnings.push(Warning { text, origin: entry.origin.clone() });
        }
    }
    Ok(warnings)
}
