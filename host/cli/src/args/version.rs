//! Arguments of `version`.

use std::path::PathBuf;

use clap::Args;

pub(crate) const VERSION_HELP: &str = "\
With --verify the file's sum is looked up in SHA256SUMS beside it, and SHA256SUMS.sig must be the signature of a known \
signer over those sums, made for `portcullis-release`. The exit status is 0 if the file is the one that was released, \
otherwise 1.

Signers are lines as ssh-keygen has them: `NAME ssh-ed25519 AAAA...`. Take them from somewhere else than the file.

Examples:
  portcullis version
  portcullis version --verify portcullis-0.1.0-x86_64-linux.tar.gz --signers release_signers";

#[derive(Debug, Args)]
pub(crate) struct Version {
    /// A file of a release, with SHA256SUMS and SHA256SUMS.sig beside it
    #[arg(long, value_name = "FILE")]
    pub(crate) verify: Option<PathBuf>,
    /// The keys that may sign releases; by default `release_signers` among your settings
    #[arg(long, value_name = "FILE", requires = "verify")]
    pub(crate) signers: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
