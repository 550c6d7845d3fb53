//! The runtime that enforcement uses, with the same limits.

use portcullis_bootstrap::policies;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_policy_runtime::{CachePlace, Runtime};

/// Returns the runtime. It shares the sessions' cache of compiled policies: what `policy test` has compiled, the next
/// verb and the first session find. A cache that cannot be used only costs time.
///
/// # Errors
/// If the runtime cannot be made.
pub fn runtime() -> anyhow::Result<Runtime> {
    let cache = ProcessEnv::read()?.cache.join("policies");
    policies::runtime(&CachePlace::Directory(cache)).or_else(|_| policies::runtime(&CachePlace::None))
}
