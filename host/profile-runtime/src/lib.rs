//! Runs commands under a profile, with a program such as macOS' `sandbox-exec`.
//!
//! A [`ProfileSandbox`] is the sandbox of one session: a confiner, and the file with its profile. It exists only if a
//! [self-test](self_test) has passed inside this very profile, so no command runs in a sandbox that has not proved
//! itself. Every command is started by the confiner; there is no way to start one without.
//!
//! # Processes
//! The host executes its own program with [`STARTER_ARGUMENT`]. This starter begins a session of the system's (setsid),
//! so that the command has no terminal, sets the limits, and starts the confiner, which applies the profile and becomes
//! the command. Starter and command are one process group. The group is killed when the command ends, when the host
//! says so, and when the host dies, which the starter notices within a tenth of a second.
//!
//! # What it does not stop
//! A process that leaves its group outlives the command. It stays under the profile, and the ports of the gate close
//! with the session.
//! The limits are those of setrlimit(2): for each process, not for all together.
//!
//! # Never
//! This crate knows no policies, settings, users or rules, and does not read profiles: it gets their text.
//!
//! # Platforms
//! Every Unix. Only macOS has a confiner; on Linux the tests use others.

mod error;
mod findings;
mod launcher;
mod limits;
mod running;
mod sandbox;
pub mod self_test;
mod starter;

pub use error::ProfileError;
pub use launcher::Host;
pub use running::RunningUnderProfile;
pub use sandbox::ProfileSandbox;
pub use starter::{STARTER_ARGUMENT, starter_main};
