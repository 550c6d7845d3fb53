//! The filter of system calls, loaded once by the keeper and inherited by everything it starts.
//!
//! It is a list of what is refused, not of what is allowed: lists of what is allowed break odd tool chains and
//! every new libc. Calls younger than this program are refused all the same, and of ioctl(2), which is many calls
//! under one number, little is allowed. What the keeper itself still needs for new commands (fresh mounts,
//! namespaces other than user namespaces) is open here and refused to commands for want of capabilities.
//! Where there are no namespaces, more is refused, and more is handed to the broker: see [`alone`].

mod alone;
mod program;
mod requests;
mod table;

use std::os::fd::OwnedFd;

use portcullis_sys::seccomp::{Handing, load};

use super::{During, Failure};
use crate::{Reads, Stage, Walls};
pub(crate) use program::Broker;
#[cfg(test)]
pub(crate) use table::all_handed_over;

/// Loads the filter for this process and everything it will start; it cannot be taken off again. Returns where
/// the broker hears calls, if there is one.
pub(crate) fn enforce(broker: Broker, reads: Reads, walls: Walls) -> Result<Option<OwnedFd>, Failure> {
    let handing = if broker.listens() { Handing::ToListener } else { Handing::None };
    load(&program::assemble(broker, reads, walls), handing).during(Stage::Seccomp)
}
