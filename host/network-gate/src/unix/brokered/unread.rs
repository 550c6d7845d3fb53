//! The pieces of bodies that wait in memory.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The most pieces of a connection that wait: about 300 bytes each, besides the data in them. Windows bound the data
/// alone, so pieces of one byte could take many times as much.
const UNREAD_MAX: usize = 16 * 1024;

/// Counts the pieces that have come and were not read. Those of a request that was withdrawn stay counted.
#[derive(Debug, Default)]
pub(crate) struct Unread(AtomicUsize);

impl Unread {
    /// Counts a piece that has come; false if too many wait.
    pub(super) fn came(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) < UNREAD_MAX
    }

    /// Counts a piece that was read.
    pub(super) fn read(&self) {
        let less = |count: usize| Some(count.saturating_sub(1));
        let _before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_are_read_make_room_for_others() {
        let unread = Unread::default();
        unread.read();
        assert!((0..UNREAD_MAX).all(|_| unread.came()));
        assert!(!unread.came());
        unread.read();
        unread.read();
        assert!(unread.came());
        assert!(!unread.came());
    }
}
