//! `setup`: makes a fresh machine ready, once, without touching anything outside the cache.

mod debian;
mod everyday;
mod link;
mod node;
mod programs;
mod wasm;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use crate::cache::{Cache, Pi, Tools, Wasm};
use crate::project;
use crate::run::{answer, persistently, quiet, say};

pub(crate) use everyday::{browser, programs as everyday_programs};
pub(crate) use wasm::has_target;

/// Returns the path of a program in an unpacked Debian package.
pub(crate) fn debian_program(cache: &Cache, package: &str, path: &str) -> Result<PathBuf> {
    let _lock = cache.lock()?;
    Ok(debian::unpack(cache, &format!("debian-{package}"), &[package], |name| name == package)?.join(path))
}

/// Returns a directory with a package of npm installed, beside this `package.json`.
pub(crate) fn npm_package(cache: &Cache, name: &str, manifest: &str, package: &str) -> Result<PathBuf> {
    let _lock = cache.lock()?;
    cache.directory(name, |root| node::install_as(root, manifest, &[package]))
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  cargo xtask setup            fetch what is missing (a few minutes the first time)
  cargo xtask setup --print    the same, then the resulting paths as JSON

Everything is in ${PORTCULLIS_DEV:-${XDG_CACHE_HOME:-~/.cache}/portcullis-dev}, which is safe to delete;
`tools.json` there holds the paths.";

/// Options of `setup`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Prints the resulting paths as JSON
    #[arg(long)]
    print: bool,
}

pub(crate) fn task(options: &Options) -> Result<()> {
    let tools = ready()?;
    if options.print {
        answer(serde_json::to_string_pretty(&tools).context("printing the paths")?);
    }
    Ok(())
}

/// Returns the paths of all tools, and fetches missing ones.
pub(crate) fn ready() -> Result<Tools> {
    let cache = Cache::open()?;
    let _lock = cache.lock()?;
    let mut tools = Tools {
        pi_0_74: Some(node::pi_0_74(&cache)?),
        pi_1_5: Some(node::pi_1_5(&cache)?),
        node_oldest: Some(node::oldest(&cache)?),
        tsc: Some(node::typescript(&cache)?),
        bin_dir: Some(programs::bin_dir(&cache)?),
        wasm: None,
    };
    cache.write_tools(&tools)?;
    tools.wasm = Some(wasm::compiler(&cache)?);
    cache.write_tools(&tools)?;
    crates()?;
    say(format_args!("tools are ready: {}", cache.tools_file().display()));
    Ok(tools)
}

/// Fetches the crates of the workspace and of the test guests, so that no later step fails for want of the network.
fn crates() -> Result<()> {
    let targets = wasm::TARGETS.iter().copied().chain(["host-tuple"]);
    let targets: Vec<_> = targets.flat_map(|target| ["--target", target]).collect();
    for manifest in ["Cargo.toml", "tests/guests/Cargo.toml"] {
        let mut fetch = project::cargo();
        fetch.args(["fetch", "--locked", "--manifest-path", manifest]).args(&targets);
        persistently("fetching crates", || quiet(&mut fetch))?;
    }
    Ok(())
}

/// Returns the current pi, and fetches it if it is missing.
pub(crate) fn current_pi() -> Result<Pi> {
    let cache = Cache::open()?;
    let _lock = cache.lock()?;
    node::pi_1_5(&cache)
}

/// Fetches what only a full test run uses.
pub(crate) fn for_full_run() -> Result<()> {
    let cache = Cache::open()?;
    let _lock = cache.lock()?;
    programs::wkg(&cache)
}

/// Returns the compiler for guests alone.
pub(crate) fn wasm() -> Result<Wasm> {
    let cache = Cache::open()?;
    let _lock = cache.lock()?;
    wasm::compiler(&cache)
}
