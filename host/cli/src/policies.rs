//! The policies of a session: found, loaded, configured.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use portcullis_config::{AllowLists, PolicyMode, PolicySource, Resolved, is_policy_name};
use portcullis_decision::{Chain, Combine, Member, Mode};
use portcullis_policy_runtime::{CachePlace, Limits, Runtime, read_component};
use serde_json::{Map, Value};

use crate::manifest;

/// The policies that come with the program; CI proves that they are what their sources build.
const SHIPPED: [(&str, &[u8]); 5] = [
    ("workspace", include_bytes!("../../../policies/workspace/policy.wasm")),
    ("guard", include_bytes!("../../../policies/guard/policy.wasm")),
    ("git-guard", include_bytes!("../../../policies/git-guard/policy.wasm")),
    ("secrets", include_bytes!("../../../policies/secrets/policy.wasm")),
    ("bosun", include_bytes!("../../../policies/bosun/policy.wasm")),
];

/// Loads the chain: the policies named on the command line, or those of the settings.
/// Says whether one of them takes the allow lists.
pub(crate) fn load(
    resolved: &Resolved,
    named: &[PathBuf],
    cache: &Path,
) -> anyhow::Result<(Chain, AllowLists)> {
    let runtime = Runtime::new(Limits::default(), &CachePlace::Directory(cache.to_owned()))?;
    let mut loader = Loader { runtime, resolved, lists: AllowLists::Unheard };
    let mut members = Vec::new();
    if named.is_empty() {
        for policy in &resolved.policies {
            let component = component(&policy.source)?;
            let mode = match policy.mode {
                PolicyMode::Enforce => Mode::Enforce,
                PolicyMode::Observe => Mode::Observe,
            };
            let file = match &policy.source {
                PolicySource::File(path) => Some(path.as_path()),
                PolicySource::Shipped(_) => None,
            };
            members.push(loader.member(&policy.name, file, &component, &policy.config, mode)?);
        }
    } else {
        for file in named {
            let component = read_component(file)?;
            let name = unique(&members, file)?;
            members.push(loader.member(&name, Some(file), &component, &Map::new(), Mode::Enforce)?);
        }
    }
    let combine = if named.is_empty() { resolved.combine.clone() } else { Combine::Strictest };
    Ok((Chain { members, combine, stopwatch: crate::surroundings::stopwatch }, loader.lists))
}

struct Loader<'a> {
    runtime: Runtime,
    resolved: &'a Resolved,
    lists: AllowLists,
}

impl Loader<'_> {
    fn member(
        &mut self,
        name: &str,
        file: Option<&Path>,
        component: &[u8],
        config: &Map<String, Value>,
        mode: Mode,
    ) -> anyhow::Result<Member> {
        let context = || format!("loading policy `{name}`");
        let description = self.runtime.describe(component).with_context(context)?;
        let (config, lists) = configuration(self.resolved, &description.config_schema, config)?;
        if lists == AllowLists::Heard && mode == Mode::Enforce {
            self.lists = AllowLists::Heard;
        }
        let policy = self.runtime.load(name, component, &config).with_context(context)?;
        let rewrites = match file {
            Some(file) => manifest::of(component, file, &description.id)
                .with_context(context)?
                .is_some_and(|manifest| manifest.capabilities.rewrites),
            None => false,
        };
        let policy = if rewrites { policy.rewriting() } else { policy };
        Ok(Member { policy: Arc::new(policy), mode })
    }
}

fn component(source: &PolicySource) -> anyhow::Result<Vec<u8>> {
    match source {
        PolicySource::Shipped(name) => match SHIPPED.iter().find(|(shipped, _)| shipped == name) {
            Some((_, component)) => Ok(component.to_vec()),
            None => {
                let names: Vec<_> = SHIPPED.iter().map(|(name, _)| format!("`{name}`")).collect();
                bail!("there is no policy `{name}`; {} come with Portcullis", names.join(", "))
            }
        },
        PolicySource::File(path) => Ok(read_component(path)?),
    }
}

/// The configuration for a policy: what the settings give it, and of the allow lists those that its
/// schema declares.
fn configuration(
    resolved: &Resolved,
    schema: &str,
    given: &Map<String, Value>,
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
        }
    }
    let heard = if takes_all { AllowLists::Heard } else { AllowLists::Unheard };
    Ok((Value::Object(config).to_string(), heard))
}

/// The file's name without its ending; numbered where two files have the same.
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
