//! Arguments of `config`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

pub(crate) const CONFIG_HELP: &str = "\
Examples:
  portcullis config show
  portcullis config validate
  portcullis config edit";

const VALIDATE_HELP: &str = "\
Without FILE it checks every settings file that exists, also those that do not apply here, and loads the policies of the \
settings in force. Of a FILE with settings of its own (`--kind settings`) they are loaded as well.
The exit status is 0 when all can be used, 1 when one cannot.

Examples:
  portcullis config validate
  portcullis config validate --kind project .pi/portcullis.json";

const SCHEMA_HELP: &str = "\
Name the schema in a settings file with \"$schema\", or in your editor's settings.

Examples:
  portcullis config schema > ~/.pi/agent/sandbox/settings.schema.json";

const EDIT_HELP: &str = "\
The editor is VISUAL, else EDITOR, else vi. It gets a copy; the file is replaced in one step when the copy can be \
used, and left as it was when it cannot.

Examples:
  portcullis config edit
  portcullis config edit projects";

const IMPORT_HELP: &str = "\
Your own settings are written to default.json. Of a project's file only what tightens is taken over, to \
.pi/portcullis.json; keys that would loosen, and unknown keys, are reported.

Examples:
  portcullis config import --from pi-sandbox --dry-run
  portcullis config import --from srt
  portcullis config import --from ./team-settings.json --replace";

const PATH_HELP: &str = "\
Without a settings file, prints the path that `config edit` would create, and says so on standard error.

Examples:
  portcullis config path
  portcullis config path --all";

const SHOW_HELP: &str = "\
The policies are loaded as a session would load them. The exit status is 0 when the settings can be used, 1 when a \
session would refuse them.

Examples:
  portcullis config show
  portcullis config show --changed
  portcullis config show --project ~/src/foo --json";

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show every value in force and the line it comes from
    #[command(after_help = SHOW_HELP)]
    Show {
        #[command(flatten)]
        place: SettingsChoice,
        /// Show only the values that you have set, not the defaults
        #[arg(long)]
        changed: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Check settings files and list every mistake
    #[command(after_help = VALIDATE_HELP)]
    Validate {
        #[command(flatten)]
        place: SettingsChoice,
        /// A file in place of those that apply here
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
    /// Open settings in your editor; a file with mistakes is not saved
    #[command(after_help = EDIT_HELP)]
    Edit {
        #[command(flatten)]
        place: SettingsChoice,
        /// Another file than the one that applies here
        #[arg(value_enum, value_name = "WHICH", conflicts_with = "settings")]
        which: Option<SettingsFile>,
    },
    /// Take settings over from another sandbox
    #[command(after_help = IMPORT_HELP)]
    Import(Import),
    /// Print the path of the settings file that applies here
    #[command(after_help = PATH_HELP)]
    Path {
        #[command(flatten)]
        place: SettingsChoice,
        /// Print every file that is looked for, and whether it is there
        #[arg(long)]
        all: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// A settings file of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SettingsFile {
    /// `default.json`
    Default,
    /// `projects.json`
    Projects,
    /// `extensions/sandbox.json` of the layered layout
    Layered,
    /// `layered.json` of the layered layout
    LayeredProjects,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Whose settings: `oddsjam`, `sysid`, `pi-sandbox`, `srt`, `bosun`, or the path of a file
    #[arg(long, value_name = "SOURCE")]
    pub(crate) from: String,
    /// The file to read; by default where SOURCE keeps it
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The project directory; the current one by default
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// Print what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Replace settings that are there already
    #[arg(long)]
    pub(crate) replace: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which settings are meant.
#[derive(Debug, Clone, Args)]
pub(crate) struct SettingsChoice {
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
    /// Settings over what is built in, of the layered layout
    Layered,
    /// The same for each project
    LayeredProjects,
    /// A project's own settings in the layered layout, which can only tighten
    LayeredProject,
    /// A project's own settings, which can only tighten
    Project,
    /// The machine's settings, which can only tighten
    Machine,
}
