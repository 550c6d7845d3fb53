//! The team of this machine or user: its membership file, and the bundle in force.
//!
//! Reading this never asks a registry. The bundle that was accepted last is read from the user's directory and all its
//! signatures are checked again; [`update`] gets newer ones, in a process of its own.

mod background;
mod in_force;
mod joined;
mod root_owned;
mod unprotected;
pub mod update;

pub use background::refresh;
pub use in_force::{InForce, in_force, keeps_sandbox, trust};
pub use joined::{Joined, files, joined, machine_file, machine_id, program_version, store, user_file};
pub use unprotected::{Unprotect, may_be_unprotected};
