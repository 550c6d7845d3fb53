//! Finds the place of the name that a call changes, and who decides there.

use rustix::io::Errno;

use crate::pending::PendingCall;
use crate::resolve::Found;
use crate::resolved_name::{LastLink, ResolvedName};
use crate::syscalls::At;
use crate::worker::Worker;

/// The place of a name that a call creates, changes or removes.
pub(super) enum Where {
    /// Names are judged there, and the broker makes the change.
    Judged(ResolvedName),
    /// Commands may not change anything there.
    Outside(ResolvedName),
    /// The kernel decides there.
    Elsewhere,
}

/// Resolves the path of a name that a call creates, changes or removes.
pub(super) fn find(worker: &Worker, pending: &PendingCall, at: At, last: LastLink) -> Result<Where, Errno> {
    let path = pending.path(at)?;
    Ok(match worker.broker.resolve(&pending.caller, at.directory, &path, last)? {
        Found::Name(place) if worker.broker.is_judged(&place.path) => Where::Judged(place),
        Found::Name(place) => Where::Outside(place),
        Found::Descriptor(_) | Found::Elsewhere => Where::Elsewhere,
    })
}
