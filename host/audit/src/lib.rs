//! The append-only log of verdicts and outcomes.
//!
//! Every session writes one file of JSON lines: a verdict before the act, an outcome after it. A line that cannot
//! be written is an error for the caller, who then denies: nothing happens without a trace.
//!
//! A log that has grown long goes on in another file, and its chain with it.
//!
//! Terms: a [`Record`] is what the host has to say; a [`Line`] is a record with its place in the log. Each line
//! carries the hash of the one before, so that [`verify`] finds a line that was taken out or changed later. How many
//! lines there are, and the hash of the last, is recorded apart (the **head**), so that it finds a missing end, too. That
//! guards against mishaps and against commands, which cannot reach the log; the user's own account can rewrite both.
//!
//! This crate must never know how a verdict was reached, and can never change one: requests are JSON to it.
//! It runs on Unix systems only, as it relies on `openat`.
//!
//! ```
//! use portcullis_audit::{Log, OutcomeLine, VerdictLine, read};
//! let directory = tempfile::tempdir().unwrap();
//! let log = Log::open(&directory.path().join("audit"), "session-1").unwrap();
//! let request = serde_json::json!({ "action": "command", "script": "curl -H 'Authorization: Bearer abcdefgh12'" });
//! let verdict = VerdictLine { request, effect: "allow".to_owned(), ..VerdictLine::default() };
//! let sequence = log.verdict(verdict).unwrap();
//! log.outcome(OutcomeLine { verdict: sequence, result: "done".to_owned(), ..OutcomeLine::default() }).unwrap();
//!
//! let text = std::fs::read_to_string(log.path()).unwrap();
//! assert!(!text.contains("abcdefgh12"));
//! assert_eq!(read(log.path()).unwrap().count(), 2);
//! ```

mod directory;
mod explain;
mod facts;
mod follow;
mod head;
#[cfg(unix)]
mod log;
mod mask;
mod parts;
mod read;
mod record;
mod stats;

pub use directory::{Decided, Directory, FindError, LogFile, MissingLog, Placed, Trouble};
pub use explain::{Why, Winner, winner};
pub use facts::{Recall, is_whole};
pub use follow::Follower;
#[cfg(unix)]
pub use log::{Log, LogError};
pub use mask::{LONGEST_TEXT, MASK, mask, mask_text};
pub use read::{End, Intact, Lines, ReadError, read, read_all, verify};
pub use record::{LARGEST_LINE, Line, OutcomeLine, PolicyLine, Record, VERSION, VerdictLine};
pub use stats::{PolicyStats, RuleCount, Stats};
