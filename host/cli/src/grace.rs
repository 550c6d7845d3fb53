//! The time that a process has to end by itself after it was told to.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Waits for `grace`, or until the sender is gone because the process has ended. Further messages change nothing.
pub(crate) fn wait_out(told: &Receiver<()>, grace: Duration) -> RecvTimeoutError {
    let end = Instant::now() + grace;
    loop {
        match told.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(()) => {}
            Err(why) => return why,
        }
    }
}
