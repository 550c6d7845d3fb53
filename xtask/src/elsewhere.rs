//! `elsewhere`: links the programs for systems other than Linux.

use anyhow::{Context as _, Result};
use clap::Args;

use crate::dist::compile::{self, Profile, Program};
use crate::dist::macho;
use crate::dist::target::Target;
use crate::project;
use crate::run::{answer, step};

pub(crate) const EXAMPLES: &str = "\
Examples:
  cargo xtask elsewhere         links the host for macOS on ARM64
  cargo xtask elsewhere --all   links it for x86-64 as well, and the compiler of policies for both

Needs rustup, and Zig, which is fetched into the cache. Nothing here can run the programs; their form, their libraries
and their signatures are checked.";

/// Options of `elsewhere`.
#[derive(Debug, Default, Args)]
pub(crate) struct Options {
    /// Links for both processors, and the compiler of policies as well
    #[arg(long)]
    pub(crate) all: bool,
}

pub(crate) fn task(options: &Options) -> Result<()> {
    let build_directory = project::target_directory()?;
    let programs = if options.all { &Program::ALL[..] } else { &[Program::Host][..] };
    let targets = if options.all { &Target::MACOS[..] } else { &[Target::MacosAarch64][..] };
    for &target in targets {
        for &program in programs {
            compile::build(target, Profile::Quick, &build_directory, program)?;
            let name = program.name();
            let file = compile::directory(target, Profile::Quick, &build_directory).join(name);
            step(&format!("checking `{name}` for {}", target.label()), || {
                let bytes = std::fs::read(&file).with_context(|| format!("reading `{}`", file.display()))?;
                macho::check(&bytes, target).with_context(|| format!("checking `{}`", file.display()))
            })?;
            answer(format_args!("`{name}` links for {}", target.triple()));
        }
    }
    Ok(())
}
