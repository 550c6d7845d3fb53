//! Arguments of `home`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(crate) const HOME_HELP: &str = "\
Tools that commands run keep their caches and settings in a private home, one for each project. Your own home \
directory has none of it.

Examples:
  portcullis home show
  portcullis home show --all
  portcullis home clear";

#[derive(Debug, Subcommand)]
pub(crate) enum Home {
    /// Show where private homes are, and how large
    #[command(after_help = "Examples:\n  portcullis home show\n  portcullis home show --all --json")]
    Show(Which),
    /// Remove private homes; the next command begins with an empty one
    ///
    /// One that a session uses stays, and the exit status is 1 then.
    #[command(after_help = "Examples:\n  portcullis home clear\n  portcullis home clear --all")]
    Clear(Which),
}

#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The project, by default the current directory
    #[arg(long, value_name = "DIR", conflicts_with = "all")]
    pub(crate) project: Option<PathBuf>,
    /// Those of all projects
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
