//! The machine's `/tmp`, which some tests share with the sandbox.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static TESTS: RwLock<()> = RwLock::new(());

/// Returns a guard for a test whose sessions take all of `/tmp`: while it exists, no test has a home there. A session
/// keeps directories without any right in its state directory, and another one that finds such a directory where its
/// commands may write does not begin.
pub fn share() -> RwLockWriteGuard<'static, ()> {
    TESTS.write().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a guard for a test with a home directory in `/tmp`.
pub fn live_in() -> RwLockReadGuard<'static, ()> {
    TESTS.read().unwrap_or_else(PoisonError::into_inner)
}
