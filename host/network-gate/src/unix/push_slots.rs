//! The bound on the memory for pushes.

use tokio::sync::Semaphore;

/// One permit for each push that is held in memory: the others wait until one of these has been read and judged.
pub(crate) static PUSHES: Semaphore = Semaphore::const_new(4);
