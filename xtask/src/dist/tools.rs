//! Tools that only a release needs, fetched into the cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::target::Target;
use crate::cache::Cache;
use crate::run::{find_program, quiet};
use crate::setup;

/// The C compiler and linker, and the command of cargo's that uses it; change the directory's name with the versions.
const ZIG: &str = "zig-0.17.1";
const FROM_PYPI: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.0"];
/// The registry of npm packages for the proof.
const VERDACCIO: &str = "6.2.1";
/// It wants a version by a name that not all registries have.
const BESIDE_VERDACCIO: &str = r#"{ "private": true, "overrides": { "node-fetch": "2.7.0" } }"#;
/// The base system for the proof; change its name with the packages.
const BASE: &str = "debian-base-1";
const SUITE: &str = "bookworm";
const BASE_PACKAGES: &str = "--include=libstdc++6,mount";

/// Zig and `cargo-zigbuild`.
#[derive(Debug)]
pub(super) struct Zig {
    pub(super) program: PathBuf,
    pub(super) cargo_zigbuild: PathBuf,
}

pub(super) fn zig() -> Result<Zig> {
    let cache = Cache::open()?;
    let _lock = cache.lock()?;
    let root = cache.directory(ZIG, |root| {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-compile", "--target"]).arg(root.join("lib"));
        quiet(pip.args(FROM_PYPI)).map(drop).context("asking PyPI, with Python's pip")
    })?;
    let lib = root.join("lib");
    Ok(Zig { program: lib.join("ziglang/zig"), cargo_zigbuild: lib.join("bin/cargo-zigbuild") })
}

/// Returns the command that runs a program of this target: under qemu, if the processor is another one.
pub(super) fn runner(target: Target, program: &Path) -> Result<Command> {
    if target.is_native() {
        return Ok(Command::new(program));
    }
    let name = format!("qemu-{}-static", target.processor());
    let qemu = match find_program(&name) {
        Some(found) => found,
        None => setup::debian_program(&Cache::open()?, "qemu-user-static", &format!("usr/bin/{name}"))
            .with_context(|| format!("finding `{name}`, which runs programs for {}", target.processor()))?,
    };
    let mut command = Command::new(qemu);
    command.arg(program);
    Ok(command)
}

/// The release of Debian whose emulator knows `openat2`, which every file operation needs: qemu 10.
const EMULATOR_SUITE: &str = "trixie";
const EMULATOR: &str = "qemu-user-10";

/// Returns an emulator that runs the whole program, and not only the compiler.
pub(super) fn whole_emulator(target: Target) -> Result<PathBuf> {
    let cache = Cache::open()?;
    let mmdebstrap = setup::debian_program(&cache, "mmdebstrap", "usr/bin/mmdebstrap")?;
    let _lock = cache.lock()?;
    let inside = format!("usr/bin/qemu-{}", target.processor());
    let root = cache.directory(&format!("{EMULATOR}-{}", target.processor()), |root| {
        let archive = root.join("emulator.tar");
        let mut fetch = Command::new("perl");
        fetch
            .arg(&mmdebstrap)
            .args(["--variant=extract", "--include=qemu-user", EMULATOR_SUITE])
            .arg(&archive);
        quiet(&mut fetch).context("asking Debian's servers for an emulator")?;
        let mut unpack = Command::new("tar");
        unpack.arg("-xf").arg(&archive).arg("-C").arg(root).arg(format!("./{inside}"));
        quiet(&mut unpack).context("unpacking the emulator")?;
        std::fs::remove_file(&archive).context("removing the emulator's packages")
    })?;
    Ok(root.join(inside))
}

/// Returns an archive of a base system of Debian, made of its packages.
pub(super) fn debian_base() -> Result<PathBuf> {
    let cache = Cache::open()?;
    let mmdebstrap = setup::debian_program(&cache, "mmdebstrap", "usr/bin/mmdebstrap")?;
    let _lock = cache.lock()?;
    let root = cache.directory(BASE, |root| {
        let mut command = Command::new("perl");
        command
            .arg(&mmdebstrap)
            .args(["--variant=essential", BASE_PACKAGES, SUITE])
            .arg(root.join("base.tar"));
        quiet(&mut command).map(drop).context("asking Debian's servers for a base system")
    })?;
    Ok(root.join("base.tar"))
}

/// Returns the program of the registry.
pub(super) fn verdaccio() -> Result<PathBuf> {
    let (name, package) = (format!("verdaccio-{VERDACCIO}"), format!("verdaccio@{VERDACCIO}"));
    let root = setup::npm_package(&Cache::open()?, &name, BESIDE_VERDACCIO, &package)?;
    Ok(root.join("node_modules/verdaccio/bin/verdaccio"))
}
