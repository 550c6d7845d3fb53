//! Compares the times of files with the times at which calls ended.

use crate::state::{Content, FileState, State};

/// Returns true if a call that found `then` and ended at `end`, in milliseconds, may have left `now` of a file with several
/// names: it may have written it. A change of mode and attributes counts as the user's.
pub(crate) fn is_of_call(now: &FileState, then: &FileState, end: u64) -> bool {
    let is_written = (now.size, now.modified) != (then.size, then.modified);
    let status = |file: &FileState| {
        State::File(FileState {
            content: Content::Unread,
            digest: None,
            size: then.size,
            modified: then.modified,
            ..file.clone()
        })
    };
    is_written && now.modified <= since_1970(end) && status(now).is_still(&status(then))
}

/// Returns the end of a millisecond, as file systems write it.
pub(super) fn since_1970(milliseconds: u64) -> (i64, u32) {
    let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
    let nanoseconds = u32::try_from(rest * 1_000_000 + 999_999).unwrap_or_default();
    (i64::try_from(seconds).unwrap_or(i64::MAX), nanoseconds)
}
