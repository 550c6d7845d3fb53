//! The grace period of a process that was told to exit.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Waits for `grace`, or until the sender is dropped because the process has exited. Further messages are ignored.
pub fn wait_out(told: &Receiver<()>, grace: Duration) -> RecvTimeoutError {
    let end = Instant::now() + grace;
    loop {
        match told.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(()) => {}
            Err(why) => return why,
        }
    }
}
