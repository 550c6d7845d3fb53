//! The session's record of changes, as one broker writes it.

use portcullis_changes::Recorder;

/// The record of the session's changes.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) recorder: Recorder,
    /// The number of this sandbox in the record.
    pub(crate) view: u64,
}
