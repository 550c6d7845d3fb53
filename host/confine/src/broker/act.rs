//! Executes the system calls on behalf of the processes that made them.

mod attributes;
mod execute;
mod names;
mod open;
mod outside;
mod reachable;
mod read;
mod relative_links;
mod terminals;
mod transfer;

pub(super) use attributes::{change_mode, change_owner, change_times};
pub(super) use execute::execute;
pub(super) use names::{bind, make_directory, make_link, make_node, remove, truncate};
pub(super) use open::{give, open};
pub(super) use read::names_of;
pub(super) use transfer::{link, rename};

use rustix::io::Errno;

use super::resolve::{Found, LastLink, Place};
use super::worker::{PendingCall, Worker};

use super::calls::At;

/// The place of a name that a call creates, changes or removes.
enum Where {
    /// Names are judged there, and the broker makes the change.
    Judged(Place),
    /// Commands may not change anything there.
    Outside(Place),
    /// The kernel decides there.
    Elsewhere,
}

/// Resolves the path of a name that a call creates, changes or removes.
fn find(worker: &Worker, pending: &PendingCall, at: At, last: LastLink) -> Result<Where, Errno> {
    let path = pending.path(at)?;
    Ok(match worker.broker.resolve(&pending.caller, at.directory, &path, last)? {
        Found::Name(place) if worker.broker.is_judged(&place.path) => Where::Judged(place),
        Found::Name(place) => Where::Outside(place),
        Found::Descriptor(_) | Found::Elsewhere => Where::Elsewhere,
    })
}
