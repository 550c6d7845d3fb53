//! Quota of requests in this process, over all clients that it serves.
//!
//! One host can have many clients, some of them hostile.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of requests; each has a thread, and many can wait for the user.
const MOST_REQUESTS: usize = 256;
/// Maximum size of all waiting requests. The connection limits the size of a single one.
const MOST_BYTES: usize = 64 << 20;

static USED: Mutex<Used> = Mutex::new(Used { requests: 0, bytes: 0 });

#[derive(Debug)]
struct Used {
    requests: usize,
    bytes: usize,
}

impl Used {
    fn take(&mut self, bytes: usize) -> bool {
        let fits = self.requests < MOST_REQUESTS && self.bytes.saturating_add(bytes) <= MOST_BYTES;
        if fits {
            self.requests += 1;
            self.bytes += bytes;
        }
        fits
    }

    fn give_back(&mut self, bytes: usize) {
        self.requests -= 1;
        self.bytes -= bytes;
    }
}

/// The share of one request, released on drop.
#[derive(Debug)]
pub(super) struct Share {
    bytes: usize,
}

impl Share {
    /// Takes a share, if the quota allows it.
    pub(super) fn take(bytes: usize) -> Option<Self> {
        let fits = used().take(bytes);
        // Create the value only on success: its drop releases the share.
        fits.then(|| Self { bytes })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        used().give_back(self.bytes);
    }
}

fn used() -> MutexGuard<'static, Used> {
    USED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_taken_is_not_given_back() {
        assert!(Share::take(MOST_BYTES + 1).is_none());
        let share = Share::take(7).unwrap();
        assert!(used().bytes >= 7);
        drop(share);
        assert!(Share::take(MOST_BYTES + 1).is_none() && Share::take(1).is_some());
    }

    #[test]
    fn there_is_an_end_to_requests_and_to_bytes() {
        let mut used = Used { requests: 0, bytes: 0 };
        assert!((0..MOST_REQUESTS).all(|_| used.take(1)) && !used.take(1));
        used.give_back(1);
        assert!(used.take(MOST_BYTES - MOST_REQUESTS + 1));
        used.give_back(1);
        assert!(!used.take(2), "there is room for a request, but not for its bytes");
        used.give_back(MOST_BYTES - MOST_REQUESTS + 1);
        assert!(used.take(1));
    }
}
