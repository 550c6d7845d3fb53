//! Builds the static programs, without traces of this machine.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use clap::ValueEnum;

use super::target::{COMPILER, MAIN_PROGRAM, Target};
use super::tools::{self, Zig};
use crate::run::{quiet, show, step};
use crate::{guests, project, setup};

/// How programs are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    Release,
    Dev,
    /// Not optimised at all, only to see that it links
    Quick,
}

impl Profile {
    fn directory(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Dev => "debug",
            Self::Quick => "quick",
        }
    }

    /// Returns the profile of a compiler that is to run here: without optimisation it takes hours under an emulator.
    pub(super) fn of_compilers(self) -> Self {
        match self {
            Self::Quick => Self::Dev,
            Self::Release | Self::Dev => self,
        }
    }
}

/// Returns the directory of the built programs.
pub(crate) fn directory(target: Target, profile: Profile, build_directory: &Path) -> PathBuf {
    build_directory.join(target.triple()).join(profile.directory())
}

/// Builds the programs: first the compiler, whose machine code of the shipped policies is embedded in the host.
///
/// For macOS, the compiler of the Linux with this processor must be built.
pub(super) fn programs(target: Target, profile: Profile, build_directory: &Path) -> Result<()> {
    guests::shipped_policies()?;
    let what = format!("for {}", target.label());
    build(target, profile, build_directory, Program::Compiler)?;
    let compiler = target.linux();
    if compiler == target && profile != profile.of_compilers() {
        build(compiler, profile.of_compilers(), build_directory, Program::Compiler)?;
    }
    step(&format!("compiling the shipped policies {what}"), || {
        let built = directory(target, profile, build_directory);
        let program = directory(compiler, profile.of_compilers(), build_directory).join(COMPILER);
        let mut compile = tools::runner(compiler, &program)?;
        compile.arg("precompile");
        if target.is_macos() {
            compile.args(["--target", target.triple()]);
        }
        compile.arg(built.join("precompiled")).args(guests::precompiled_components());
        quiet(&mut compile).map(drop)
    })?;
    build(target, profile, build_directory, Program::Host)
}

/// A program of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Compiler,
    Host,
}

impl Program {
    pub(crate) const ALL: [Self; 2] = [Self::Compiler, Self::Host];

    /// Returns the name of its file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Compiler => COMPILER,
            Self::Host => MAIN_PROGRAM,
        }
    }
}

/// Builds one program.
pub(crate) fn build(
    target: Target,
    profile: Profile,
    build_directory: &Path,
    program: Program,
) -> Result<()> {
    let zig = tools::zig()?;
    if !setup::has_target(Path::new("rustc"), target.triple()) {
        step(&format!("adding {} with rustup", target.triple()), || {
            quiet(Command::new("rustup").args(["target", "add", target.triple()])).map(drop)
        })?;
    }
    let (what, arguments): (_, &[&str]) = match program {
        Program::Compiler => ("the compiler of policies", &["--package", COMPILER]),
        Program::Host => ("the host", &["--package", "portcullis-cli", "--no-default-features"]),
    };
    step(&format!("building {what} for {}", target.label()), || {
        show(cargo(&zig, target, profile, build_directory)?.args(arguments))
    })
}

fn cargo(zig: &Zig, target: Target, profile: Profile, build_directory: &Path) -> Result<Command> {
    let caches = build_directory.join("zig");
    fs::create_dir_all(&caches).with_context(|| format!("creating `{}`", caches.display()))?;
    let mut cargo = Command::new(&zig.cargo_zigbuild);
    cargo.current_dir(project::root()).args(["zigbuild", "--locked", "--target", target.triple()]);
    match profile {
        Profile::Release => drop(cargo.arg("--release")),
        Profile::Dev => {}
        Profile::Quick => drop(cargo.args(["--profile", "quick"])),
    }
    cargo.env("CARGO_TARGET_DIR", build_directory).env("CARGO_ZIGBUILD_ZIG_PATH", &zig.program);
    cargo.env("CARGO_ZIGBUILD_CACHE_DIR", &caches).env("ZIG_GLOBAL_CACHE_DIR", caches.join("global"));
    cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS").env("CARGO_INCREMENTAL", "0");
    // A program that is only linked may contain paths; without them in its flags, another clone uses the same crates.
    if profile != Profile::Quick {
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(build_directory));
    }
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
