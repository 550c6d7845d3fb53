//! Executes the system calls on behalf of the processes that made them.

mod attributes;
mod execute;
mod give;
mod host_changes;
mod locate;
mod names;
mod open;
mod open_for_read;
mod pipes;
mod reachable;
mod read_permission;
mod relative_links;
mod rename;
mod terminals;

pub(crate) use attributes::{change_attributes, change_mode, change_owner, change_times};
pub(crate) use execute::execute;
pub(crate) use give::give;
pub(crate) use names::{bind, make_directory, make_link, make_node, remove, truncate};
pub(crate) use open::open;
pub(crate) use rename::{link, rename};
