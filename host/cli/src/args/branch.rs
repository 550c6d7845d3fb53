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

#[derive(Debug, Subcommand)]
pub(crate) enum Branch {
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
pub(crate) struct Named {
    /// The branch; the only one of the project by default
    pub(crate) name: Option<String>,
    /// The project directory; the current one by default
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// The project directory; the current one by default
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// List the branches of all projects, also of those that are gone
    #[arg(long, conflicts_with = "project")]
    pub(crate) everywhere: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) named: Named,
    /// Show how texts differ
    #[arg(long)]
    pub(crate) diff: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Commit {
    #[command(flatten)]
    pub(crate) named: Named,
    /// Files and directories of the project, with everything in them
    #[arg(value_name = "PATH", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) paths: Vec<PathBuf>,
    /// All changes
    #[arg(long)]
    pub(crate) all: bool,
    /// Also names that other programs of yours execute; without this, one must be named itself
    #[arg(long)]
    pub(crate) protected: bool,
    /// Also what was changed in the project since; your version is kept for `portcullis undo`
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Only if the branch and the project are as `branch show` with this review id showed them
    #[arg(long, value_name = "ID")]
    pub(crate) review: Option<String>,
    /// Only show what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask first
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Drop {
    #[command(flatten)]
    pub(crate) named: Named,
    /// Do not ask first
    #[arg(long, short)]
    pub(crate) yes: bool,
}
