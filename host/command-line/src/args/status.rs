//! Arguments of `status`.

use clap::Args;

pub(crate) const STATUS_HELP: &str = "\
Lists the sessions of your user, of pi and of `portcullis run`. A pi that was started with --no-sandbox has no \
session. The exit status is 0, even if there is no session.

Examples:
  portcullis status
  portcullis status --json";

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct Status {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
