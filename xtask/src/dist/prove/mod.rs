//! Proves the packages: installs each on a plain Debian without Rust, compilers and caches, uses it, and removes it.

mod registry;
mod root;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::target::Target;
use super::{archive, debian, npm};
use crate::project;
use crate::run::{find_program, step};
use crate::setup;
use registry::Registry;
use root::{ROOT, Root, USER};

const COMMON: &str = include_str!("common.sh");
const ARCHIVE: &str = include_str!("archive.sh");
const DEBIAN: &str = include_str!("debian.sh");
const NPM: &str = include_str!("npm.sh");

/// Tries all packages for this processor in `out`.
pub(super) fn all(out: &Path) -> Result<()> {
    let target = Target::of_this_machine()?;
    let foreign =
        Target::ALL.into_iter().find(|&other| other != target).context("there is one target only")?;
    let script = |variables: &[(&str, &str)], script: &str| {
        let set: String = variables.iter().map(|(name, value)| format!("{name}='{value}'\n")).collect();
        format!("{set}{COMMON}\n{script}")
    };
    let packages = [(out, "/packages")];
    let with_common = |root: &Root| {
        fs::write(root.path().join(".common.sh"), COMMON).context("writing what the scripts have in common")
    };
    step("proving the archive", || {
        let archive = archive::name(target);
        Root::fresh()?.run(USER, &packages, &script(&[("ARCHIVE", &archive)], ARCHIVE))
    })?;
    step("proving the Debian package", || {
        let (deb, other) = (debian::name(target), debian::name(foreign));
        let root = Root::fresh()?;
        with_common(&root)?;
        root.run(ROOT, &packages, &script(&[("DEB", &deb), ("FOREIGN_DEB", &other)], DEBIAN))
    })?;
    let registry = step("publishing to a registry on loopback", || Registry::with_packages_of(out))?;
    let tools = setup::ready()?;
    for (version, pi) in [("0.74", tools.pi_0_74), ("1.5", tools.pi_1_5)] {
        let pi = pi.with_context(|| format!("set-up left no pi {version}"))?;
        step(&format!("proving the npm packages with pi {version}"), || {
            let npm_packages = npm_directory()?;
            let pi_packages = above(&pi.cli, "node_modules")?;
            let root = Root::fresh()?;
            root.command("node", &pi.node, None)?;
            let binds = [
                (npm_packages.as_path(), "/opt/npm"),
                (pi_packages.as_path(), "/opt/pi/node_modules"),
                (&project::root().join("tests/pi"), "/opt/proof"),
            ];
            let cli = Path::new("/opt/pi/node_modules").join(pi.cli.strip_prefix(&pi_packages)?);
            root.command("pi", Path::new("/opt/bin/node"), Some(&cli))?;
            root.command("npm", Path::new("/opt/bin/node"), Some(Path::new("/opt/npm/bin/npm-cli.js")))?;
            let foreign = format!("@portcullis/{}", npm::package(foreign));
            let variables = [("REGISTRY", registry.address.as_str()), ("FOREIGN_NPM", &foreign)];
            root.run(USER, &binds, &script(&variables, NPM))
        })?;
    }
    Ok(())
}

/// Returns the directory of the npm that this machine has.
fn npm_directory() -> Result<std::path::PathBuf> {
    let npm = find_program("npm").context("`npm` is not in PATH")?;
    let script = fs::canonicalize(&npm).with_context(|| format!("resolving `{}`", npm.display()))?;
    let directory = script.ancestors().nth(2).map(Path::to_path_buf);
    match directory.filter(|directory| directory.join("bin/npm-cli.js").exists()) {
        Some(directory) => Ok(directory),
        None => bail!("`{}` does not lie in npm's package", script.display()),
    }
}

/// Returns the nearest directory of this name above a file.
fn above(file: &Path, name: &str) -> Result<std::path::PathBuf> {
    let found = file.ancestors().find(|directory| directory.ends_with(name));
    Ok(found.with_context(|| format!("`{}` is in no `{name}`", file.display()))?.to_owned())
}
