//! `build`, `gen` and `demo`: short tasks that use the results of the others.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::run::{quiet, say, show, step};
use crate::{command_tables, contract, guests, project, setup};

pub(crate) const BUILD_EXAMPLES: &str = "\
Examples:
  cargo xtask build              target/debug/portcullis
  cargo xtask build --release    target/release/portcullis

A wasm compiler is only needed when the sources of the default policy changed.";

pub(crate) const GEN_EXAMPLES: &str = "\
Examples:
  cargo xtask gen            rewrite pi/src/protocol.ts from host/rpc, the contract in C and Go from wit, and the tables of
                             commands from guest/sdk/tables
  cargo xtask gen --check    only say whether they are up to date";

pub(crate) const DEMO_EXAMPLES: &str = "\
Examples:
  cargo xtask demo    real pi and a scripted model: something allowed, asked, denied, confined";

/// The programs of a release: the host, and the compiler of policies.
const PROGRAMS: [&str; 2] = ["portcullis", "portcullis-compile"];
/// The packages of both.
const BOTH: [&str; 4] = ["--package", "portcullis-compile", "--package", "portcullis-cli"];
const PROTOCOL: &str = "pi/src/protocol.ts";

/// Options of `build`.
#[derive(Debug, Args)]
pub(crate) struct BuildOptions {
    /// Optimises, as for a release
    #[arg(long)]
    release: bool,
}

/// Options of `gen`.
#[derive(Debug, Args)]
pub(crate) struct GenOptions {
    /// Writes nothing; fails if a file is out of date
    #[arg(long)]
    pub(crate) check: bool,
}

pub(crate) fn build(options: &BuildOptions) -> Result<()> {
    let binary = host(if options.release { Profile::Release } else { Profile::Dev })?;
    say(format_args!("built {}", binary.display()));
    Ok(())
}

/// A cargo profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// For working on the project and for its tests.
    Dev,
    /// For users.
    Release,
}

impl Profile {
    /// Returns the name that cargo knows it by.
    fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Release => "release",
        }
    }

    /// Returns the name of its directory in the target directory.
    fn directory(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Release => self.name(),
        }
    }
}

/// Builds the host program and returns its path.
pub(crate) fn host(profile: Profile) -> Result<PathBuf> {
    guests::shipped_policies()?;
    let cargo = |words: &[&str]| {
        let mut cargo = project::cargo();
        cargo.args(["build", "--profile", profile.name()]).args(words);
        cargo
    };
    // The host of a release has no compiler in it. Otherwise both programs share it, so that it is built once.
    let (compiler, host): (&[&str], &[&str]) = if profile == Profile::Release {
        (&["--package", "portcullis-compile"], &["--package", "portcullis-cli", "--no-default-features"])
    } else {
        (&[BOTH.as_slice(), &["--bin", "portcullis-compile"]].concat(), &BOTH)
    };
    step("building the compiler of policies", || show(&mut cargo(compiler)))?;
    step("compiling the shipped policies", || machine_code(profile))?;
    step("building the host", || show(&mut cargo(host)))?;
    let directory = project::root().join("target").join(profile.directory());
    for program in PROGRAMS {
        let built = project::target_directory()?.join(profile.directory()).join(program);
        publish(&built, &directory.join(program))?;
    }
    Ok(directory.join("portcullis"))
}

/// Copies a program to the path that the README names, if cargo's target directory is another.
fn publish(built: &Path, binary: &Path) -> Result<()> {
    if built == binary {
        return Ok(());
    }
    fs::create_dir_all(binary.with_file_name("")).context("creating the directory for the binary")?;
    let partial = binary.with_extension("partial");
    fs::copy(built, &partial).with_context(|| format!("copying `{}`", built.display()))?;
    fs::rename(&partial, binary).with_context(|| format!("writing `{}`", binary.display()))
}

/// Compiles the shipped policies into the directory from which the build of the host embeds their machine code.
///
/// The compiler must be built. If the machine code has not changed, cargo does not build the host again.
pub(crate) fn machine_code(profile: Profile) -> Result<()> {
    let directory = project::target_directory()?.join(profile.directory());
    let mut compile = Command::new(directory.join("portcullis-compile"));
    compile.arg("precompile").arg(directory.join("precompiled")).args(guests::precompiled_components());
    quiet(&mut compile).context("compiling the shipped policies")?;
    Ok(())
}

pub(crate) fn generate(options: &GenOptions) -> Result<()> {
    let mut cargo = project::cargo();
    cargo.args(["run", "--quiet", "--package", "portcullis-rpc", "--example", "typescript"]);
    let protocol = quiet(&mut cargo).context("printing the wire types as TypeScript")?;
    put(options, PROTOCOL, &protocol)?;
    command_tables::files()?.iter().try_for_each(|(file, text)| put(options, file, text))?;
    contract::bindings()?.iter().try_for_each(|(file, text)| put(options, file, text))
}

fn put(options: &GenOptions, file: &str, wanted: &str) -> Result<()> {
    let path = project::root().join(file);
    if path.exists() && fs::read_to_string(&path).with_context(|| format!("reading `{file}`"))? == wanted {
        return Ok(());
    }
    if options.check {
        bail!("`{file}` is out of date: run `cargo xtask gen` and commit it");
    }
    fs::write(&path, wanted).with_context(|| format!("writing `{file}`"))?;
    say(format_args!("wrote {file}"));
    Ok(())
}

pub(crate) fn demo() -> Result<()> {
    let pi = setup::current_pi()?;
    let binary = host(Profile::Dev)?;
    guests::test_guest("deny-one")?;
    let mut node = Command::new(&pi.node);
    node.arg(project::root().join("tests/pi/demo.mjs")).arg(&pi.cli).current_dir(project::root());
    show(node.env("PORTCULLIS_BIN", binary)).context("running the demonstration")
}
