//! Directories of the clone and of cargo's output.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::run::quiet;

/// Returns the root of the clone.
pub(crate) fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// Variables in which cargo describes the package of the program that it runs, here this one.
const OF_THE_PACKAGE: [&str; 3] = ["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_BIN_"];

/// Returns a `cargo` command that runs in the clone.
pub(crate) fn cargo() -> Command {
    // Cargo sets this variable so that the programs it runs use the same cargo.
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // Build scripts of dependencies run again when one of these changes, so a build from here and one from a shell
    // would each undo the other.
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| is_of_the_package(name)) {
        command.env_remove(name);
    }
    command
}

fn is_of_the_package(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| OF_THE_PACKAGE.iter().any(|begin| name.starts_with(begin)))
}

/// Returns the output of `cargo metadata` for the workspace.
pub(crate) fn metadata() -> Result<serde_json::Value> {
    let text =
        quiet(cargo().args(["metadata", "--format-version", "1"])).context("reading cargo's metadata")?;
    serde_json::from_str(&text).context("reading cargo's metadata")
}

/// Returns cargo's target directory.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let text = quiet(cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text).context("reading cargo's metadata")?;
    let directory = metadata.get("target_directory").and_then(serde_json::Value::as_str);
    Ok(directory.context("cargo's metadata names no target directory")?.into())
}

/// Returns the compiler flag that keeps the path of cargo's registry out of compiled code.
pub(crate) fn no_cargo_home() -> Option<String> {
    let default = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(default)?;
    Some(format!("--remap-path-prefix={}=cargo", home.display()))
}
