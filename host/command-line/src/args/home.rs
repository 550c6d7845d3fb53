//! Arguments of `home`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(crate) const HOME_HELP: &str = "\
Commands keep the caches and settings of their tools in a private home, one for each project, and not in your own \
home directory.

Examples:
  portcullis home show
  portcullis home show --all
  portcullis home clear";

/// The verbs of `home`.
#[derive(Debug, Subcommand)]
pub enum Home {
    /// Show the paths and sizes of private homes
    #[command(after_help = "Examples:\n  portcullis home show\n  portcullis home show --all --json")]
    Show(Which),
    /// Remove private homes; the next command begins with an empty one
    ///
    /// A home that a session is using is not removed, and the exit status is then 1.
    #[command(after_help = "Examples:\n  portcullis home clear\n  portcullis home clear --all")]
    Clear(Which),
}

/// Arguments of `home show` and `home clear`.
#[derive(Debug, Args)]
pub struct Which {
    /// The project directory; the current one by default
    #[arg(long, value_name = "DIR", conflicts_with = "all")]
    pub project: Option<PathBuf>,
    /// All projects
    #[arg(long)]
    pub all: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
