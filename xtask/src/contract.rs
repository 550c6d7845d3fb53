//! The C and Go bindings and the compatibility check of the contract, done by a separate program because its
//! dependencies are not those of the host.

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

/// Paths of the bindings, by the generator's file names.
const BINDINGS: [(&str, &str); 6] = [
    ("policy.h", "host/policy-tools/templates/c/bindings.h"),
    ("policy.c", "host/policy-tools/templates/c/bindings.c"),
    ("portcullis_policy_types-wit_bindings.go", "host/policy-tools/templates/go/bindings/types.go"),
    ("portcullis_policy_lifecycle-wit_bindings.go", "host/policy-tools/templates/go/bindings/lifecycle.go"),
    (
        "portcullis_policy_confinement-wit_bindings.go",
        "host/policy-tools/templates/go/bindings/confinement.go",
    ),
    ("wit_exports-wit_exports.go", "host/policy-tools/templates/go/bindings/exports.go"),
];

/// Checks that the contract is compatible with its released versions. Tests the comparison itself first.
pub(crate) fn check() -> Result<()> {
    show(cargo("test")?.arg("--quiet"))?;
    show(cargo("run")?.args(["--quiet", "--", "wit-check"]).arg(project::root()))
}

/// Returns the paths of the C and Go bindings, each with its expected content.
pub(crate) fn bindings() -> Result<Vec<(&'static str, String)>> {
    let folder = project::target_directory()?.join("contract-bindings");
    fs::create_dir_all(&folder).context("making a folder for the bindings")?;
    for language in ["c-bindings", "go-bindings"] {
        let mut run = cargo("run")?;
        let _said = quiet(run.args(["--quiet", "--", language]).arg(project::root()).arg(&folder))?;
    }
    let text =
        |name: &str| fs::read_to_string(folder.join(name)).with_context(|| format!("reading `{name}`"));
    BINDINGS.iter().map(|(name, path)| Ok((*path, text(name)?))).collect()
}

fn cargo(verb: &str) -> Result<Command> {
    let mut cargo = project::cargo();
    cargo.arg(verb).arg("--manifest-path").arg(project::root().join("xtask/contract/Cargo.toml"));
    // It builds our dependencies with other features, so it has its own target directory.
    cargo.env("CARGO_TARGET_DIR", project::target_directory()?.join("contract"));
    Ok(cargo)
}
