//! Builds the static programs, without traces of this machine.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use clap::ValueEnum;

use super::target::{COMPILER, Target};
use super::tools::{self, Zig};
use crate::run::{quiet, show, step};
use crate::{guests, project};

/// How programs are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Profile {
    Release,
    Dev,
}

impl Profile {
    fn directory(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Dev => "debug",
        }
    }
}

/// Returns the directory of the built programs.
pub(super) fn directory(target: Target, profile: Profile, build_directory: &Path) -> PathBuf {
    build_directory.join(target.triple()).join(profile.directory())
}

/// Builds the programs: first the compiler, whose machine code of the shipped policies is embedded in the host.
pub(super) fn programs(target: Target, profile: Profile, build_directory: &Path) -> Result<()> {
    guests::shipped_policies()?;
    let zig = tools::zig()?;
    step(&format!("adding {} with rustup", target.triple()), || {
        quiet(Command::new("rustup").args(["target", "add", target.triple()])).map(drop)
    })?;
    let build = |arguments: &[&str]| show(cargo(&zig, target, profile, build_directory)?.args(arguments));
    let what = format!("for {}", target.label());
    step(&format!("building the compiler of policies {what}"), || build(&["--package", COMPILER]))?;
    let built = directory(target, profile, build_directory);
    step(&format!("compiling the shipped policies {what}"), || {
        let mut compile = tools::runner(target, &built.join(COMPILER))?;
        compile.arg("precompile").arg(built.join("precompiled")).args(guests::shipped_components());
        quiet(&mut compile).map(drop)
    })?;
    step(&format!("building the host {what}"), || {
        build(&["--package", "portcullis-cli", "--no-default-features"])
    })
}

fn cargo(zig: &Zig, target: Target, profile: Profile, build_directory: &Path) -> Result<Command> {
    let caches = build_directory.join("zig");
    fs::create_dir_all(&caches).with_context(|| format!("creating `{}`", caches.display()))?;
    let mut cargo = Command::new(&zig.cargo_zigbuild);
    cargo.current_dir(project::root()).args(["zigbuild", "--locked", "--target", target.triple()]);
    if profile == Profile::Release {
        cargo.arg("--release");
    }
    cargo.env("CARGO_TARGET_DIR", build_directory).env("CARGO_ZIGBUILD_ZIG_PATH", &zig.program);
    cargo.env("CARGO_ZIGBUILD_CACHE_DIR", &caches).env("ZIG_GLOBAL_CACHE_DIR", caches.join("global"));
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(build_directory)).env("CARGO_INCREMENTAL", "0");
    cargo.env_remove("RUSTFLAGS");
    Ok(cargo)
}

/// Returns the compiler's flags that keep the paths of this machine out of programs.
fn flags(build_directory: &Path) -> OsString {
    let root = format!("--remap-path-prefix={}=portcullis", project::root().display());
    // The last flag that fits counts, and the build directory may be in the clone.
    let built = format!("--remap-path-prefix={}=target", build_directory.display());
    let flags: Vec<String> = [root, built].into_iter().chain(project::no_cargo_home()).collect();
    flags.join("\u{1f}").into()
}
