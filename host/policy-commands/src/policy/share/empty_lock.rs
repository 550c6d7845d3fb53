//! The message for an empty lock file.

/// Message for an empty lock file.
pub(super) const NOTHING: &str = "no extra policies installed; `portcullis policy add` adds one";
