//! The append-only log of verdicts and outcomes.
//!
//! Each session writes a file of JSON lines: a verdict before an action, and an outcome after it. If a line cannot be
//! written, the caller gets an error and must deny, so that no action is missing from the log.
//!
//! A long log continues in further files, and so does its hash chain.
//!
//! Terms: a [`Record`] is a verdict or an outcome; a [`Line`] is a record with its position in the log. Each line
//! contains the hash of the previous one, so that [`verify`] detects removed and changed lines. The **head** records
//! the number of lines and the hash of the last one in a separate file, so that it also detects missing lines at the
//! end. This protects against accidents, and against commands, which have no access to the log; the user's own account
//! can rewrite both.
//!
//! This crate must never know how a verdict was reached, and cannot change one: requests are plain JSON here. It runs
//! on Unix systems only, since it uses `openat`.
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

pub use directory::{Decided, Directory, FindError, LogFile, MissingLog, Placed};
pub use explain::{Explanation, Winner, winner};
pub use facts::{Recall, is_whole};
pub use follow::Follower;
#[cfg(unix)]
pub use log::{Log, LogError};
pub use mask::{LONGEST_TEXT, MASK, mask, mask_text};
pub use read::{End, Intact, Lines, Mark, ReadError, Trouble, read, read_all, read_on, verify};
pub use record::{LARGEST_LINE, Line, OUTPUT, OutcomeLine, PolicyLine, Record, VERSION, VerdictLine};
pub use stats::{PolicyStats, RuleCount, Stats};
