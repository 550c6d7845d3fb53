//! The runtime that enforcement uses, with the same limits.

use portcullis_bootstrap::policies;
use portcullis_policy_runtime::{CachePlace, Runtime};

/// Returns the runtime. Compiled policies are not cached, since authors rebuild often.
///
/// # Errors
/// If the runtime cannot be made.
pub fn runtime() -> anyhow::Result<Runtime> {
    policies::runtime(&CachePlace::None)
}
