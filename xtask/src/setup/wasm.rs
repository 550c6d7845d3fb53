//! The compiler for guests: the wasm targets of rustup's toolchain, or else Debian's rustc with a standard
//! library that is built here once.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::debian;
use super::link::link;
use crate::cache::{Cache, Wasm};
use crate::project;
use crate::run::{find_program, persistently, quiet, say, step};

/// The target for components with WASI imports, and the one for plain modules that become components without
/// imports.
pub(super) const TARGETS: [&str; 2] = ["wasm32-wasip2", "wasm32-unknown-unknown"];
/// Name of the directory. Change it with the recipe below, so that an older result is not reused.
const DEBIAN_DIRECTORY: &str = "debian-rust-3";
const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "rust-web-src", "wasi-libc"];

/// Returns a compiler with both targets. Fetches or builds them if necessary.
pub(super) fn compiler(cache: &Cache) -> Result<Wasm> {
    if TARGETS.iter().all(|target| has_target(Path::new("rustc"), target)) {
        return Ok(Wasm::default());
    }
    let earlier = cache.path(DEBIAN_DIRECTORY).join("rustc");
    if TARGETS.iter().all(|target| has_target(&earlier, target)) {
        return debian_compiler(cache);
    }
    let added = find_program("rustup").context("`rustup` is not in PATH").and_then(|_| {
        let what = "adding the wasm targets with rustup";
        persistently(what, || step(what, add_targets))
    });
    match added {
        Ok(()) => return Ok(Wasm::default()),
        Err(error) => say(format_args!("rustup cannot add them ({error:#}); taking Debian's rustc")),
    }
    debian_compiler(cache).context(
        "making a compiler for wasm guests; `rustup target add wasm32-wasip2 wasm32-unknown-unknown` serves as well",
    )
}

fn add_targets() -> Result<()> {
    quiet(Command::new("rustup").args(["target", "add"]).args(TARGETS))?;
    match TARGETS.iter().find(|target| !has_target(Path::new("rustc"), target)) {
        Some(target) => bail!("`rustc` still has no `{target}`"),
        None => Ok(()),
    }
}

/// Returns true if a compiler has the standard library of a target.
pub(crate) fn has_target(rustc: &Path, target: &str) -> bool {
    quiet(Command::new(rustc).args(["--print", "target-libdir", "--target", target]))
        .is_ok_and(|directory| Path::new(directory.trim()).is_dir())
}

/// Unpacks Debian's rustc into the cache and adds the targets.
fn debian_compiler(cache: &Cache) -> Result<Wasm> {
    // These packages receive the built standard library or contain its sources. The system's installed copies
    // cannot be used for that.
    let always = |name: &str| name.contains("rust") || name == "wasi-libc";
    let root = debian::unpack(cache, DEBIAN_DIRECTORY, &DEBIAN_PACKAGES, always)?;
    let script = root.join("rustc");
    let rustc = root.join("usr/bin/rustc").display().to_string();
    debian::write_script(&script, &format!("{}exec '{rustc}' \"$@\"\n", debian::library_path(&root)))?;
    link_linkers(&root)?;
    for target in TARGETS {
        if !has_target(&script, target) {
            step(&format!("building the standard library for {target}"), || {
                standard_library(&root, &script, target)
            })?;
        }
    }
    Ok(Wasm { flags: vec![no_machine_paths(&root)], rustc: Some(script) })
}

/// Returns the flag that gives the standard library's files their upstream names in messages.
fn no_machine_paths(root: &Path) -> String {
    format!("--remap-path-prefix={}=/rustc", root.join("usr/lib/rustlib/src/rust").display())
}

/// Links to the linkers in rustup's toolchain, which Debian's package lacks.
fn link_linkers(root: &Path) -> Result<()> {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let libdir = quiet(Command::new("rustc").args(["--print", "target-libdir", "--target", &host]))?;
    let linkers = Path::new(libdir.trim()).with_file_name("bin");
    if !linkers.join("wasm-component-ld").exists() {
        bail!(
            "`{}` holds no `wasm-component-ld`: use a Rust toolchain installed by rustup",
            linkers.display()
        );
    }
    link(&linkers, &root.join("usr/lib/rustlib").join(host).join("bin"))
}

/// Builds std with cargo and copies the libraries to the directory where this rustc finds them.
fn standard_library(root: &Path, rustc: &Path, target: &str) -> Result<()> {
    let work = root.join("std");
    fs::create_dir_all(&work).context("creating the build directory")?;
    fs::write(work.join("Cargo.toml"), EMPTY_CRATE).context("writing the crate that std is built for")?;
    fs::write(work.join("lib.rs"), "#![no_std]\n").context("writing the crate that std is built for")?;
    let wasi = root.join("usr/lib/wasm32-wasi");
    // Link-time optimisation needs code with embedded bitcode.
    let mut flags = format!("-Cembed-bitcode=yes {}", no_machine_paths(root));
    if let Some(flag) = project::no_cargo_home() {
        flags += &format!(" {flag}");
    }
    if target.contains("wasi") {
        flags += &format!(" -L {}", wasi.display());
    }
    let mut cargo = Command::new("cargo");
    cargo.args([
        "build",
        "--release",
        "--target",
        target,
        "-Zbuild-std=std,panic_abort",
        "--target-dir",
        "target",
    ]);
    cargo
        .current_dir(&work)
        .env("RUSTC", rustc)
        .env("RUSTFLAGS", flags)
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    // Debian's stable compiler accepts the unstable flag above only with this variable.
    quiet(cargo.env("RUSTC_BOOTSTRAP", "1"))?;
    let libraries = root.join("usr/lib/rustlib").join(target).join("lib");
    let partial = libraries.with_file_name("lib.partial");
    let self_contained = partial.join("self-contained");
    fs::create_dir_all(&self_contained).context("creating the library directory")?;
    copy(&work.join("target").join(target).join("release/deps"), &partial, &["rlib"])?;
    if target.contains("wasi") {
        copy(&wasi, &self_contained, &["o", "a"])?;
    }
    fs::rename(&partial, &libraries).context("putting the libraries in place")?;
    fs::remove_dir_all(&work).context("removing what the build left")
}

const EMPTY_CRATE: &str = r#"[package]
name = "only-std"
version = "0.0.0"
edition = "2024"

[lib]
path = "lib.rs"

[profile.release]
opt-level = "s"
panic = "abort"

[workspace]
"#;

fn copy(from: &Path, to: &Path, extensions: &[&str]) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("listing `{}`", from.display()))? {
        let path = entry?.path();
        let wanted = path.extension().is_some_and(|found| extensions.iter().any(|&wanted| found == wanted));
        let Some(name) = path.file_name().filter(|_| wanted) else { continue };
        if !name.to_string_lossy().starts_with("libonly_std") {
            fs::copy(&path, to.join(name)).with_context(|| format!("copying `{}`", path.display()))?;
        }
    }
    Ok(())
}
