//! Counts the open connections of each command.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of allowed connections that have not ended, by command.
#[derive(Debug, Default)]
pub(crate) struct ActiveConnections {
    counts: Mutex<HashMap<u32, usize>>,
    ended: Condvar,
}

impl ActiveConnections {
    pub(crate) fn begin(&self, command: u32) {
        *self.counts().entry(command).or_default() += 1;
    }

    pub(crate) fn end(&self, command: u32) {
        let mut counts = self.counts();
        let left = counts.get(&command).map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            counts.remove(&command)
        } else {
            counts.insert(command, left)
        };
        self.ended.notify_all();
    }

    /// Waits until a command has no open connection, for at most `patience`.
    pub(crate) fn wait(&self, command: u32, patience: Duration) {
        let is_busy = |counts: &mut HashMap<u32, usize>| counts.contains_key(&command);
        drop(self.ended.wait_timeout_while(self.counts(), patience, is_busy));
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_command_is_waited_for_until_its_last_connection_has_ended() {
        let carried = ActiveConnections::default();
        carried.begin(7);
        carried.begin(7);
        carried.begin(8);
        let start = Instant::now();
        carried.wait(7, Duration::from_millis(10));
        assert!(start.elapsed() >= Duration::from_millis(10));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| carried.wait(7, Duration::from_secs(60)));
            carried.end(7);
            carried.end(7);
            waiting.join().unwrap();
        });
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
