//! The crates of this workspace, read from `cargo metadata`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::project;

/// A crate of this workspace.
#[derive(Debug)]
pub(super) struct Member {
    /// Its folder below the top of the clone.
    pub(super) folder: String,
    /// Names of the crates of ours that it is built from, tests left out.
    pub(super) uses: BTreeSet<String>,
}

/// Returns the crates of this workspace among the packages of `cargo metadata`.
pub(super) fn members(packages: &[Value]) -> Result<Vec<Member>> {
    let local = packages.iter().filter(|package| package.get("source").is_some_and(Value::is_null));
    local.map(member).collect()
}

fn member(package: &Value) -> Result<Member> {
    let manifest = Path::new(text(package, "manifest_path")?);
    let folder = manifest.parent().and_then(|folder| folder.strip_prefix(project::root()).ok());
    let folder = folder.with_context(|| format!("`{}` is outside the clone", manifest.display()))?;
    let uses = array(package, "dependencies")?
        .iter()
        .filter(|dependency| dependency.get("path").is_some())
        .filter(|dependency| dependency.get("kind").and_then(Value::as_str) != Some("dev"))
        .filter_map(|dependency| Some(dependency.get("name")?.as_str()?.to_owned()))
        .collect();
    Ok(Member { folder: folder.display().to_string(), uses })
}

/// Reads a file of the clone.
pub(super) fn read(name: &str) -> Result<String> {
    fs::read_to_string(project::root().join(name)).with_context(|| format!("reading `{name}`"))
}

pub(super) fn array<'value>(value: &'value Value, key: &str) -> Result<&'value [Value]> {
    let array = value.get(key).and_then(Value::as_array);
    Ok(array.with_context(|| format!("cargo's metadata has no `{key}`"))?)
}

pub(super) fn text<'value>(value: &'value Value, key: &str) -> Result<&'value str> {
    value.get(key).and_then(Value::as_str).with_context(|| format!("cargo's metadata has no `{key}`"))
}
