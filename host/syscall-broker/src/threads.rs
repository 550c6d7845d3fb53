//! The broker's threads: how many there are, and how one starts.

use std::num::NonZero;

/// With fewer, calls would wait for one another while a command keeps all processors busy.
const THREADS_AT_LEAST: usize = 4;
/// Per processor: half of the threads wait for a disk.
const THREADS_PER_PROCESSOR: usize = 2;
/// Only the used part takes memory.
const STACK_BYTES: usize = 1024 * 1024;

/// Returns how many threads a broker has at most.
pub fn threads() -> u64 {
    // Threads that receive answers, and one that watches the keeper.
    let others = 4;
    u64::try_from(serving()).unwrap_or(u64::MAX).saturating_add(others)
}

/// Returns how many threads carry out calls.
pub(crate) fn serving() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    THREADS_AT_LEAST.max(THREADS_PER_PROCESSOR * processors)
}

/// Starts a thread of the broker.
pub(crate) fn start(work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    // A small stack suffices, except for walks into a moving directory, which are a few levels deep.
    drop(std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work)?);
    Ok(())
}
