//! The calls, carried out for whoever made them.

mod execute;
mod names;
mod open;
mod read;
mod transfer;

pub(super) use execute::execute;
pub(super) use names::{bind, make_directory, make_link, make_node, remove, truncate};
pub(super) use open::{give, open};
pub(super) use transfer::{link, rename};

use rustix::io::Errno;

use super::resolve::{Found, LastLink, Place};
use super::worker::{Turn, Worker};

use super::calls::At;

/// Resolves a path that names what is to be made, changed or removed; none where the kernel decides.
fn judged_place(worker: &Worker, turn: &Turn, at: At, last: LastLink) -> Result<Option<Place>, Errno> {
    let path = turn.path(at)?;
    Ok(match worker.broker.resolve(&turn.caller, at.directory, &path, last) {
        Found::Name(place) if worker.broker.is_judged(&place.path) => Some(place),
        Found::Name(_) | Found::Descriptor(_) | Found::Elsewhere => None,
    })
}
