//! What all verbs of the `portcullis` command share: arguments, output, exit codes.
//!
//! Owns the words that a user can type, with their help texts, the printing of text and JSON, times and paths as people
//! write them, and the exit code of each outcome, also of an error and of a panic.
//!
//! Must never know: what a verb does. `portcullis-policy-commands` and `portcullis-cli` carry the verbs out.

pub mod args;
pub mod exit;
pub mod human;
pub mod output;
