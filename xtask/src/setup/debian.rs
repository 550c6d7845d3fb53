//! Debian packages without installing them: fetched with apt, unpacked into the cache.
//!
//! This needs no privilege and changes nothing on the system. apt reads the system's list of sources
//! and of installed packages; its own lists lie in the cache.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cache::Cache;
use crate::run::{find_program, quiet};

/// Puts a script at `script` that starts the program at `path` in the unpacked `package`.
pub(super) fn provide(cache: &Cache, package: &str, path: &str, script: &Path) -> Result<()> {
    let root = unpack(cache, &format!("debian-{package}"), &[package], |name| name == package)?;
    let file = root.join(path);
    write_script(script, &format!("{}exec '{}' \"$@\"\n", library_path(&root), file.display()))
}

/// Returns a directory with the `packages` unpacked, and with what they need that the system lacks.
///
/// Those that `always` picks are unpacked even if the system has them.
pub(super) fn unpack(
    cache: &Cache,
    name: &str,
    packages: &[&str],
    always: impl Fn(&str) -> bool,
) -> Result<PathBuf> {
    cache.directory(name, |root| {
        let hint = || {
            format!("fetching the Debian packages {packages:?}; where apt is absent, install them yourself")
        };
        find_program("apt-get").with_context(hint)?;
        let lists = lists(cache)?;
        let plan = quiet(
            apt("apt-get", &lists).args(["install", "--simulate", "--no-install-recommends"]).args(packages),
        )
        .with_context(hint)?;
        let mut wanted: Vec<String> = plan.lines().filter_map(new_package).collect();
        wanted.extend(needed(&lists, packages).with_context(hint)?.into_iter().filter(|name| always(name)));
        wanted.sort();
        wanted.dedup();
        let archives = root.join("archives");
        fs::create_dir(&archives).context("creating the directory for archives")?;
        quiet(apt("apt-get", &lists).arg("download").args(&wanted).current_dir(&archives))
            .with_context(hint)?;
        for archive in fs::read_dir(&archives)? {
            quiet(Command::new("dpkg").arg("--extract").arg(archive?.path()).arg(root))?;
        }
        fs::remove_dir_all(&archives).context("removing the archives")
    })
}

/// Returns the line of a script that lets programs find the libraries unpacked below `root`.
pub(super) fn library_path(root: &Path) -> String {
    let libraries = root.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH));
    format!("export LD_LIBRARY_PATH='{}'\n", libraries.display())
}

pub(super) fn write_script(path: &Path, body: &str) -> Result<()> {
    fs::write(path, format!("#!/bin/sh\n{body}")).with_context(|| format!("writing `{}`", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).context("making the script executable")
}

/// Fetches the package lists into the cache, once for each run that needs them.
fn lists(cache: &Cache) -> Result<PathBuf> {
    let root = cache.path("apt");
    for part in ["lists/partial", "archives/partial"] {
        fs::create_dir_all(root.join(part)).context("creating apt's directories")?;
    }
    quiet(apt("apt-get", &root).arg("update"))
        .context("fetching Debian's package lists; look at /etc/apt and the network")?;
    Ok(root)
}

/// Returns the packages and all that they depend on, installed or not.
fn needed(lists: &Path, packages: &[&str]) -> Result<Vec<String>> {
    let mut command = apt("apt-cache", lists);
    command.args(["depends", "--recurse", "--no-recommends", "--no-suggests", "--no-enhances"]);
    command.args(["--no-conflicts", "--no-breaks", "--no-replaces"]).args(packages);
    // A package stands at the start of a line, its dependencies are indented, virtual ones in brackets.
    let text = quiet(&mut command)?;
    Ok(text.lines().filter(|line| !line.starts_with([' ', '|', '<'])).map(str::to_owned).collect())
}

fn apt(program: &str, root: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--quiet").arg("--option").arg(format!("Dir::State::lists={}", root.join("lists").display()));
    command.arg("--option").arg(format!("Dir::Cache={}", root.display()));
    // Reading as the package manager's own user is pointless here and fails in private directories.
    command.args(["--option", "APT::Sandbox::User=root"]).env("LC_ALL", "C");
    command
}

/// Reads `Inst NAME (VERSION ...)` from a simulated installation.
fn new_package(line: &str) -> Option<String> {
    line.strip_prefix("Inst ")?.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_packages_of_a_simulation_are_fetched() {
        assert_eq!(new_package("Inst lld-14 (1:14.0.6-12 Debian:12 [amd64])").as_deref(), Some("lld-14"));
        assert_eq!(new_package("Conf lld-14 (1:14.0.6-12 Debian:12 [amd64])"), None);
        assert_eq!(new_package("Reading package lists..."), None);
    }
}
