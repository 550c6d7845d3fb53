//! Runs commands in a sandbox that the kernel enforces.
//!
//! A [`Confinement`] is the running sandbox of one session, made for a [profile](portcullis_sandbox::Profile).
//! Commands are launched into it one by one, several at a time, each in a pid namespace of its own.
//!
//! # Processes
//! The host process is never forked. [`Confinement::start`] executes the host's own program with the argument
//! [`KEEPER_ARGUMENT`]; the program then calls [`keeper_main`] before anything else. The keeper is the supervisor of
//! the session: it is process 1 of the session's pid namespace and owns its mounts. For every command it creates an
//! init, which is process 1 of the command's pid namespace; the command is a child of the init. The init shares the
//! keeper's memory, and so does the command until execve(2), so starting a command copies no memory: both run a list of
//! system calls that the keeper has prepared. Where the kernel has Landlock, mounts are not the only layer for files:
//! commands also run under Landlock rules, which bind the files themselves, whatever path leads to them. If a profile
//! has rules over names, a broker process beside the inits creates, changes and removes names for commands: it receives
//! each call (seccomp user notification) and consults the [`Names`](portcullis_sandbox::Names) implementation of the
//! program. All sandboxes that share a [`NameOrder`](portcullis_sandbox::NameOrder) change names in one order, and so
//! does the host for its tools. When the host, the keeper or an init dies, the kernel kills every process below it at
//! once.
//!
//! # Network
//! A session has a network namespace of its own that contains only a loopback device. With [`Confinement::start_gated`]
//! every address in it is local, and the kernel redirects every connection and every DNS query to [`Listeners`] that
//! the host receives; the host decides what to do with them. With a broker, connect(2) blocks until the host releases
//! it, so the connect timeouts of programs do not run meanwhile; the kernel then makes the connection to the same
//! listeners, as it would have without the broker. The keeper configures all of this with netlink messages while it
//! still has the privileges; it needs no program such as `ip` or `nft`, and commands cannot change the result.
//!
//! # Limits
//! The kernel bounds the resources of a command per process, per pid namespace and, where a control group of version 2
//! can be created, for all processes of a sandbox together. In addition the keeper checks usage ten times a second and
//! reports which limit a command has exceeded.
//!
//! # Without namespaces
//! [`Confinement::start_without_namespaces`] makes a sandbox of Landlock, the broker and a stricter seccomp filter, for
//! machines that refuse namespaces and mounts: see [`Tier::Landlock`](portcullis_sandbox::Tier). There the broker is
//! the parent of the keeper. The init ends a command: init and command are alone in a Landlock domain that no signal
//! leaves, so the init kills every process that it can reach.
//!
//! # Never
//! This crate knows no policies, settings, users or grants: the profile is its only input, and rules over names are
//! opaque data to it.
//!
//! # What it does not stop
//! A command can connect to sockets in a visible directory, read-only or not: hide the directory.
//! A hard link to a hidden file in a visible directory shows the file's content, unless the file is one of
//! [`NameRules::kept_back`](portcullis_sandbox::NameRules).
//! The Landlock rules restrict changes, not reads: only mounts hide files.
//! An abstract socket of one command cannot be reached from another command.
//! A path that does not exist at the start cannot be hidden: hide the directory that would contain it.
//! (A rule over its name can prevent its creation.)
//! A mask on a single file falls off when the host renames another file over it.
//!
//! # Platforms
//! Linux 5.12 or later with user namespaces; with Landlock from Linux 5.19, in full from 6.12. On other systems
//! [`Confinement::start`] returns [`StartError::Unsupported`].

mod arguments;
#[cfg_attr(not(target_os = "linux"), path = "calls/unsupported.rs")]
mod calls;
#[cfg_attr(not(target_os = "linux"), path = "confinement/unsupported.rs")]
mod confinement;
mod error;
mod exit;
mod group;
mod held;
mod job;
#[cfg_attr(not(target_os = "linux"), path = "keeper_link/unsupported.rs")]
mod keeper_link;
mod limit_exceeded;
mod listeners;
mod probe;
mod running;
mod view;

#[cfg(target_os = "linux")]
mod broker_link;
#[cfg(target_os = "linux")]
mod file_limit;
#[cfg(target_os = "linux")]
mod host_ops;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
mod layer;
#[cfg(target_os = "linux")]
mod pidfd;
#[cfg(target_os = "linux")]
mod wire;

pub use arguments::{KEEPER_ARGUMENT, PROBE_ARGUMENT};
pub use calls::{Call, Calls};
#[cfg(not(target_os = "linux"))]
pub use confinement::raise_file_limit;
pub use confinement::{Confinement, keeper_main};
pub use error::{LaunchError, StartError, ViewError};
pub use exit::{Exit, Next};
#[cfg(target_os = "linux")]
pub use file_limit::raise_file_limit;
#[cfg(target_os = "linux")]
pub use group::directory::sweep_groups;
#[cfg(not(target_os = "linux"))]
pub use group::sweep_groups;
pub use held::{Held, RefusedCall};
pub use limit_exceeded::Breach;
pub use listeners::{Ends, Listeners, NoGate};
pub use probe::{probe, probe_main, read_facts};
pub use running::Running;
pub use view::View;
