//! The points at which tests kill a program: right before each change that it makes.

#[cfg(not(test))]
pub(crate) const fn point() {}

/// Kills this program if it has come to the point that the variable names.
#[cfg(test)]
pub(crate) fn point() {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    static PASSED: AtomicU64 = AtomicU64::new(0);
    static LAST: LazyLock<Option<u64>> = LazyLock::new(|| std::env::var(LAST_POINT).ok()?.parse().ok());

    if LAST.is_some_and(|last| PASSED.fetch_add(1, Ordering::Relaxed) == last) {
        let _killed = kill_process(getpid(), Signal::KILL);
    }
}

/// The variable with the number of the point.
#[cfg(test)]
pub(crate) const LAST_POINT: &str = "PORTCULLIS_LAST_POINT";
