//! `tidy`: rules of the workspace on manifests, read from `cargo metadata`, and on texts for users.

mod circles;
mod dependencies;
mod installs;
mod licences;
mod manifests;
mod wording;
mod workspace;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::book::links;
use crate::project;
use crate::run::say;
use workspace::{Member, array, members, read, text};

pub(crate) const EXAMPLES: &str = "\
Examples:
  cargo xtask tidy    name each rule that is broken, and where

Allowed licences and known duplicates are listed in deny.toml, layers in xtask/src/tidy.rs.";

/// Crates of a layer use those of lower layers only, beside [`WITHIN_A_LAYER`].
const LAYERS: [(&str, u8); 35] = [
    ("certificates", 0),
    ("changes", 0),
    ("decision", 0),
    ("exec-surface", 0),
    ("git-client", 0),
    ("sys", 0),
    ("text", 0),
    ("approvals", 1),
    ("audit", 1),
    ("credential-broker", 1),
    ("file-gate", 1),
    ("network-gate", 1),
    ("packs", 1),
    ("policy-runtime", 1),
    ("rpc", 1),
    ("sandbox", 1),
    ("sandbox-runtime", 1),
    ("profile-runtime", 1),
    ("settings-format", 1),
    ("shell", 1),
    ("seatbelt", 1),
    ("syscall-broker", 1),
    ("vcs", 1),
    ("export", 2),
    ("settings", 2),
    ("teams", 2),
    ("session", 3),
    ("session-sandbox", 3),
    ("bootstrap", 4),
    ("command-line", 5),
    ("policy-tools", 5),
    ("server", 5),
    ("cli", 6),
    ("compiler", 6),
    ("policy-commands", 6),
];

/// The crates that use others of their own layer.
const WITHIN_A_LAYER: [(&str, &[&str]); 10] = [
    ("changes", &["sys"]),
    ("decision", &["exec-surface", "text"]),
    ("approvals", &["network-gate", "shell"]),
    ("session", &["session-sandbox"]),
    ("network-gate", &["credential-broker", "sandbox"]),
    ("syscall-broker", &["sandbox"]),
    ("sandbox-runtime", &["sandbox", "syscall-broker"]),
    ("profile-runtime", &["sandbox", "sandbox-runtime"]),
    ("cli", &["policy-commands"]),
    ("vcs", &["settings-format"]),
];

/// The crates of ours that each crate outside `host/` may use; crates not listed here may use all.
const OUTSIDE: [(&str, &[&str]); 8] = [
    ("guest/sdk", &[]),
    ("guest/text-policy", &["portcullis-sdk"]),
    ("guest/workspace", &["portcullis-sdk"]),
    ("policies/guard", &["portcullis-sdk"]),
    ("policies/git-guard", &["portcullis-sdk"]),
    ("policies/secrets", &["portcullis-sdk"]),
    ("policies/bosun", &["portcullis-sdk"]),
    ("xtask", &[]),
];

pub(crate) fn task() -> Result<()> {
    let problems = problems()?;
    for problem in &problems {
        say(problem);
    }
    match problems.len() {
        0 => {
            say("all rules hold");
            Ok(())
        }
        count => bail!("{count} rules are broken"),
    }
}

/// Returns a line for each broken rule.
fn problems() -> Result<Vec<String>> {
    let metadata = project::metadata()?;
    let packages = array(&metadata, "packages")?;
    let deny: toml::Table = read("deny.toml")?.parse().context("reading `deny.toml`")?;
    let mut problems = licences::problems(packages, &deny)?;
    problems.extend(duplicates(packages, &deny)?);
    problems.extend(circles::problems(packages)?);
    problems.extend(installs::problems()?);
    problems.extend(wording::problems()?);
    problems.extend(links::problems()?);
    let members = members(packages)?;
    problems.extend(dependencies::problems(&members)?);
    for package in members {
        problems.extend(layer_problems(&package));
        problems.extend(manifests::problems(&package)?);
    }
    Ok(problems)
}

fn layer_problems(member: &Member) -> Vec<String> {
    let folder = member.folder.as_str();
    if let Some((_, allowed)) = OUTSIDE.iter().find(|(outside, _)| *outside == folder) {
        let foreign = member.uses.iter().filter(|used| !allowed.contains(&used.as_str()));
        return foreign.map(|used| format!("{folder} may not use {used}")).collect();
    }
    let Some(own) = folder.strip_prefix("host/") else { return Vec::new() };
    let Some(own_layer) = layer(own) else {
        return vec![format!("{folder} has no layer in xtask/src/tidy.rs")];
    };
    let beside = WITHIN_A_LAYER.iter().find(|(user, _)| *user == own).map_or(&[][..], |(_, used)| used);
    let lower = |used: &str| {
        let used = used.strip_prefix("portcullis-").unwrap_or_default();
        beside.contains(&used) || layer(used).is_some_and(|layer| layer < own_layer)
    };
    // Cases are a format of the SDK, and the tools for authors run them.
    let shared = |used: &str| folder == "host/policy-tools" && used == "portcullis-sdk";
    let foreign = member.uses.iter().filter(|used| !lower(used) && !shared(used));
    foreign.map(|used| format!("{folder} is in layer {own_layer} and may not use {used}")).collect()
}

fn layer(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

/// Checks that each crate is used in one version only, except those for which deny.toml gives a reason.
fn duplicates(packages: &[Value], deny: &toml::Table) -> Result<Vec<String>> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(text(package, "name")?).or_default().insert(text(package, "version")?);
    }
    versions.retain(|_, versions| versions.len() > 1);
    let bans = deny.get("bans").context("`deny.toml` has no [bans]")?;
    let known: BTreeSet<&str> = bans
        .get("skip")
        .and_then(toml::Value::as_array)
        .context("`deny.toml` has no bans.skip")?
        .iter()
        .filter_map(|entry| entry.get("crate")?.as_str())
        .collect();
    let new = versions.iter().filter(|(name, _)| !known.contains(*name));
    let gone = known.iter().filter(|name| !versions.contains_key(*name));
    let new = new.map(|(name, versions)| format!("{name} is there in several versions: {versions:?}"));
    let gone = gone.map(|name| format!("deny.toml excuses {name}, which is there once at most"));
    Ok(new.chain(gone).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_keeps_its_rules() {
        let problems = problems().unwrap();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    fn check_layers(folder: &str, uses: &[&str], count: usize) {
        let uses = uses.iter().map(|&name| format!("portcullis-{name}")).collect();
        let problems = layer_problems(&Member { folder: folder.to_owned(), uses });
        assert_eq!(problems.len(), count, "{problems:?}");
    }

    #[test]
    fn arrows_point_downwards_only() {
        check_layers("host/session", &["decision", "settings", "audit"], 0);
        check_layers("host/settings-format", &["decision", "sys"], 0);
        check_layers("host/settings-format", &["audit"], 1);
        check_layers("host/decision", &["sys"], 1);
        check_layers("host/audit", &["session", "cli"], 2);
        check_layers("host/sandbox-runtime", &["sandbox", "syscall-broker", "sys"], 0);
        check_layers("host/syscall-broker", &["sandbox-runtime"], 1);
        check_layers("host/sandbox", &["syscall-broker", "sys"], 1);
        check_layers("host/sandbox", &["workspace", "sdk"], 2);
        check_layers("host/utils", &[], 1);
        check_layers("guest/sdk", &["decision"], 1);
        check_layers("guest/workspace", &["sdk"], 0);
        check_layers("tests/it", &["cli", "rpc"], 0);
    }

    #[test]
    fn a_duplicate_needs_an_excuse_and_an_excuse_a_duplicate() {
        let packages = [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2"), ("c", "1")]
            .map(|(name, version)| serde_json::json!({"name": name, "version": version}));
        let deny = "bans.skip = [{crate = 'b'}, {crate = 'c'}]".parse().unwrap();
        let problems = duplicates(&packages, &deny).unwrap();
        assert_eq!(problems.len(), 2, "{problems:?}");
    }
}
