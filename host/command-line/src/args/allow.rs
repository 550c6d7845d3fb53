//! Arguments of `allow`, `deny` and `presets`.

use clap::{Args, Subcommand};

pub(crate) const ALLOW_HELP: &str = "\
Saves a grant in your settings, like an answer to a question: `portcullis grants list` shows it, and `grants revoke` \
takes it back. It applies at once, also in running sessions. A denial in the settings overrides it.
The exit status is 0 if it applies, 1 if nothing was written, 2 for wrong usage.

Examples:
  portcullis allow npm                        a preset, in this project
  portcullis allow registries --all           all package registries, in every project
  portcullis allow api.example.com:443
  portcullis allow localhost:5432             a service of this machine
  portcullis allow ../lib --read
  portcullis allow ~/src/site --write";

pub(crate) const DENY_HELP: &str = "\
Adds a denial to your settings, and takes back what you have allowed there. No answer and no policy \
overrides it; to undo it, remove it with `portcullis config edit`.
The exit status is 0 if it applies, 1 if it does not, 2 for wrong usage.

Examples:
  portcullis deny example.com                 in this project
  portcullis deny '*.example.com:22' --all
  portcullis deny ~/notes --all               neither read nor written
  portcullis deny ./fixtures --write          read, and not written";

pub(crate) const PRESETS_HELP: &str = "\
To make a preset of your own, write a file `presets/NAME.preset` beside your settings, with a statement and its \
reason on each line; `portcullis presets show npm` prints an example.

Examples:
  portcullis presets
  portcullis presets show registries
  portcullis presets show npm --json";

/// Arguments of `allow` and `deny`.
#[derive(Debug, Args)]
pub struct Rule {
    /// Presets, hosts (`HOST` or `HOST:PORT`), or paths (beginning with `/`, `~/` or `.`)
    #[arg(required = true, value_name = "WHAT")]
    pub what: Vec<String>,
    /// Allow or deny reading a path; the default. Denying reads also denies writes
    #[arg(long, conflicts_with = "write")]
    pub read: bool,
    /// Allow or deny writing a path. Allowing writes also allows reads
    #[arg(long)]
    pub write: bool,
    /// Apply in the project of the current directory; the default
    #[arg(long, conflicts_with = "all")]
    pub project: bool,
    /// Apply in every project
    #[arg(long)]
    pub all: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `presets`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Presets {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// What is shown, instead of the list.
    #[command(subcommand)]
    pub action: Option<PresetsAction>,
}

/// The verbs of `presets`.
#[derive(Debug, Subcommand)]
pub enum PresetsAction {
    /// Show what a preset contains, with the reason for each line
    #[command(after_help = "Examples:\n  portcullis presets show npm\n  portcullis presets show npm --json")]
    Show {
        /// The preset
        #[arg(value_name = "NAME")]
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}
