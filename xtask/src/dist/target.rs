//! The systems that a release has programs for, and their names for Rust, the kernel, Node and Debian.

use anyhow::{Result, bail};

/// The programs of a release, each with the crate that it is built from.
pub(super) const PROGRAMS: [(&str, &str); 2] =
    [("portcullis", "portcullis-cli"), (COMPILER, "portcullis-compile")];
/// The program that writes manual pages and completions.
pub(super) const MAIN_PROGRAM: &str = PROGRAMS[0].0;
/// The program that compiles policies, also the shipped ones.
pub(super) const COMPILER: &str = "portcullis-compile";

/// A processor, with its system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    X86_64,
    Aarch64,
    MacosX86_64,
    MacosAarch64,
}

impl Target {
    pub(super) const ALL: [Self; 4] = [Self::X86_64, Self::Aarch64, Self::MacosX86_64, Self::MacosAarch64];
    pub(super) const LINUX: [Self; 2] = [Self::X86_64, Self::Aarch64];
    pub(crate) const MACOS: [Self; 2] = [Self::MacosX86_64, Self::MacosAarch64];

    pub(crate) fn of_this_machine() -> Result<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Ok(Self::X86_64),
            "aarch64" => Ok(Self::Aarch64),
            other => bail!("there are no packages for the processor `{other}`: name one with --target"),
        }
    }

    /// Returns true if this machine runs the programs itself.
    pub(super) fn is_native(self) -> bool {
        !self.is_macos() && self.processor() == std::env::consts::ARCH
    }

    /// Returns true if the system is macOS, whose programs no emulator here runs.
    pub(crate) fn is_macos(self) -> bool {
        Self::MACOS.contains(&self)
    }

    /// Returns the Linux with this processor, whose compiler also writes machine code for macOS.
    pub(super) fn linux(self) -> Self {
        match self {
            Self::X86_64 | Self::MacosX86_64 => Self::X86_64,
            Self::Aarch64 | Self::MacosAarch64 => Self::Aarch64,
        }
    }

    /// Returns Rust's name. musl makes the programs static, so that they run with any C library.
    pub(crate) fn triple(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-musl",
            Self::Aarch64 => "aarch64-unknown-linux-musl",
            Self::MacosX86_64 => "x86_64-apple-darwin",
            Self::MacosAarch64 => "aarch64-apple-darwin",
        }
    }

    /// Returns the kernel's name of the processor, as `uname -m` prints it.
    pub(super) fn processor(self) -> &'static str {
        match self {
            Self::X86_64 | Self::MacosX86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
            Self::MacosAarch64 => "arm64",
        }
    }

    /// Returns Node's name of the processor.
    pub(super) fn npm(self) -> &'static str {
        match self {
            Self::X86_64 | Self::MacosX86_64 => "x64",
            Self::Aarch64 | Self::MacosAarch64 => "arm64",
        }
    }

    /// Returns Node's name of the system.
    pub(super) fn npm_system(self) -> &'static str {
        if self.is_macos() { "darwin" } else { "linux" }
    }

    /// Returns the kernel's name of the system, as `uname -s` prints it.
    pub(super) fn kernel(self) -> &'static str {
        if self.is_macos() { "Darwin" } else { "Linux" }
    }

    /// Returns the system's name for people.
    pub(super) fn system(self) -> &'static str {
        if self.is_macos() { "macOS" } else { "Linux" }
    }

    /// Returns Debian's name of the processor.
    pub(super) fn debian(self) -> &'static str {
        match self {
            Self::X86_64 | Self::MacosX86_64 => "amd64",
            Self::Aarch64 | Self::MacosAarch64 => "arm64",
        }
    }

    /// Returns the end of the names of files: `x86_64-linux`.
    pub(crate) fn label(self) -> String {
        format!("{}-{}", self.processor(), self.system().to_lowercase())
    }
}
