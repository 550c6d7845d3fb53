//! How many descriptors the host may have, and its commands.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the limit was before it was raised.
static USUAL: OnceLock<u64> = OnceLock::new();

/// Lets this process have as many descriptors open as it may; returns that number. Commands keep the limit that held
/// before: programs that look at all numbers up to it, or use `select`, count on a small one.
pub fn raise_file_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    USUAL.get_or_init(|| current.unwrap_or(u64::MAX));
    // It can always be raised to the maximum; where not, it stays what it is.
    let _as_it_was = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Returns the limit for commands; none where it was never raised.
pub(crate) fn usual() -> Option<u64> {
    USUAL.get().copied()
}

/// Takes the limit back for this process and all that it starts.
pub(crate) fn take_back(usual: u64) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let current = Some(maximum.map_or(usual, |maximum| maximum.min(usual)));
    // Lowering is always allowed.
    let _as_it_was = setrlimit(Resource::Nofile, Rlimit { current, maximum });
}
