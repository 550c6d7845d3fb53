//! The systems that a release has programs for, and their names for Rust, the kernel, Node and Debian.

use anyhow::{Result, bail};

/// The programs of a release, each with the crate that it is built from.
pub(super) const PROGRAMS: [(&str, &str); 2] =
    [("portcullis", "portcullis-cli"), (COMPILER, "portcullis-compile")];
/// The program that writes manual pages and completions.
pub(super) const MAIN_PROGRAM: &str = PROGRAMS[0].0;
/// The program that compiles policies, also the shipped ones.
pub(super) const COMPILER: &str = "portcullis-compile";

/// A processor; the system is Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    X86_64,
    Aarch64,
}

impl Target {
    pub(super) const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    pub(super) fn of_this_machine() -> Result<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Ok(Self::X86_64),
            "aarch64" => Ok(Self::Aarch64),
            other => bail!("there are no packages for the processor `{other}`: name one with --target"),
        }
    }

    /// Returns true if this machine runs the programs itself.
    pub(super) fn is_native(self) -> bool {
        self.processor() == std::env::consts::ARCH
    }

    /// Returns Rust's name. musl makes the programs static, so that they run with any C library.
    pub(super) fn triple(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-musl",
            Self::Aarch64 => "aarch64-unknown-linux-musl",
        }
    }

    /// Returns the kernel's name of the processor, as `uname -m` prints it.
    pub(super) fn processor(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// Returns Node's name of the processor.
    pub(super) fn npm(self) -> &'static str {
        match self {
            Self::X86_64 => "x64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Returns Debian's name of the processor.
    pub(super) fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Returns the end of the names of files: `x86_64-linux`.
    pub(super) fn label(self) -> String {
        format!("{}-linux", self.processor())
    }
}
