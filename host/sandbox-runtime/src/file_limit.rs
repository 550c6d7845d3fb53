//! Limits on open file descriptors of the host and its commands.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit before it was raised.
static USUAL: OnceLock<u64> = OnceLock::new();

/// Raises this process's soft limit of open file descriptors to its maximum; returns the new limit. Commands keep the
/// previous limit: programs that iterate over all numbers up to it, or use `select`, rely on a small one.
pub fn raise_file_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    USUAL.get_or_init(|| current.unwrap_or(u64::MAX));
    // Raising to the maximum always succeeds; if it does not, the limit stays unchanged.
    let _as_it_was = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Returns the limit for commands; `None` if it was never raised.
pub(crate) fn usual() -> Option<u64> {
    USUAL.get().copied()
}

/// Restores the limit for this process and all that it starts.
pub(crate) fn take_back(usual: u64) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let current = Some(maximum.map_or(usual, |maximum| maximum.min(usual)));
    // Lowering is always allowed.
    let _as_it_was = setrlimit(Resource::Nofile, Rlimit { current, maximum });
}
