//! Arguments of `config`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

pub(crate) const CONFIG_HELP: &str = "\
Examples:
  portcullis config show
  portcullis config validate
  portcullis config edit";

const VALIDATE_HELP: &str = "\
Without FILE, it checks every settings file that exists, including those that do not apply here, and loads the \
policies of the settings in force. For a FILE with complete settings (`--kind settings`), it loads their policies, too.
The exit status is 0 if all files can be used, 1 if one cannot.

Examples:
  portcullis config validate
  portcullis config validate --kind project .pi/portcullis.json";

const SCHEMA_HELP: &str = "\
Name the schema in a settings file with \"$schema\", or in your editor's settings.

Examples:
  portcullis config schema > ~/.pi/agent/sandbox/settings.schema.json";

const EDIT_HELP: &str = "\
The editor is VISUAL, else EDITOR, else vi. You edit a copy. If the copy is valid, it replaces the file in one step; \
otherwise the file stays unchanged.

Examples:
  portcullis config edit
  portcullis config edit projects";

const IMPORT_HELP: &str = "\
Your own settings are written to default.json. From a project's file, only restrictions are imported, into \
.pi/portcullis.json; keys that would loosen the rules, and unknown keys, are reported.

Examples:
  portcullis config import --from pi-sandbox --dry-run
  portcullis config import --from srt
  portcullis config import --from ./team-settings.json --replace";

const PATH_HELP: &str = "\
If there is no settings file, it prints the path that `config edit` would create, and says so on standard error.

Examples:
  portcullis config path
  portcullis config path --all";

const SHOW_HELP: &str = "\
The policies are loaded as a session would load them. The exit status is 0 if the settings can be used, 1 if a \
session would refuse them.

Examples:
  portcullis config show
  portcullis config show --changed
  portcullis config show --project ~/src/foo --json";

/// The verbs of `config`.
#[derive(Debug, Subcommand)]
pub enum Config {
    /// Show every value in force and the line it comes from
    #[command(after_help = SHOW_HELP)]
    Show {
        /// The settings.
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
        /// The settings.
        #[command(flatten)]
        place: SettingsChoice,
        /// Check this file instead of those that apply here
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// The kind of settings in FILE; by default, its name decides
        #[arg(long, value_enum, value_name = "KIND", requires = "file")]
        kind: Option<SettingsKind>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of a settings file, for editors
    #[command(after_help = SCHEMA_HELP)]
    Schema {
        /// The kind of settings in the file
        #[arg(long, value_enum, value_name = "KIND", default_value = "settings")]
        kind: SettingsKind,
    },
    /// Open settings in your editor; a file with mistakes is not saved
    #[command(after_help = EDIT_HELP)]
    Edit {
        /// The settings.
        #[command(flatten)]
        place: SettingsChoice,
        /// Edit this file instead of the one that applies here
        #[arg(value_enum, value_name = "WHICH", conflicts_with = "settings")]
        which: Option<SettingsFile>,
    },
    /// Import settings from another sandbox
    #[command(after_help = IMPORT_HELP)]
    Import(Import),
    /// Print the path of the settings file that applies here
    #[command(after_help = PATH_HELP)]
    Path {
        /// The settings.
        #[command(flatten)]
        place: SettingsChoice,
        /// Print every path that is searched, and whether the file exists
        #[arg(long)]
        all: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// A settings file of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SettingsFile {
    /// `default.json`
    Default,
    /// `projects.json`
    Projects,
    /// `extensions/sandbox.json` of the layered layout
    Layered,
    /// `layered.json` of the layered layout
    LayeredProjects,
}

/// Arguments of `config import`.
#[derive(Debug, Args)]
pub struct Import {
    /// The source: `oddsjam`, `sysid`, `pi-sandbox`, `srt`, `bosun`, or the path of a file
    #[arg(long, value_name = "SOURCE")]
    pub from: String,
    /// The file to read; by default, the usual file of SOURCE
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The project directory; the current one by default
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Print what would be written, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Replace existing settings
    #[arg(long)]
    pub replace: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The settings that a command works on.
#[derive(Debug, Clone, Args)]
pub struct SettingsChoice {
    /// The project directory; the current one by default
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Use this settings file instead of your own
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
}

/// The kind of settings in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SettingsKind {
    /// Complete settings
    Settings,
    /// Complete settings for each project
    Projects,
    /// Changes to the built-in settings, in the layered layout
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
