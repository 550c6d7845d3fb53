//! The calls, carried out for whoever made them.

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

/// Where a name lies that is to be made, changed or removed.
enum Where {
    /// Where names are judged, and changed by the broker.
    Judged(Place),
    /// Where commands change nothing.
    Outside(Place),
    /// Where the kernel decides.
    Elsewhere,
}

/// Resolves a path that names what is to be made, changed or removed.
fn find(worker: &Worker, pending: &PendingCall, at: At, last: LastLink) -> Result<Where, Errno> {
    let path = pending.path(at)?;
    Ok(match worker.broker.resolve(&pending.caller, at.directory, &path, last)? {
        Found::Name(place) if worker.broker.is_judged(&place.path) => Where::Judged(place),
        Found::Name(place) => Where::Outside(place),
        Found::Descriptor(_) | Found::Elsewhere => Where::Elsewhere,
    })
}
