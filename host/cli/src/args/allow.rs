//! Arguments of `allow`, `deny` and `presets`.

use clap::{Args, Subcommand};

pub(crate) const ALLOW_HELP: &str = "\
What is allowed stands in your settings as an answer to a question does: `portcullis grants list` shows it, and \
`grants revoke` takes it back. Running sessions have it at once. A denial in the settings beats it.
The exit status is 0 when it holds, 1 when nothing was written, 2 for wrong usage.

Examples:
  portcullis allow npm                        a preset, in this project
  portcullis allow registries --all           all package registries, in every project
  portcullis allow api.example.com:443
  portcullis allow localhost:5432             a service of this machine
  portcullis allow ../lib --read
  portcullis allow ~/src/site --write";

pub(crate) const DENY_HELP: &str = "\
What is denied stands in the lists of denials of your settings, and nothing allows it, until you take it out there. \
The exit status is 0 when it holds, 1 when nothing was written, 2 for wrong usage.

Examples:
  portcullis deny example.com                 in this project
  portcullis deny '*.example.com:22' --all
  portcullis deny ~/notes --all               neither read nor written
  portcullis deny ./fixtures --write          read, and not written";

pub(crate) const PRESETS_HELP: &str = "\
A preset of your own is a file `presets/NAME.preset` beside your settings, with a statement and its reason on each \
line; `portcullis presets show npm` prints one.

Examples:
  portcullis presets
  portcullis presets show registries
  portcullis presets show npm --json";

/// Arguments of `allow` and `deny`.
#[derive(Debug, Args)]
pub(crate) struct Rule {
    /// Presets, hosts (`HOST` or `HOST:PORT`), or paths (beginning with `/`, `~/` or `.`)
    #[arg(required = true, value_name = "WHAT")]
    pub(crate) what: Vec<String>,
    /// A path: reading; the default of `allow`. `deny` denies writing with it
    #[arg(long, conflicts_with = "write")]
    pub(crate) read: bool,
    /// A path: writing; `allow` allows reading with it
    #[arg(long)]
    pub(crate) write: bool,
    /// In the project of the current directory; the default
    #[arg(long, conflicts_with = "all")]
    pub(crate) project: bool,
    /// In every project
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `presets`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Presets {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) action: Option<PresetsAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PresetsAction {
    /// Show what a preset holds, with the reason for each line
    #[command(after_help = "Examples:\n  portcullis presets show npm\n  portcullis presets show npm --json")]
    Show {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}
