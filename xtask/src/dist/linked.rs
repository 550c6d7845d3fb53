//! The crates that are linked into the programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::target::{PROGRAMS, Target};
use crate::run::quiet;
use crate::{guests, project};

/// Crates whose data a build script copies into the programs.
const COPIED: [&str; 1] = ["unicode-security"];

/// A crate in the programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Linked {
    pub(super) name: String,
    pub(super) version: String,
    /// The SPDX expression.
    pub(super) licence: String,
    /// The SHA-256 sum of the package in its registry; none for crates of this repository.
    pub(super) sum: Option<String>,
    pub(super) repository: Option<String>,
    /// The directory of the sources on this machine.
    pub(super) folder: PathBuf,
}

/// Returns the crates that are linked for this target, sorted, also those in the components of text policies. Build
/// scripts, macros and tests are left out, except crates whose data a build script copies.
pub(super) fn crates(target: Target) -> Result<Vec<Linked>> {
    let mut all = of_workspace(&project::root().join("Cargo.toml"), &tree(target)?, &COPIED)?;
    for manifest in guests::text_policies() {
        all.extend(of_workspace(&manifest, &tree_of_component(&manifest)?, &[])?);
    }
    all.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
    all.dedup_by(|one, other| (&one.name, &one.version) == (&other.name, &other.version));
    Ok(all)
}

/// Returns the crates in a tree of dependencies, and those with copied data.
fn of_workspace(manifest: &Path, tree: &str, copied: &[&str]) -> Result<Vec<Linked>> {
    let mut cargo = project::cargo();
    cargo.args(["metadata", "--locked", "--format-version", "1", "--manifest-path"]).arg(manifest);
    let metadata: Value = serde_json::from_str(&quiet(&mut cargo)?).context("reading cargo's metadata")?;
    let packages = metadata.get("packages").and_then(Value::as_array).context("cargo names no packages")?;
    let known: BTreeMap<(&str, &str), &Value> = packages
        .iter()
        .filter_map(|package| Some(((string(package, "name")?, string(package, "version")?), package)))
        .collect();
    let lock =
        std::fs::read_to_string(manifest.with_file_name("Cargo.lock")).context("reading Cargo.lock")?;
    let sums = sums(&lock)?;
    let copied = known.keys().copied().filter(|(name, _)| copied.contains(name));
    let included: BTreeSet<(&str, &str)> = names(tree).into_iter().chain(copied).collect();
    let mut crates = Vec::new();
    for (name, version) in included {
        let package = known.get(&(name, version)).with_context(|| format!("cargo does not know {name}"))?;
        let manifest = string(package, "manifest_path").context("a package without a manifest")?;
        crates.push(Linked {
            name: name.to_owned(),
            version: version.to_owned(),
            licence: string(package, "license").unwrap_or_default().replace('/', " OR "),
            sum: sums.get(&(name.to_owned(), version.to_owned())).cloned(),
            repository: string(package, "repository").map(str::to_owned),
            folder: Path::new(manifest).with_file_name(""),
        });
    }
    Ok(crates)
}

fn string<'value>(value: &'value Value, key: &str) -> Option<&'value str> {
    value.get(key).and_then(Value::as_str)
}

fn tree(target: Target) -> Result<String> {
    let mut cargo = project::cargo();
    cargo.args(["tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none"]);
    cargo.args(["--target", target.triple(), "--format", "{p}"]);
    for (_, package) in PROGRAMS {
        cargo.args(["--package", package]);
    }
    quiet(&mut cargo).context("listing what is linked")
}

fn tree_of_component(manifest: &Path) -> Result<String> {
    let mut cargo = project::cargo();
    cargo.args(["tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none"]);
    cargo.args(["--target", "wasm32-unknown-unknown", "--format", "{p}", "--manifest-path"]).arg(manifest);
    quiet(&mut cargo).context("listing the crates of a component")
}

/// Returns names and versions of lines like `serde v1.0.0 (/path) (*)`, sorted and each once.
fn names(tree: &str) -> Vec<(&str, &str)> {
    let mut names: Vec<_> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?, words.next()?.strip_prefix('v')?))
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the sums in a lock file, by name and version.
fn sums(lock: &str) -> Result<BTreeMap<(String, String), String>> {
    let lock: toml::Table = lock.parse().context("reading Cargo.lock")?;
    let packages =
        lock.get("package").and_then(toml::Value::as_array).context("Cargo.lock has no packages")?;
    let text = |package: &toml::Value, key: &str| Some(package.get(key)?.as_str()?.to_owned());
    let sums = packages.iter().filter_map(|package| {
        Some(((text(package, "name")?, text(package, "version")?), text(package, "checksum")?))
    });
    Ok(sums.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_read() {
        let tree = "portcullis-cli v0.1.0 (/w/host/cli)\nserde v1.0.2\n\nlibc v0.2.1\nserde v1.0.2 (*)\n";
        assert_eq!(names(tree), [("libc", "0.2.1"), ("portcullis-cli", "0.1.0"), ("serde", "1.0.2")]);
    }

    #[test]
    fn sums_of_packages_are_read() {
        let lock = "[[package]]\nname = 'a'\nversion = '1'\nchecksum = 'ff'\n[[package]]\nname = 'own'\nversion = '2'\n";
        let sums = sums(lock).unwrap();
        assert_eq!(sums.len(), 1);
        assert_eq!(sums.get(&("a".to_owned(), "1".to_owned())).map(String::as_str), Some("ff"));
    }
}
