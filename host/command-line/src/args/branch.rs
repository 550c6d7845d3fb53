//! Arguments of `branch`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(crate) const BRANCH_HELP: &str = "\
`portcullis run --branch` begins a branch: the command sees the project, and what it changes in it is kept apart until \
you commit it. Nothing is asked about changes in the project meanwhile.

Examples:
  portcullis run --branch=fix -- make test
  portcullis branch show fix --diff
  portcullis branch commit fix --all
  portcullis branch drop fix";

pub(crate) const COMMIT_HELP: &str = "\
All chosen changes are made, or none of them. `portcullis undo` takes a commit back. What you changed in the project \
since the branch began is left alone, and so are protected names, unless you ask for them.

The exit status is 1 if something that was chosen is left in the branch.

Examples:
  portcullis branch commit fix --all
  portcullis branch commit fix src README.md
  portcullis branch commit fix .github/workflows/ci.yml
  portcullis branch commit fix --all --protected --yes";

/// The verbs of `branch`.
#[derive(Debug, Subcommand)]
pub enum Branch {
    /// List the branches of this project
    #[command(
        after_help = "Examples:\n  portcullis branch list\n  portcullis branch list --everywhere --json"
    )]
    List(List),
    /// Show what differs between a branch and the project, the hosts it reached, and protected names
    #[command(after_help = "Examples:\n  portcullis branch show\n  portcullis branch show fix --diff")]
    Show(Show),
    /// Make the changes of a branch in the project: all, or those that you name
    #[command(after_help = COMMIT_HELP)]
    Commit(Commit),
    /// Remove a branch, with what was changed in it
    #[command(after_help = "Example:\n  portcullis branch drop fix")]
    Drop(Drop),
}

/// The branch that is meant.
#[derive(Debug, Args)]
pub struct Named {
    /// The branch; the only one of the project by default
    pub name: Option<String>,
    /// The project directory; the current one by default
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `branch list`.
#[derive(Debug, Args)]
pub struct List {
    /// The project directory; the current one by default
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// List the branches of all projects, also of those that are gone
    #[arg(long, conflicts_with = "project")]
    pub everywhere: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `branch show`.
#[derive(Debug, Args)]
pub struct Show {
    /// The branch.
    #[command(flatten)]
    pub named: Named,
    /// Show how texts differ
    #[arg(long)]
    pub diff: bool,
}

/// Arguments of `branch commit`.
#[derive(Debug, Args)]
pub struct Commit {
    /// The branch.
    #[command(flatten)]
    pub named: Named,
    /// Files and directories of the project, with everything in them
    #[arg(value_name = "PATH", required_unless_present = "all", conflicts_with = "all")]
    pub paths: Vec<PathBuf>,
    /// All changes
    #[arg(long)]
    pub all: bool,
    /// Also names that other programs of yours execute; without this, one must be named itself
    #[arg(long)]
    pub protected: bool,
    /// Also what was changed in the project since; your version is kept for `portcullis undo`
    #[arg(long)]
    pub overwrite: bool,
    /// Only if the branch and the project are as `branch show` with this review id showed them
    #[arg(long, value_name = "ID")]
    pub review: Option<String>,
    /// Only show what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask first
    #[arg(long, short)]
    pub yes: bool,
}

/// Arguments of `branch drop`.
#[derive(Debug, Args)]
pub struct Drop {
    /// The branch.
    #[command(flatten)]
    pub named: Named,
    /// Do not ask first
    #[arg(long, short)]
    pub yes: bool,
}
