//! The two pi versions the extension is tested with, and the Node each needs, all from npm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cache::{Cache, Pi};
use crate::run::{find_program, quiet};

/// The last version that runs on Node 20.
const PI_OLD: &str = "0.74.2";
/// The current version; it needs Node 22.19 or later.
const PI_NEW: &str = "1.5.2";
const NODE_NEW: &str = "24.21.0";
/// The packages that the current pi loads beside its bundle: codemode, extensions, images.
const BESIDE_PI_NEW: [&str; 3] = ["quickjs-wasi@3.6.2", "jiti@2.7.0", "@silvia-odwyer/photon-node@0.3.4"];
const TYPESCRIPT: &str = "5.9.3";
const NODE_TYPES: &str = "@types/node@24.19.2";
/// The oldest Node that runs everything: with 20.18 connections of a held `fetch` time out, and the compiler for
/// JavaScript policies fails.
const OLDEST_NODE: (u32, u32) = (20, 19);
/// A release of it, which tests of connections run.
const NODE_OLDEST: &str = "20.19.0";
const PI_PACKAGE: &str = "@earendil-works/pi-coding-agent";

pub(super) fn pi_0_74(cache: &Cache) -> Result<Pi> {
    let node = system_node()?;
    let root = cache
        .directory(&format!("pi-{PI_OLD}"), |root| install(root, &[&format!("{PI_PACKAGE}@{PI_OLD}")]))?;
    pi(node, root.join("node_modules").join(PI_PACKAGE).join("dist/cli.js"))
}

pub(super) fn pi_1_5(cache: &Cache) -> Result<Pi> {
    let node = node_of_npm(cache, NODE_NEW)?;
    let root = cache.directory(&format!("pi-{PI_NEW}"), unpack_pi_new)?;
    pi(node, root.join("node_modules").join(PI_PACKAGE).join("dist/bundle/cli.js"))
}

/// Returns the oldest Node that is promised to work.
pub(super) fn oldest(cache: &Cache) -> Result<PathBuf> {
    node_of_npm(cache, NODE_OLDEST)
}

/// Returns a Node of this version, as npm has it.
fn node_of_npm(cache: &Cache, version: &str) -> Result<PathBuf> {
    let package = format!("node-linux-{}", npm_arch()?);
    let root = cache
        .directory(&format!("node-{version}"), |root| install(root, &[&format!("{package}@{version}")]))?;
    Ok(root.join("node_modules").join(package).join("bin/node"))
}

pub(super) fn typescript(cache: &Cache) -> Result<PathBuf> {
    let name = format!("typescript-{TYPESCRIPT}");
    let compiler = format!("typescript@{TYPESCRIPT}");
    let root = cache.directory(&name, |root| install(root, &[&compiler, NODE_TYPES]))?;
    Ok(root.join("node_modules/typescript/bin/tsc"))
}

/// Unpacks pi beside the few packages it loads: its bundle holds the others, and `npm install` would
/// insist on fetching all packages in its manifest, some of which registries do not have.
fn unpack_pi_new(root: &Path) -> Result<()> {
    install(root, &BESIDE_PI_NEW)?;
    npm(root).args(["pack", "--silent", &format!("{PI_PACKAGE}@{PI_NEW}")]).run()?;
    let tarball = fs::read_dir(root)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "tgz"))
        .context("`npm pack` left no tarball")?;
    let target = root.join("node_modules").join(PI_PACKAGE);
    fs::create_dir_all(&target).with_context(|| format!("creating `{}`", target.display()))?;
    quiet(Command::new("tar").arg("-xzf").arg(&tarball).arg("-C").arg(&target).arg("--strip-components=1"))?;
    fs::remove_file(&tarball).with_context(|| format!("removing `{}`", tarball.display()))
}

/// Installs npm packages below `root`, running none of their scripts.
pub(super) fn install(root: &Path, packages: &[&str]) -> Result<()> {
    install_as(root, "{\"private\": true}\n", packages)
}

/// Does the same beside an existing `package.json`.
pub(super) fn install_as(root: &Path, manifest: &str, packages: &[&str]) -> Result<()> {
    fs::write(root.join("package.json"), manifest).context("writing package.json")?;
    npm(root)
        .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
        .args(packages)
        .run()
}

/// Returns the name npm packages use for this processor.
pub(super) fn npm_arch() -> Result<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("x64"),
        "aarch64" => Ok("arm64"),
        other => bail!("no Node package is known for the processor `{other}`: x86_64 and aarch64 are"),
    }
}

struct Npm(Command);

fn npm(directory: &Path) -> Npm {
    let mut command = Command::new("npm");
    command.current_dir(directory);
    Npm(command)
}

impl Npm {
    fn args<S: AsRef<std::ffi::OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.0.args(arguments);
        self
    }

    fn run(mut self) -> Result<()> {
        quiet(&mut self.0).context("asking npm; look at its registry settings and at the network")?;
        Ok(())
    }
}

fn system_node() -> Result<PathBuf> {
    let hint = "install Node 20.19 or later with npm (https://nodejs.org)";
    let node = find_program("node").with_context(|| format!("`node` is not in PATH: {hint}"))?;
    find_program("npm").with_context(|| format!("`npm` is not in PATH: {hint}"))?;
    let version = quiet(Command::new(&node).arg("--version"))?;
    if node_version(&version).is_none_or(|version| version < OLDEST_NODE) {
        bail!("`{}` is version {}: {hint}", node.display(), version.trim());
    }
    Ok(node)
}

/// Reads the first two numbers of what `node --version` prints.
fn node_version(printed: &str) -> Option<(u32, u32)> {
    let mut numbers = printed.trim().strip_prefix('v')?.split('.').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn pi(node: PathBuf, cli: PathBuf) -> Result<Pi> {
    // Proves the files fit together, and costs less than a second.
    quiet(Command::new(&node).arg(&cli).arg("--version").env("PI_OFFLINE", "1"))
        .with_context(|| format!("starting pi; delete `{}` and run setup again", cli.display()))?;
    Ok(Pi { node, cli })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_before_20_19_is_refused() {
        for (printed, is_enough) in [
            ("v18.20.4\n", false),
            ("v20.18.3\n", false),
            ("v20.19.0\n", true),
            ("v20.20.2\n", true),
            ("v22.1.0\n", true),
            ("v24.0.0-nightly\n", true),
            ("20.19.0\n", false),
            ("", false),
        ] {
            assert_eq!(
                node_version(printed).is_some_and(|version| version >= OLDEST_NODE),
                is_enough,
                "{printed}"
            );
        }
    }
}
