//! Resolves settings into rules over canonical paths.

use std::path::{Path, PathBuf};

use portcullis_decision::GrantScope;
use portcullis_decision::pattern::NetworkPattern;
use portcullis_decision::profile::{FileRights, Limits};
use portcullis_settings_format::{ConfigError, Layer, Network, Settings, Sites, Tightening};

use self::connections::{budgets, connection_rules, for_policies, sockets, unlisted_hosts};
use self::policies::{decisive_files, policies};
use self::warnings::{warnings, without_useless};
use crate::deny_rules::{deny, keep_links};
use crate::disk::{Disk, Remembering};
use crate::found::{FoundSettings, Source};
use crate::git_directory::git_directory;
use crate::narrow;
use crate::pattern::PathContext;
use crate::places::Places;
use crate::protect::HostRuleContext;
use crate::resolved::Resolved;
use crate::rule::Rule;
use crate::writable::Writable;
use crate::{path_rules, report, shared_tmp};

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
        ssh: settings.credentials.ssh.clone(),
        signing: settings.credentials.signing.clone(),
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

mod connections;
mod policies;
mod warnings;
