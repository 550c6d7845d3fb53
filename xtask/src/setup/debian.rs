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

/// Puts a script at `script` that starts `program` out of the unpacked `package`.
pub(super) fn provide(cache: &Cache, package: &str, program: &str, script: &Path) -> Result<()> {
    let root = unpack(cache, &format!("debian-{package}"), &[package], &[package])?;
    write_script(script, &format!("{}exec '{}' \"$@\"\n", library_path(&root), root.join("usr/bin").join(program).display()))
}

/// Returns a directory with the `packages` unpacked, and with what they need that the system lacks.
///
/// Those in `always` are unpacked even if the system has them.
pub(super) fn unpack(cache: &Cache, name: &str, packages: &[&str], always: &[&str]) -> Result<PathBuf> {
    cache.directory(name, |root| {
        let hint = || format!("fetching the Debian packages {packages:?}; where apt is absent, install them yourself");
        find_program("apt-get").with_context(hint)?;
        let lists = lists(cache)?;
        let plan = quiet(apt(&lists).args(["install", "--simulate", "--no-install-recommends"]).args(packages));
        let mut wanted: Vec<String> = always.iter().map(|&package| package.to_owned()).collect();
        wanted.extend(plan.with_context(hint)?.lines().filter_map(new_package));
        wanted.sort();
        wanted.dedup();
        let archives = root.join("archives");
        fs::create_dir(&archives).context("creating the directory for archives")?;
        quiet(apt(&lists).arg("download").args(&wanted).current_dir(&archives)).with_context(hint)?;
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
    quiet(apt(&root).arg("update")).context("fetching Debian's package lists; look at /etc/apt and the network")?;
    Ok(root)
}

fn apt(root: &Path) -> Command {
    let mut command = Command::new("apt-get");
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
