//! The contract in C, and the promise of its track: work of a program whose needs are not those of the host.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::project;
use crate::run::{quiet, show};

pub(crate) const EXAMPLES: &str = "\
Examples:
  cargo xtask wit-check    compare wit/ with the released contracts of its track in tests/golden

Additions are new interfaces, new worlds, and new functions in interfaces that the host provides.
A change that is refused needs a new track: a new version, a frozen folder, and an adapter in policy-runtime.";

/// Where the bindings lie, by the names that the generator gives them.
const BINDINGS: [(&str, &str); 2] =
    [("policy.h", "host/cli/templates/c/bindings.h"), ("policy.c", "host/cli/templates/c/bindings.c")];

/// Fails unless the contract keeps what its released versions promise; the comparison itself is tried first.
pub(crate) fn check() -> Result<()> {
    show(cargo("test")?.arg("--quiet"))?;
    show(cargo("run")?.args(["--quiet", "--", "wit-check"]).arg(project::root()))
}

/// Returns the files of the contract in C, each with the text it should have.
pub(crate) fn bindings() -> Result<Vec<(&'static str, String)>> {
    let folder = project::target_directory()?.join("contract-in-c");
    fs::create_dir_all(&folder).context("making a folder for the contract in C")?;
    let mut run = cargo("run")?;
    let _said = quiet(run.args(["--quiet", "--", "c-bindings"]).arg(project::root()).arg(&folder))?;
    let text =
        |name: &str| fs::read_to_string(folder.join(name)).with_context(|| format!("reading `{name}`"));
    BINDINGS.iter().map(|(name, path)| Ok((*path, text(name)?))).collect()
}

fn cargo(verb: &str) -> Result<Command> {
    let mut cargo = project::cargo();
    cargo.arg(verb).arg("--manifest-path").arg(project::root().join("xtask/contract/Cargo.toml"));
    // Its dependencies are other builds of ours.
    cargo.env("CARGO_TARGET_DIR", project::target_directory()?.join("contract"));
    Ok(cargo)
}
