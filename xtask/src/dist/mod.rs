//! `dist`: makes everything that a release consists of, the same bytes every time.
//!
//! Reading order: `target` (the systems), `compile` (static programs), `content` (the files that all packages share), `archive`,
//! `npm` and `debian` (the packages), `sums`, `prove` (the packages, tried in clean places).

mod archive;
pub(crate) mod compile;
mod content;
mod debian;
mod licences;
mod linked;
pub(crate) mod macho;
mod npm;
mod pack;
mod prove;
mod sbom;
mod sums;
pub(crate) mod target;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};

use crate::project;
use crate::run::{answer, say, step};
use compile::{Profile, Program};
use content::Content;
use prove::Proof;
use sums::Release;
use target::Target;

pub(crate) const EXAMPLES: &str = "\
Examples:
  cargo xtask dist                              packages for this processor, in target/dist
  cargo xtask dist --target all                 for Linux and macOS, x86-64 and ARM64; runs ARM64 Linux' under qemu
  cargo xtask dist --sign ~/.ssh/release        signs SHA256SUMS with an ssh key
  cargo xtask dist --profile dev --twice        quick; packs twice and compares the bytes
  cargo xtask dist --rebuild                    builds twice, in two directories, and compares the bytes
  cargo xtask dist --prove                      afterwards: installs each package in a clean place
  cargo xtask dist --prove npm                  only the packages of npm
  cargo xtask dist --prove arm64                runs the ARM64 programs under an emulator

Static programs are linked with Zig, which is fetched into the cache; the targets are added with rustup.";

/// Options of `dist`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The processors to build for; by default this machine's
    #[arg(long, value_enum, value_name = "WHICH")]
    target: Option<Targets>,
    /// The directory for the packages
    #[arg(long, value_name = "DIR", default_value = "target/dist")]
    out: PathBuf,
    /// The build profile; `dev` is quick, and only for testing this task
    #[arg(long, value_enum, default_value = "release")]
    profile: Profile,
    /// Signs SHA256SUMS with this ssh key, by `ssh-keygen`
    #[arg(long, value_name = "KEY")]
    sign: Option<PathBuf>,
    /// Packs the programs that an earlier run built
    #[arg(long, conflicts_with = "rebuild")]
    no_build: bool,
    /// Packs twice, and fails if the bytes differ
    #[arg(long)]
    twice: bool,
    /// Builds twice, in different directories, and fails if the bytes differ
    #[arg(long)]
    rebuild: bool,
    /// Builds nothing: installs the packages of an earlier run in clean systems and uses them; needs root
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, default_missing_value = "all")]
    #[arg(conflicts_with_all = ["target", "profile", "sign", "no_build", "twice", "rebuild"])]
    prove: Option<Proof>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Targets {
    #[value(name = "x86_64")]
    X86_64,
    Aarch64,
    /// macOS, for both processors
    Macos,
    All,
}

pub(crate) fn task(options: &Options) -> Result<()> {
    let out = project::root().join(&options.out);
    if let Some(which) = options.prove {
        return prove::packages(which, &out);
    }
    let targets = targets(options.target)?;
    let build_directory = project::target_directory()?;
    if !options.no_build {
        build(&targets, options.profile, &build_directory)?;
    }
    let release = step("packing", || pack_all(&targets, options.profile, &build_directory))?;
    if options.twice {
        let again = step("packing again", || pack_all(&targets, options.profile, &build_directory))?;
        same(&release, &again)?;
    }
    if options.rebuild {
        let other = build_directory.join("dist-rebuild");
        build(&targets, options.profile, &other)?;
        same(&release, &step("packing again", || pack_all(&targets, options.profile, &other))?)?;
    }
    write(&release, &out)?;
    if let Some(key) = &options.sign {
        step("signing the sums", || sums::sign(&out, key))?;
    }
    for (name, bytes) in &release {
        answer(format_args!("{:>10}  {}", bytes.len(), out.join(name).display()));
    }
    Ok(())
}

fn targets(wanted: Option<Targets>) -> Result<Vec<Target>> {
    Ok(match wanted {
        None => vec![Target::of_this_machine()?],
        Some(Targets::X86_64) => vec![Target::X86_64],
        Some(Targets::Aarch64) => vec![Target::Aarch64],
        Some(Targets::Macos) => Target::MACOS.to_vec(),
        Some(Targets::All) => Target::ALL.to_vec(),
    })
}

fn build(targets: &[Target], profile: Profile, build_directory: &Path) -> Result<()> {
    // Those for Linux come first: the host of this machine writes manual pages and completions for macOS, and the
    // compiler of each processor machine code.
    let native = Target::of_this_machine()?;
    let macos = || targets.iter().filter(|other| other.is_macos());
    for target in Target::ALL {
        if targets.contains(&target) || target == native && macos().next().is_some() {
            compile::programs(target, profile, build_directory)?;
        } else if macos().any(|other| other.linux() == target) {
            compile::build(target, profile.of_compilers(), build_directory, Program::Compiler)?;
        }
    }
    Ok(())
}

/// Returns all packages and their sums, from programs that are built.
fn pack_all(targets: &[Target], profile: Profile, build_directory: &Path) -> Result<Release> {
    let mut release = Release::new();
    for &target in targets {
        let content = Content::collect(target, profile, build_directory)?;
        release.insert(archive::name(target), archive::make(target, &content)?);
        if !target.is_macos() {
            release.insert(debian::name(target), debian::make(target, &content)?);
        }
        release.insert(npm::program_name(target), npm::program(target, &content)?);
        release.insert(format!("portcullis-{}.cdx.json", target.label()), content.sbom.clone());
    }
    release.insert(npm::extension_name(), npm::extension()?);
    release.insert(sums::SUMS.to_owned(), sums::of(&release).into_bytes());
    Ok(release)
}

/// Writes the files into the directory, and removes those of an earlier release.
fn write(release: &Release, out: &Path) -> Result<()> {
    if out.exists() {
        fs::remove_dir_all(out).with_context(|| format!("removing `{}`", out.display()))?;
    }
    fs::create_dir_all(out).with_context(|| format!("creating `{}`", out.display()))?;
    for (name, bytes) in release {
        fs::write(out.join(name), bytes).with_context(|| format!("writing `{name}`"))?;
    }
    Ok(())
}

fn same(one: &Release, other: &Release) -> Result<()> {
    let differing: Vec<&str> = one
        .iter()
        .filter(|(name, bytes)| other.get(*name) != Some(bytes))
        .map(|(name, _)| name.as_str())
        .collect();
    if !differing.is_empty() {
        bail!("these files have other bytes the second time: {}", differing.join(", "));
    }
    say("the second time gave the same bytes");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_with_other_bytes_is_told() {
        let release = |text: &str| Release::from([("a".to_owned(), text.into()), ("b".to_owned(), vec![])]);
        same(&release("x"), &release("x")).unwrap();
        let error = same(&release("x"), &release("y")).unwrap_err().to_string();
        assert!(error.ends_with("second time: a"), "{error}");
    }
}
