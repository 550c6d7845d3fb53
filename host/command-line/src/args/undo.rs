//! Arguments of `changes`, `undo` and `redo`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(crate) const CHANGES_HELP: &str = "\
Shows what the last session in this project changed in your files, call by call (c1, c2 …).

Examples:
  portcullis changes
  portcullis changes --diff
  portcullis changes --list
  portcullis changes prune --all";

pub(crate) const UNDO_HELP: &str = "\
Files get back their content, mode and attributes, whether git tracks them or not. What you changed since is left \
alone: texts are merged if that is clean, otherwise the former version is put beside yours, as NAME.portcullis-old.

The exit status is 1 if something was left or failed.

Examples:
  portcullis undo                take back the last call, or the last `portcullis run`
  portcullis undo c2 --dry-run   show what going back to before call 2 would do
  portcullis undo --all --yes    take back all changes of the session, without asking";

pub(crate) const REDO_HELP: &str = "\
Examples:
  portcullis redo
  portcullis redo --dry-run";

/// The session whose changes are meant.
#[derive(Debug, Args)]
pub struct Record {
    /// The project directory; the current one by default
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// The session, by the first characters of its id; the last one with changes by default
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `changes`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Changes {
    /// What is done with the records, instead of showing the changes.
    #[command(subcommand)]
    pub what: Option<ChangesVerb>,
    /// The session.
    #[command(flatten)]
    pub record: Record,
    /// Show how texts differ from what they were
    #[arg(long)]
    pub diff: bool,
    /// List the sessions of this project that have a record
    #[arg(long, conflicts_with_all = ["diff", "session"])]
    pub list: bool,
}

/// The verbs of `changes`.
#[derive(Debug, Subcommand)]
pub enum ChangesVerb {
    /// Remove records of sessions that have ended; their changes can then not be undone
    #[command(
        after_help = "Examples:\n  portcullis changes prune --older 7\n  portcullis changes prune --all --json"
    )]
    Prune(Prune),
}

/// Arguments of `changes prune`.
#[derive(Debug, Args)]
pub struct Prune {
    /// Records of this many days ago and older
    #[arg(long, value_name = "DAYS", required_unless_present = "all")]
    pub older: Option<u32>,
    /// All records, of all projects
    #[arg(long, conflicts_with = "older")]
    pub all: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// How changes are taken back.
#[derive(Debug, Args)]
pub struct How {
    /// The session.
    #[command(flatten)]
    pub record: Record,
    /// Only show what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask first
    #[arg(long, short)]
    pub yes: bool,
}

/// Arguments of `undo`.
#[derive(Debug, Args)]
pub struct Undo {
    /// The call (c5) to go back to before, or the client's id of it
    #[arg(conflicts_with = "all")]
    pub point: Option<String>,
    /// All changes of the session
    #[arg(long)]
    pub all: bool,
    /// The session, and how its changes are taken back.
    #[command(flatten)]
    pub how: How,
}

/// Arguments of `redo`.
#[derive(Debug, Args)]
pub struct Redo {
    /// The session, and how its undo is taken back.
    #[command(flatten)]
    pub how: How,
}
