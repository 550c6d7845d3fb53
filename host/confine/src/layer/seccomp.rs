//! The filter of system calls, loaded once by the keeper and inherited by everything it starts.
//!
//! It is a list of what is refused, not of what is allowed: lists of what is allowed break odd tool chains and
//! every new libc. What the keeper itself still needs for new commands (fresh mounts, namespaces other than
//! user namespaces) is open here and refused to commands for want of capabilities.

mod program;
mod table;

use seccompiler::apply_filter;

use super::{During, Failure};
use crate::Stage;

/// Loads the filter for this process and everything it will start; it cannot be taken off again.
pub(crate) fn enforce() -> Result<(), Failure> {
    apply_filter(&program::assemble())
        .map_err(|error| match error {
            seccompiler::Error::Prctl(source) | seccompiler::Error::Seccomp(source) => source,
            // The program is not empty, not generated, and not for several threads.
            other @ (seccompiler::Error::Backend(_)
            | seccompiler::Error::EmptyFilter
            | seccompiler::Error::ThreadSync(_)) => std::io::Error::other(other),
        })
        .during(Stage::Seccomp)
}
