//! Waits for the user's own programs, which run outside.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How long a program may take. The user may have to unlock a credential.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// The interval of checks whether a program has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Waits for a program, and ends it if it takes too long; `None` then.
pub(crate) fn ended(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() > end {
            // Killed or gone, it has no answer.
            drop(child.kill());
            drop(child.wait());
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}
