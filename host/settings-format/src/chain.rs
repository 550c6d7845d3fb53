//! Decodes the policy chain and the rule that combines its verdicts.

use std::path::{Path, PathBuf};

use portcullis_decision::combine::Combine;

use crate::document_value::DocumentValue;
use crate::error::shown;
use crate::fault::Fault;
use crate::json::Node;
use crate::settings::{PolicyEntry, PolicyMode, PolicySource};
use crate::source_map::Sites;

pub(crate) fn policies(place: &DocumentValue<'_>) -> Result<Vec<PolicyEntry>, Fault> {
    let workspace = PolicyEntry {
        name: "workspace".to_owned(),
        source: PolicySource::Shipped("workspace".to_owned()),
        config: serde_json::Map::new(),
        config_file: None,
        mode: PolicyMode::Enforce,
        origin: None,
        sites: Sites::default(),
    };
    if place.node.is_none() {
        return Ok(vec![workspace]);
    }
    let mut chain: Vec<PolicyEntry> = Vec::new();
    for item in place.items() {
        let entry = policy(&item)?;
        if chain.iter().any(|earlier| earlier.name == entry.name) {
            let reason = format!("a policy called `{}` is there already, give this one a `name`", entry.name);
            return Err(item.fault(reason));
        }
        chain.push(entry);
    }
    if chain.is_empty() {
        return Err(place.fault("an empty chain decides nothing, leave the key out for the default policy"));
    }
    Ok(chain)
}

fn policy(item: &DocumentValue<'_>) -> Result<PolicyEntry, Fault> {
    let used = item.child("use");
    let text = used.text().ok_or_else(|| used.fault("no policy"))?;
    let source = policy_source(text).map_err(|reason| used.fault(reason))?;
    let name = match item.child("name").text() {
        Some(name) => name.to_owned(),
        None => default_name(&source),
    };
    if !is_policy_name(&name) {
        let reason = "a policy's name has letters, digits, `-` and `_` only and is none of the host's own (`base`, `settings`, ...), give it one with `name`";
        return Err(item.fault(reason));
    }
    let config = match item.child("config").node.map(Node::to_json) {
        Some(serde_json::Value::Object(config)) => config,
        _ => serde_json::Map::new(),
    };
    let config_file = config_file(item)?;
    let mode = match item.child("mode").text() {
        Some("observe") => PolicyMode::Observe,
        Some("tighten") => PolicyMode::Tighten,
        _ => PolicyMode::Enforce,
    };
    let sites = match &config_file {
        Some(_) => Sites::of_file(item.child("configFile").origin()),
        None => Sites::collect(&item.child("config")),
    };
    Ok(PolicyEntry { name, source, config, config_file, mode, origin: Some(used.origin()), sites })
}

fn config_file(item: &DocumentValue<'_>) -> Result<Option<PathBuf>, Fault> {
    let place = item.child("configFile");
    let Some(text) = place.text() else { return Ok(None) };
    crate::check::usable_path(text).map_err(|reason| place.fault(reason))?;
    if crate::policy_config_form::PolicyConfigForm::from_extension(Path::new(text)).is_none() {
        return Err(place.fault("the file of a policy's configuration ends in `.toml` or `.json`"));
    }
    if item.child("config").node.is_some() {
        return Err(place.fault("a policy has either `config` or `configFile`"));
    }
    Ok(Some(PathBuf::from(text)))
}

fn policy_source(text: &str) -> Result<PolicySource, String> {
    if text.contains("://") || text.starts_with("oci:") {
        return Err(format!("`{}` is not on this machine, `portcullis policy add` fetches it", shown(text)));
    }
    if Path::new(text).extension().is_some_and(|extension| extension == "wasm") {
        crate::check::usable_path(text)?;
        return Ok(PolicySource::File(PathBuf::from(text)));
    }
    if is_policy_name(text) {
        return Ok(PolicySource::Shipped(text.to_owned()));
    }
    if is_pack_id(text) {
        return Ok(PolicySource::Pack(text.to_owned()));
    }
    Err(format!(
        "`{}` is neither the name of a shipped policy nor `namespace:name` of a pack, nor the path of a `.wasm` file",
        shown(text)
    ))
}

/// Returns true if `text` is the id of a pack. Manifests and lock files use the same form.
fn is_pack_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let word =
        |word: &str| (1..=64).contains(&word.len()) && !word.starts_with('-') && word.bytes().all(plain);
    text.split_once(':').is_some_and(|(namespace, name)| word(namespace) && word(name))
}

fn default_name(source: &PolicySource) -> String {
    match source {
        PolicySource::Shipped(name) => name.clone(),
        // Keep the namespace: `x:workspace` must not pass for `workspace` in questions and logs.
        PolicySource::Pack(id) => id.replace(':', "-"),
        PolicySource::File(path) => {
            path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
        }
    }
}

/// Names under which the host itself appears in verdicts and logs.
const RESERVED_NAMES: &[&str] = &[
    "base",
    "grant",
    "host",
    "machine-settings",
    "team-settings",
    "project-sandbox",
    "project-settings",
    "rules",
    "settings",
    "user",
];

/// Returns true if a policy can have this name. Such names need no quotes in expressions, logs and rule ids.
#[must_use]
pub fn is_policy_name(text: &str) -> bool {
    /// Limit in characters; longer names make prompts hard to read.
    const LONGEST: usize = 64;
    let fits = |character: char| character.is_ascii_alphanumeric() || character == '-' || character == '_';
    (1..=LONGEST).contains(&text.len()) && text.chars().all(fits) && !RESERVED_NAMES.contains(&text)
}

pub(crate) fn combine(place: &DocumentValue<'_>, policies: &[PolicyEntry]) -> Result<Combine, Fault> {
    let Some(text) = place.text() else { return Ok(Combine::Strictest) };
    let names: Vec<&str> = policies.iter().map(|policy| policy.name.as_str()).collect();
    let combine = Combine::parse(text, &names).map_err(|error| place.fault(error.to_string()))?;
    if matches!(combine, Combine::Expression(_)) {
        // A policy that the expression leaves out has no effect, not even its denials.
        let named: Vec<&str> = text.split(|character: char| "&|() \t\n".contains(character)).collect();
        let counts = |policy: &&PolicyEntry| policy.mode == PolicyMode::Enforce;
        let forgotten = policies.iter().filter(counts).find(|policy| !named.contains(&policy.name.as_str()));
        if let Some(policy) = forgotten {
            let reason = format!(
                "the policy `{}` is not in it, name it or give it the mode `tighten` or `observe`",
                policy.name
            );
            return Err(place.fault(reason));
        }
    }
    Ok(combine)
}
