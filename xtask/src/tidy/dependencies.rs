//! Checks that some crate uses each entry of `[workspace.dependencies]`.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};

use super::manifests::dependency_tables;
use super::workspace::{Member, read};

/// Returns a line for each entry that no crate uses.
pub(super) fn problems(members: &[Member]) -> Result<Vec<String>> {
    let manifest = |folder: &str| -> Result<toml::Table> {
        let name = format!("{folder}/Cargo.toml");
        read(&name)?.parse().with_context(|| format!("reading `{name}`"))
    };
    let manifests = members.iter().map(|member| manifest(&member.folder)).collect::<Result<Vec<_>>>()?;
    unused(&manifest(".")?, &manifests)
}

fn unused(root: &toml::Table, manifests: &[toml::Table]) -> Result<Vec<String>> {
    let used: BTreeSet<&str> = manifests
        .iter()
        .flat_map(dependency_tables)
        .flat_map(toml::Table::keys)
        .map(String::as_str)
        .collect();
    let entries = root.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    let entries =
        entries.and_then(toml::Value::as_table).context("`Cargo.toml` has no workspace.dependencies")?;
    let unused = entries.keys().filter(|name| !used.contains(name.as_str()));
    Ok(unused.map(|name| format!("no crate uses {name} of [workspace.dependencies]: remove it")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_entries_are_found() {
        let root = "workspace.dependencies = {a = '1', b = '1', c = '1', d = '1', e = '1'}".parse().unwrap();
        let manifests = [
            "dependencies.a.workspace = true\ndev-dependencies.b.workspace = true",
            "build-dependencies.c.workspace = true\ntarget.'cfg(unix)'.dependencies.d.workspace = true",
        ]
        .map(|text| text.parse().unwrap());
        let problems = unused(&root, &manifests).unwrap();
        assert!(problems.len() == 1 && problems[0].contains("uses e of"), "{problems:?}");
    }
}
