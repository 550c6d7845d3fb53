//! `elsewhere`: checks that the workspace compiles for a system other than Linux.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::project;
use crate::run::{answer, quiet, show, step};

pub(crate) const EXAMPLES: &str = "\
Examples:
  cargo xtask elsewhere         check the product's crates for macOS; needs rustup and its servers

Nothing is linked, so no foreign linker or system library is needed.";

const TARGET: &str = "x86_64-apple-darwin";
/// Crates that need a Linux kernel.
const LINUX_ONLY: [&str; 2] = ["portcullis-it", "portcullis-benches"];
/// A C compiler that does nothing. wasmtime compiles one C file, and `cargo check` does not link its object.
const NO_COMPILER: &str = "#!/bin/sh\n";

pub(crate) fn task() -> Result<()> {
    step(&format!("adding {TARGET} with rustup"), || {
        quiet(Command::new("rustup").args(["target", "add", TARGET])).map(drop)
    })?;
    let compiler = no_compiler()?;
    let mut cargo = project::cargo();
    cargo.args(["check", "--workspace", "--quiet", "--target", TARGET]);
    for name in LINUX_ONLY {
        cargo.args(["--exclude", name]);
    }
    let variable = TARGET.replace('-', "_");
    cargo
        .env(format!("CC_{variable}"), &compiler)
        .env(format!("AR_{variable}"), &compiler)
        .env("SDKROOT", "/");
    show(&mut cargo)?;
    answer(format_args!("the workspace compiles for {TARGET}"));
    Ok(())
}

/// Writes a C compiler and archiver that does nothing.
fn no_compiler() -> Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let script = project::target_directory()?.join("no-compiler");
    fs::write(&script, NO_COMPILER).with_context(|| format!("writing `{}`", script.display()))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).context("making it executable")?;
    Ok(script)
}
