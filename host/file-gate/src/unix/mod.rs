//! The gate. `kernel` is the only module that differs among systems.

mod find;
mod gate;
mod grep;
mod host_directory;
mod ignores;
mod kernel;
mod links;
mod list;
mod locate;
mod located;
mod read;
mod temporary;
mod walk;
mod write;

pub use gate::Gate;
pub use host_directory::HostDirectory;
pub use links::{linked as linked_files, symbolic as symbolic_links};
pub use located::{Editing, Located};
