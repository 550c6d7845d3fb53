//! Checks each crate's manifest: versions, lints, and the places of unsafe code.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::workspace::{Member, read};
use crate::project;

/// The crate that may contain unsafe code: system calls that no safe library offers.
const UNSAFE_CRATE: &str = "host/sys";
/// The crate with one file that may contain unsafe code, and that file.
///
/// Loading precompiled components is an unsafe function.
const UNSAFE_FILE: (&str, &str) = ("host/policy-runtime", "host/policy-runtime/src/precompiled.rs");

pub(super) fn problems(member: &Member) -> Result<Vec<String>> {
    let folder = &member.folder;
    let manifest: toml::Table = read(&format!("{folder}/Cargo.toml"))?
        .parse()
        .with_context(|| format!("reading `{folder}/Cargo.toml`"))?;
    let mut problems = own_versions(folder, &manifest);
    if !inherits_lints(&manifest) {
        problems.extend(unsafe_problems(folder, &manifest)?);
    }
    Ok(problems)
}

fn inherits_lints(manifest: &toml::Table) -> bool {
    manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool)
        == Some(true)
}

/// Checks that versions appear only in the workspace's table.
fn own_versions(folder: &str, manifest: &toml::Table) -> Vec<String> {
    dependency_tables(manifest)
        .flatten()
        .filter(|(_, wanted)| wanted.get("workspace").and_then(toml::Value::as_bool) != Some(true))
        // A crate that depends on itself enables a feature for its tests.
        .filter(|(_, wanted)| wanted.get("path").and_then(toml::Value::as_str) != Some("."))
        .map(|(name, _)| format!("{folder} gives {name} a version: it belongs in [workspace.dependencies]"))
        .collect()
}

/// Returns the tables of dependencies in a crate's manifest.
pub(super) fn dependency_tables(manifest: &toml::Table) -> impl Iterator<Item = &toml::Table> {
    const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let targets = targets.into_iter().flat_map(toml::Table::values).filter_map(toml::Value::as_table);
    let tables = std::iter::once(manifest).chain(targets);
    tables.flat_map(|table| KINDS.iter().filter_map(|kind| table.get(*kind)?.as_table()))
}

/// A crate with its own lints escapes the workspace's `forbid`, so its source files are searched.
fn unsafe_problems(folder: &str, manifest: &toml::Table) -> Result<Vec<String>> {
    if folder == UNSAFE_CRATE && manifest.contains_key("lints") {
        return Ok(Vec::new());
    }
    if folder != UNSAFE_FILE.0 || !manifest.contains_key("lints") {
        return Ok(vec![format!("{folder} does not inherit the workspace's lints")]);
    }
    let mut problems = Vec::new();
    search(&project::root().join(folder).join("src"), &mut problems)?;
    Ok(problems)
}

fn search(folder: &Path, problems: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("listing `{}`", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            search(&path, problems)?;
            continue;
        }
        let name = path.strip_prefix(project::root()).unwrap_or(&path).display().to_string();
        let text = fs::read_to_string(&path).with_context(|| format!("reading `{name}`"))?;
        if name != UNSAFE_FILE.1 && text.lines().any(is_unsafe) {
            problems.push(format!("{name} holds unsafe code: only {} may, in this crate", UNSAFE_FILE.1));
        }
    }
    Ok(())
}

/// Returns true if a line contains or permits unsafe code.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let words = |character: char| !(character.is_alphanumeric() || character == '_');
    code.split(words).any(|word| word == "unsafe" || word == "unsafe_code")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_versions(text: &str, count: usize) {
        let problems = own_versions("crate", &text.parse().unwrap());
        assert_eq!(problems.len(), count, "{text}: {problems:?}");
    }

    #[test]
    fn versions_outside_the_workspace_table_are_found() {
        check_versions("dependencies.a.workspace = true", 0);
        check_versions("dependencies.a = '1'", 1);
        check_versions("dev-dependencies.a = {version = '1'}\nbuild-dependencies.b.path = 'b'", 2);
        check_versions("dev-dependencies.itself = {path = '.', features = ['x']}", 0);
        check_versions("target.'cfg(unix)'.dependencies.a = '1'", 1);
    }

    #[test]
    fn unsafe_code_is_told_from_talk_about_it() {
        assert!(is_unsafe("    unsafe { call() }"));
        assert!(is_unsafe("#![allow(unsafe_code)]"));
        assert!(!is_unsafe("// unsafe is not used here"));
        assert!(!is_unsafe("let unsafely = 1;"));
    }

    #[test]
    fn lints_must_be_inherited() {
        assert!(inherits_lints(&"lints.workspace = true".parse().unwrap()));
        assert!(!inherits_lints(&"lints.rust.missing_docs = 'warn'".parse().unwrap()));
        assert_eq!(unsafe_problems("host/audit", &toml::Table::new()).unwrap().len(), 1);
        assert_eq!(unsafe_problems("host/sys", &toml::Table::new()).unwrap().len(), 1);
    }
}
