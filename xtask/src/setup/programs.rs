//! The programs that pi's tools and the tests call, in one directory to be put first in PATH.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::{debian, link, node};
use crate::cache::Cache;
use crate::run::{find_program, quiet, step};

const RIPGREP: &str = "1.18.0";
/// pi passes `--no-require-git`, which versions before 10 refuse; Debian has 8.
const FD: &str = "10.3.0";

/// Programs used as the system has them, or else unpacked from their Debian package; and where they lie in that.
const FROM_DEBIAN: [(&str, &str, &str); 5] = [
    ("tmux", "tmux", "usr/bin/tmux"),
    ("bwrap", "bubblewrap", "usr/bin/bwrap"),
    ("mkfs.btrfs", "btrfs-progs", "sbin/mkfs.btrfs"),
    ("docker-registry", "docker-registry", "usr/bin/docker-registry"),
    ("minisign", "minisign", "usr/bin/minisign"),
];

pub(super) fn bin_dir(cache: &Cache) -> Result<PathBuf> {
    let bin = cache.path("bin");
    fs::create_dir_all(&bin).with_context(|| format!("creating `{}`", bin.display()))?;
    link(&ripgrep(cache)?, &bin.join("rg"))?;
    link(&fd(cache)?, &bin.join("fd"))?;
    for (program, package, path) in FROM_DEBIAN {
        let link_path = bin.join(program);
        match find_program(program).filter(|found| *found != link_path) {
            Some(found) => link(&found, &link_path)?,
            None => debian::provide(cache, package, path, &link_path)?,
        }
    }
    Ok(bin)
}

/// From npm: the same version on every system, and no right to install packages is needed.
fn ripgrep(cache: &Cache) -> Result<PathBuf> {
    let package = format!("@vscode/ripgrep-linux-{}", node::npm_arch()?);
    let root = cache.directory(&format!("ripgrep-{RIPGREP}"), |root| {
        node::install(root, &[&format!("{package}@{RIPGREP}")])
    })?;
    Ok(root.join("node_modules").join(package).join("bin/rg"))
}

fn fd(cache: &Cache) -> Result<PathBuf> {
    let root = cache.directory(&format!("fd-{FD}"), |root| {
        let mut cargo = Command::new("cargo");
        cargo.args(["install", "fd-find", "--version", FD, "--locked", "--root"]).arg(root);
        // A shared target directory would let this build wait for, and mix with, the project's own.
        cargo.arg("--target-dir").arg(root.join("build")).current_dir(root);
        step("compiling fd (a minute)", || quiet(&mut cargo))?;
        fs::remove_dir_all(root.join("build")).context("removing what fd's build left")
    })?;
    Ok(root.join("bin/fd"))
}
