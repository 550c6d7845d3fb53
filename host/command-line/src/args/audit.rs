//! Arguments of `audit` and `explain`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(crate) const AUDIT_HELP: &str = "\
An id is `LOG:NUMBER` as `audit tail` shows it; LAST is the newest decision. Times are UTC.

Examples:
  portcullis audit tail -f
  portcullis audit show LAST
  portcullis audit stats --json";

pub(crate) const EXPLAIN_HELP: &str = "\
Without an id, it explains the newest refusal in the project around the current directory. The exit status is 1 if \
there is none.

Examples:
  portcullis explain                    the newest refusal here
  portcullis explain LAST               the newest decision of all sessions
  portcullis explain 3f9c21d0:12 --json";

const VERIFY_HELP: &str = "\
The exit status is 0 if every line follows from the one before and none is missing at the end, 1 if a log was \
changed, cut off, removed or cannot be read, 2 if there is no such file.
The end of each log is recorded in `heads/` beside the logs. A program that runs as you outside the sandbox can change \
both unnoticed. If you remove a log, remove its record as well.

Examples:
  portcullis audit verify
  portcullis audit verify --json
  portcullis audit verify ~/.local/state/portcullis/audit/3f9c21d00a1b2c3d.jsonl";

const EXPORT_HELP: &str = "\
Collectors are named in `/etc/portcullis/export.toml` and in `export.toml` beside your settings. While a session runs, \
its records are sent without this command; it sends what is left, and shows what a collector has received.
The exit status is 0 if everything was sent, 1 if a collector has not accepted something or a file has a mistake.

Examples:
  portcullis audit export                   send what is left, and end
  portcullis audit export --follow          send new records until it is stopped, as a service
  portcullis audit export --status --json";

/// The verbs of `audit`.
#[derive(Debug, Subcommand)]
pub enum Audit {
    /// Show the newest records of all sessions
    #[command(
        after_help = "Examples:\n  portcullis audit tail\n  portcullis audit tail -f\n  portcullis audit tail --denied\n  portcullis audit tail -n 100 --json"
    )]
    Tail(Tail),
    /// Show a decision and its outcome as they were recorded
    #[command(
        after_help = "Examples:\n  portcullis audit show LAST\n  portcullis audit show 3f9c21d0:12 --json"
    )]
    Show(Decision),
    /// Check the logs for lines that were changed, cut off or removed
    #[command(after_help = VERIFY_HELP)]
    Verify {
        /// A log; all of them by default
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Send the records to collectors: OTLP, OCSF, syslog, journald
    #[command(after_help = EXPORT_HELP)]
    Export(Export),
    /// Count decisions, rules and outcomes
    #[command(after_help = "Examples:\n  portcullis audit stats\n  portcullis audit stats --json")]
    Stats {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `audit tail`.
#[derive(Debug, Args)]
pub struct Tail {
    /// Keep printing new records
    #[arg(short, long)]
    pub follow: bool,
    /// Show refusals only
    #[arg(long)]
    pub denied: bool,
    /// Number of records to begin with
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    pub lines: usize,
    /// Print one JSON object for each record
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `audit export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Keep sending new records
    #[arg(short, long, conflicts_with = "status")]
    pub follow: bool,
    /// Show how far each collector has received the log; send nothing
    #[arg(long)]
    pub status: bool,
    /// Only this destination; all of them by default
    #[arg(long, value_name = "NAME")]
    pub destination: Option<String>,
    /// Print one JSON object for each destination, with --follow for each batch
    #[arg(long)]
    pub json: bool,
    /// Send until standard input ends, for the host
    #[arg(long, hide = true, conflicts_with_all = ["follow", "status"])]
    pub background: bool,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// LAST, or an id as `audit tail` shows it; by default the newest refusal in this project
    #[arg(value_name = "ID|LAST")]
    pub id: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `audit show`.
#[derive(Debug, Args)]
pub struct Decision {
    /// LAST, or an id as `audit tail` shows it
    #[arg(value_name = "ID|LAST")]
    pub id: String,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
