//! Finds the place of the name that a call changes, and the authority that decides there.

use rustix::io::Errno;

use crate::pending::PendingCall;
use crate::resolve::PathTarget;
use crate::resolved_name::{LastLink, ResolvedName};
use crate::syscalls::PathArgument;
use crate::worker::Worker;

/// The place of a name that a call creates, changes or removes.
pub(super) enum Located {
    /// Names are judged there, and the broker makes the change.
    Judged(ResolvedName),
    /// Commands may not change anything there.
    Outside(ResolvedName),
    /// The kernel decides there.
    Elsewhere,
}

/// Resolves the path of a name that a call creates, changes or removes.
pub(super) fn find(
    worker: &Worker,
    pending: &PendingCall,
    at: PathArgument,
    last: LastLink,
) -> Result<Located, Errno> {
    let path = pending.path(at)?;
    Ok(match worker.broker.resolve(&pending.caller, at.directory, &path, last)? {
        PathTarget::Name(place) if worker.broker.is_judged(&place.path) => Located::Judged(place),
        PathTarget::Name(place) => Located::Outside(place),
        PathTarget::Descriptor(_) | PathTarget::Elsewhere => Located::Elsewhere,
    })
}
