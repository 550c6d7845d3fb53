//! The work of all maskers of a thread, in bytes that were compared or moved.

use std::cell::Cell;

thread_local!(static DONE: Cell<usize> = const { Cell::new(0) });

/// Notes work.
pub(super) fn add(count: usize) {
    DONE.set(DONE.get() + count);
}

/// Returns the work since the last call.
pub(super) fn take() -> usize {
    DONE.take()
}
