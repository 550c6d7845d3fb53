//! The message for an empty lock file.

/// Message for an empty lock file.
pub(super) const NOTHING: &str = "nothing is in the lock; `portcullis policy add` takes a pack into it";
