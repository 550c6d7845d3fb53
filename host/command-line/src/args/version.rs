//! Arguments of `version`.

use std::path::PathBuf;

use clap::Args;

pub(crate) const VERSION_HELP: &str = "\
With --verify, it looks up the file's checksum in SHA256SUMS beside it. SHA256SUMS.sig must be a known signer's \
signature over these checksums, in the namespace `portcullis-release`. The exit status is 0 if the file is the one \
that was released, otherwise 1.

Signers are lines in the format of ssh-keygen: `NAME ssh-ed25519 AAAA...`. Get them from another source than the file.

Examples:
  portcullis version
  portcullis version --verify portcullis-0.1.0-x86_64-linux.tar.gz --signers release_signers";

/// Arguments of `version`.
#[derive(Debug, Args)]
pub struct Version {
    /// A file of a release, with SHA256SUMS and SHA256SUMS.sig beside it
    #[arg(long, value_name = "FILE")]
    pub verify: Option<PathBuf>,
    /// The keys that may sign releases; by default `release_signers` among your settings
    #[arg(long, value_name = "FILE", requires = "verify")]
    pub signers: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
