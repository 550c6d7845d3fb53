//! Arguments of `migrate`.

use std::path::PathBuf;

use clap::Args;

pub(crate) const MIGRATE_HELP: &str = "\
Looks for @oddsjam/pi-sandbox, @sysid/pi-sandbox, pi-sandbox, bosun and sandbox-runtime, and lists the changes that it \
would make. Without --apply no file is changed. Each changed file has a copy beside it, `NAME.before-portcullis`.
At the end it compares, for every path, host and command in the old lists, the answers of the old sandbox and of \
Portcullis to tools and to commands, differences first.

Examples:
  portcullis migrate
  portcullis migrate --apply
  portcullis migrate --undo
  portcullis migrate --from sysid --json";

/// Arguments of `migrate`.
#[derive(Debug, Args)]
pub struct Migrate {
    /// Make the changes
    #[arg(long, conflicts_with = "undo")]
    pub apply: bool,
    /// Take back the changes of `--apply`
    #[arg(long)]
    pub undo: bool,
    /// Only this sandbox: `oddsjam`, `sysid`, `pi-sandbox`, `srt` or `bosun`
    #[arg(long, value_name = "SANDBOX", conflicts_with = "undo")]
    pub from: Option<String>,
    /// Replace settings that are there already, with a copy of each
    #[arg(long, conflicts_with = "undo")]
    pub replace: bool,
    /// The project directory; the current one by default
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
