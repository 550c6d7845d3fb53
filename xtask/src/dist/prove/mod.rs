//! Proves the packages: installs each on a plain Debian without Rust, compilers and caches, uses it, and removes it.

mod emulated;
mod registry;
mod root;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;

use super::target::Target;
use super::{archive, debian, npm};
use crate::cache::Pi;
use crate::project;
use crate::run::{find_program, step};
use crate::setup;
use registry::Registry;
use root::{ROOT, Root, USER};

const COMMON: &str = include_str!("common.sh");
const ARCHIVE: &str = include_str!("archive.sh");
const DEBIAN: &str = include_str!("debian.sh");
const NPM: &str = include_str!("npm.sh");

/// Which packages are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Proof {
    All,
    Archive,
    Debian,
    Npm,
    /// The programs for ARM64, under an emulator that cannot run the sandbox
    Arm64,
}

/// Tries packages for this processor in `out`.
pub(super) fn packages(which: Proof, out: &Path) -> Result<()> {
    if which == Proof::Arm64 {
        return step("proving the programs for ARM64", || emulated::programs(out, Target::Aarch64));
    }
    let target = Target::of_this_machine()?;
    let foreign =
        Target::LINUX.into_iter().find(|&other| other != target).context("there is one target only")?;
    let wants = |proof| which == proof || which == Proof::All;
    if wants(Proof::Archive) {
        step("proving the archive", || archive(out, target))?;
    }
    if wants(Proof::Debian) {
        step("proving the Debian package", || debian(out, target, foreign))?;
    }
    if wants(Proof::Npm) {
        let registry = step("publishing to a registry on loopback", || Registry::with_packages_of(out))?;
        let tools = setup::ready()?;
        for (version, pi) in [("0.74", tools.pi_0_74), ("1.5", tools.pi_1_5)] {
            let pi = pi.with_context(|| format!("set-up left no pi {version}"))?;
            step(&format!("proving the npm packages with pi {version}"), || npm(&registry, &pi, target))?;
        }
    }
    Ok(())
}

fn archive(out: &Path, target: Target) -> Result<()> {
    let variables = [("ARCHIVE", archive::name(target))];
    let policies = project::root().join("policies");
    let binds = [(out, "/packages"), (policies.as_path(), "/policies")];
    Root::fresh()?.run(USER, &binds, &script(&variables, ARCHIVE))
}

fn debian(out: &Path, target: Target, foreign: Target) -> Result<()> {
    let variables = [("DEB", debian::name(target)), ("FOREIGN_DEB", debian::name(foreign))];
    let root = Root::fresh()?;
    // A user's part of the script begins in a shell of its own.
    fs::write(root.path().join(".common.sh"), COMMON).context("writing what the scripts have in common")?;
    root.run(ROOT, &[(out, "/packages")], &script(&variables, DEBIAN))
}

fn npm(registry: &Registry, pi: &Pi, target: Target) -> Result<()> {
    let (npm_package, modules) = (npm_directory()?, above(&pi.cli, "node_modules")?);
    let root = Root::fresh()?;
    let (node, there) = (Path::new("/opt/bin/node"), Path::new("/opt/pi/node_modules"));
    root.command("node", &pi.node, None)?;
    root.command("pi", node, Some(&there.join(pi.cli.strip_prefix(&modules)?)))?;
    root.command("npm", node, Some(Path::new("/opt/npm/bin/npm-cli.js")))?;
    let scenario = project::root().join("tests/pi");
    let binds = [
        (npm_package.as_path(), "/opt/npm"),
        (modules.as_path(), "/opt/pi/node_modules"),
        (scenario.as_path(), "/opt/proof"),
    ];
    let variables = [
        ("REGISTRY", registry.address.clone()),
        ("PROGRAM_PACKAGE", format!("@portcullis/{}", npm::package(target))),
    ];
    root.run(USER, &binds, &script(&variables, NPM))
}

/// Returns a script behind its variables and what all scripts have in common.
fn script(variables: &[(&str, String)], script: &str) -> String {
    let set: String = variables.iter().map(|(name, value)| format!("{name}='{value}'\n")).collect();
    format!("{set}{COMMON}\n{script}")
}

/// Returns the directory of the npm that this machine has.
fn npm_directory() -> Result<PathBuf> {
    let npm = find_program("npm").context("`npm` is not in PATH")?;
    let script = fs::canonicalize(&npm).with_context(|| format!("resolving `{}`", npm.display()))?;
    let directory = script.ancestors().nth(2).map(Path::to_path_buf);
    match directory.filter(|directory| directory.join("bin/npm-cli.js").exists()) {
        Some(directory) => Ok(directory),
        None => bail!("`{}` does not lie in npm's package", script.display()),
    }
}

/// Returns the nearest directory of this name above a file.
fn above(file: &Path, name: &str) -> Result<PathBuf> {
    let found = file.ancestors().find(|directory| directory.ends_with(name));
    Ok(found.with_context(|| format!("`{}` is in no `{name}`", file.display()))?.to_owned())
}
