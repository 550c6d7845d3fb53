//! Arguments of `asks` and `grants`.

use std::path::PathBuf;

use clap::Subcommand;

pub(crate) const ASKS_HELP: &str = "\
You can answer the questions of a session from any of your terminals; the first answer counts.

Examples:
  portcullis asks list
  portcullis asks answer 3f2a:71234 s-4711    for this session, with the number that the list shows
  portcullis asks answer 3f2a:71234 no";

pub(crate) const GRANTS_HELP: &str = "\
Answers for a session end with it; the others are in your settings files.

Examples:
  portcullis grants list
  portcullis grants revoke 5d0c71aa";

/// The verbs of `asks`.
#[derive(Debug, Subcommand)]
pub enum Asks {
    /// Show the open questions
    #[command(after_help = "Examples:\n  portcullis asks list\n  portcullis asks list --json")]
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Answer a question
    #[command(
        after_help = "Examples:\n  portcullis asks answer 3f2a:7 s\n  portcullis asks answer 3f2a:7 no\n  \
                      portcullis asks answer 3f2a:7 no --why 'use the copy in vendor/'"
    )]
    Answer {
        /// The question's id, as `asks list` shows it
        #[arg(value_name = "ID")]
        id: String,
        /// The code that `asks list` shows in brackets before the answer, with its number; or `no`
        #[arg(value_name = "ANSWER")]
        code: String,
        /// With `no`: tell the agent why
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
    },
}

/// The verbs of `grants`.
#[derive(Debug, Subcommand)]
pub enum Grants {
    /// Show what you have allowed
    #[command(after_help = "Examples:\n  portcullis grants list\n  portcullis grants list --all")]
    List {
        /// The project directory; the current one by default
        #[arg(long, value_name = "DIR")]
        project: Option<PathBuf>,
        /// Show the grants of other projects as well
        #[arg(long)]
        all: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Revoke a grant
    #[command(after_help = "Example:\n  portcullis grants revoke 5d0c71aa")]
    Revoke {
        /// The grant's id, as `grants list` shows it
        #[arg(value_name = "ID")]
        id: String,
        /// The project directory; the current one by default
        #[arg(long, value_name = "DIR")]
        project: Option<PathBuf>,
    },
}
