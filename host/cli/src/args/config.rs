//! Arguments of `config`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

pub(crate) const CONFIG_HELP: &str = "\
Examples:
  portcullis config show
  portcullis config validate team.json
  $EDITOR \"$(portcullis config path)\"";

const VALIDATE_HELP: &str = "\
Without FILE every settings file that is there is checked, whether or not it holds here.
The exit status is 0 when all can be used, 1 when one cannot.

Examples:
  portcullis config validate
  portcullis config validate --kind project .pi/portcullis.json";

const SCHEMA_HELP: &str = "\
Name the schema in a settings file with \"$schema\", or in your editor's settings.

Examples:
  portcullis config schema > ~/.pi/agent/sandbox/settings.schema.json";

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show every value in force and the line it comes from
    Show {
        #[command(flatten)]
        place: Place,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Tell every mistake in settings files
    #[command(after_help = VALIDATE_HELP)]
    Validate {
        #[command(flatten)]
        place: Place,
        /// A file in place of those that hold here
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// What FILE holds; by default what its name says
        #[arg(long, value_enum, value_name = "KIND", requires = "file")]
        kind: Option<Kind>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of a settings file, for editors
    #[command(after_help = SCHEMA_HELP)]
    Schema {
        /// What the file holds
        #[arg(long, value_enum, value_name = "KIND", default_value = "settings")]
        kind: Kind,
    },
    /// Print the settings file that holds here, or where one would lie
    Path {
        #[command(flatten)]
        place: Place,
        /// Print every file that is looked for, and whether it is there
        #[arg(long)]
        all: bool,
    },
}

/// Which settings are meant.
#[derive(Debug, Clone, Args)]
pub(crate) struct Place {
    /// The project directory; the current one by default
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// A settings file in place of your own
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,
}

/// What a settings file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Complete settings
    Settings,
    /// Complete settings for each project
    Projects,
    /// A project's own settings, which can only tighten
    Project,
    /// The machine's settings, which can only tighten
    Machine,
}
