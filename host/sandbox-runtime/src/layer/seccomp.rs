//! The seccomp filter, loaded once by the keeper and inherited by everything it starts.
//!
//! It lists refused calls, not allowed ones: lists of allowed calls break unusual tool chains and every new libc. Calls
//! newer than this program are refused all the same, and of ioctl(2), which is many calls under one number, little is
//! allowed. Operations that the keeper itself needs for new commands (new mounts, namespaces other than user
//! namespaces) are allowed by the filter and refused to commands for lack of capabilities. Without namespaces, more
//! calls are refused, and more are passed to the broker: see [`landlock_only`].

mod assembler;
mod landlock_only;
mod program;
mod requests;
mod table;

use std::os::fd::OwnedFd;

use portcullis_sandbox::{IsolationMode, Reads, Stage};
use portcullis_sys::seccomp::{Handing, load};

use super::failure::{During, Failure};
pub(crate) use program::Broker;

/// Loads the filter for this process and everything it will start; it cannot be removed. Returns the listener on which
/// the broker receives calls, if there is one.
pub(crate) fn enforce(
    broker: Broker,
    reads: Reads,
    isolation: IsolationMode,
) -> Result<Option<OwnedFd>, Failure> {
    let handing = if broker.listens() { Handing::ToListener } else { Handing::None };
    load(&program::assemble(broker, reads, isolation), handing).during(Stage::Seccomp)
}
