//! The points at which tests kill a program, or change files beside it: right before each change that it makes.

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

    PLANNED.with_borrow_mut(|Planned { left, act }| {
        *left = left.saturating_sub(1);
        if *left == 0
            && let Some(act) = act.take()
        {
            act();
        }
    });
    if LAST.is_some_and(|last| PASSED.fetch_add(1, Ordering::Relaxed) == last) {
        let _killed = kill_process(getpid(), Signal::KILL);
    }
}

/// The variable with the number of the point.
#[cfg(test)]
pub(crate) const LAST_POINT: &str = "PORTCULLIS_LAST_POINT";

/// An action that a test runs when this thread reaches a point.
#[cfg(test)]
#[derive(Default)]
struct Planned {
    /// How many points are left until then.
    left: u64,
    act: Option<Box<dyn FnOnce()>>,
}

#[cfg(test)]
thread_local! {
    static PLANNED: std::cell::RefCell<Planned> = std::cell::RefCell::default();
}

/// Does something at a point of this thread, the first of which is 1. Returns after `during` whether it was done.
#[cfg(test)]
pub(crate) fn at_point(point: u64, act: impl FnOnce() + 'static, during: impl FnOnce()) -> bool {
    PLANNED.set(Planned { left: point, act: Some(Box::new(act)) });
    during();
    PLANNED.take().act.is_none()
}
