//! The broker: a process that performs, for commands, every call that creates, changes or removes a name where rules
//! over names can match.
//!
//! Landlock refuses those calls to commands in such places, so a call that the broker misses fails. The broker resolves
//! the name of a call itself, consults [`portcullis_sandbox::Names`] about it, and acts on the directory that it has
//! opened: no name is checked and then looked up again. Where no rule applies, the call is returned to the kernel,
//! which enforces mounts and Landlock as it would without a broker.
//!
//! It also makes connect(2) wait for a verdict of the host. It does not make the connection; it lets the kernel read
//! the caller's memory again. Whatever the address is by then, the connection ends at the host's listeners and is
//! judged by the address that the kernel used.
//!
//! Without mounts the broker itself knows the access of each place: see [`Config::places`]. There it also changes modes
//! and times of files, for which Landlock has no rules, and it is the parent of the keeper, not its child.
//!
//! It is a child of the keeper, in the session's namespaces, without Landlock rules or a filter, and its only
//! capability is to inspect the session's own processes. When it ends, the keeper ends.
//!
//! # Never
//! The broker decides nothing by itself beyond what its rules and `portcullis-exec-surface` say; it asks the host. It never
//! acts on a name that it has only checked: it acts on the directory that it has opened.

#[cfg(target_os = "linux")]
mod act;
#[cfg(target_os = "linux")]
mod answers;
#[cfg(target_os = "linux")]
mod approval;
#[cfg(target_os = "linux")]
mod broker;
#[cfg(target_os = "linux")]
pub mod capabilities;
#[cfg(target_os = "linux")]
mod carry_out;
#[cfg(target_os = "linux")]
mod change_record;
#[cfg(target_os = "linux")]
mod content;
#[cfg(target_os = "linux")]
mod deferred_writes;
#[cfg(target_os = "linux")]
mod displaced;
#[cfg(target_os = "linux")]
mod identity;
#[cfg(target_os = "linux")]
mod judge;
#[cfg(target_os = "linux")]
mod listener_pool;
#[cfg(target_os = "linux")]
mod made_files;
#[cfg(target_os = "linux")]
mod open_questions;
#[cfg(target_os = "linux")]
mod outcome;
#[cfg(target_os = "linux")]
mod pending;
#[cfg(target_os = "linux")]
mod pending_connects;
#[cfg(target_os = "linux")]
mod proc_paths;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod recording;
#[cfg(target_os = "linux")]
mod removed_dot_files;
#[cfg_attr(not(target_os = "linux"), path = "repository/unsupported.rs")]
mod repository;
#[cfg(target_os = "linux")]
mod resolve;
#[cfg(target_os = "linux")]
mod resolve_for_read;
#[cfg(target_os = "linux")]
mod resolved_name;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod shared_knowledge;
#[cfg(target_os = "linux")]
mod shown_repository;
#[cfg(target_os = "linux")]
mod staging;
#[cfg(target_os = "linux")]
mod start;
#[cfg(target_os = "linux")]
mod syscalls;
#[cfg(target_os = "linux")]
mod threads;
#[cfg(target_os = "linux")]
pub mod transport;
#[cfg(target_os = "linux")]
mod user_places;
#[cfg(target_os = "linux")]
pub mod wire;
#[cfg(target_os = "linux")]
mod worker;

pub use repository::examine_repository;
#[cfg(target_os = "linux")]
pub use start::{Config, Handle, run_as_parent, start};
#[cfg(target_os = "linux")]
pub use syscalls::is_carried_out;
#[cfg(target_os = "linux")]
pub use threads::threads;
