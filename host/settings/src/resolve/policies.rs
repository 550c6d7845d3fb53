//! Resolves the policy chain, and the files that decide about the agent.

use std::path::{Path, PathBuf};

use portcullis_decision::pattern::NetworkPattern;
use portcullis_settings_format::{ConfigError, Origin, PolicySource};

use crate::found::{FoundSettings, Source};
use crate::narrow::{self, Narrowed};
use crate::pattern::PathContext;
use crate::places::{Places, canonical};
use crate::resolved::{PolicyAt, ResolvedPolicy};
use crate::{policy_config, policy_text};

/// Resolves the policy chain.
///
/// Files are relative to the settings file, which the agent cannot write, and never to the project.
pub(super) fn policies(
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
            None => match policy_text::named(&policy.config) {
                None => policy.config.clone(),
                Some(file) => {
                    policy_text::with_text(policy.config.clone(), &place(file, TEXT)?, around.disk)?
                }
            },
            Some(file) => {
                let config = policy_config::read(file, around.disk)?;
                policy_text::refuse_in(&config, file)?;
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

const TEXT: &str = "the path of a policy's text";

/// Returns the files that decide about the agent in this session.
pub(super) fn decisive_files(
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
        if let Some(path) = policy_text::named(&policy.config) {
            files.push(named_file(path, TEXT, found, around)?);
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
