//! Runs commands in a sandbox that the kernel enforces.
//!
//! A [`Profile`] describes the wanted sandbox. A [`Plan`] lists the mounts that implement it; computing one is pure and
//! needs no machine. A [`Confinement`] is the running sandbox of one session.
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
//! each call (seccomp user notification) and consults the [`Names`] implementation of the program. All sandboxes that
//! share a [`NameOrder`] change names in one order, and so does the host for its tools. When the host, the keeper or an
//! init dies, the kernel kills every process below it at once.
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
//! machines that refuse namespaces and mounts: see [`Tier::Landlock`]. There the broker is the parent of the keeper.
//! The init ends a command: init and command are alone in a Landlock domain that no signal leaves, so the init kills
//! every process that it can reach.
//!
//! # Never
//! This crate knows no policies, settings, users or grants: the profile is its only input, and rules over names are
//! opaque data to it.
//!
//! # What it does not stop
//! A command can connect to sockets in a visible directory, read-only or not: hide the directory.
//! A hard link to a hidden file in a visible directory shows the file's content, unless the file is one of
//! [`NameRules::kept_back`].
//! The Landlock rules restrict changes, not reads: only mounts hide files.
//! An abstract socket of one command cannot be reached from another command.
//! A path that does not exist at the start cannot be hidden: hide the directory that would contain it.
//! (A rule over its name can prevent its creation.)
//! A mask on a single file falls off when the host renames another file over it.
//!
//! # Platforms
//! Linux 5.12 or later with user namespaces; with Landlock from Linux 5.19, in full from 6.12. On other systems plans
//! can be computed, and [`Confinement::start`] returns [`StartError::Unsupported`].
//!
//! ```
//! use portcullis_confine::{Access, Limits, PathKind, Place, Plan, Profile};
//!
//! let profile = Profile {
//!     places: vec![
//!         Place { path: "/home".into(), access: Access::Hidden },
//!         Place { path: "/home/u/project".into(), access: Access::ReadWrite },
//!     ],
//!     temp: "/var/tmp/session".into(),
//!     hostname: "sandbox".into(),
//!     limits: Limits::default(),
//!     names: None,
//!     order: None,
//!     acting: None,
//! };
//! let plan = Plan::new(&profile, &|_| PathKind::Directory)?;
//! assert!(plan.to_string().contains("hide /home with u/project"));
//! # Ok::<(), portcullis_confine::PlanError>(())
//! ```

mod calls;
mod confinement;
mod error;
mod gate;
mod group;
mod held;
mod job;
mod limit_exceeded;
mod link;
mod names;
mod order;
mod plan;
mod probe;
mod profile;
mod report;
mod running;
mod sockets;
mod stage;
mod tier;
mod view;

#[cfg(target_os = "linux")]
mod asking;
#[cfg(target_os = "linux")]
mod broker;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod host_ops;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
mod layer;
#[cfg(target_os = "linux")]
mod repository;
#[cfg(target_os = "linux")]
mod transport;
#[cfg(target_os = "linux")]
mod wire;

pub use calls::{Call, Calls};
pub use confinement::{Confinement, KEEPER_ARGUMENT, keeper_main};
#[cfg(not(target_os = "linux"))]
pub use confinement::{examine_repository, raise_file_limit};
pub use error::{LaunchError, PlanError, StartError, ViewError};
#[cfg(target_os = "linux")]
pub use files::raise_file_limit;
pub use gate::{Ends, Hold, Listeners, NoGate, WayOut};
pub use group::{Controller, NoGroup, sweep_groups};
pub use held::{Attempt, Deed, Held, Refusal};
pub use limit_exceeded::Breach;
pub use names::{FileId, Judgement, MakeNames, NameRules, Names, Reads};
pub use order::{Exclusive, NameOrder};
pub use plan::{Opening, PathKind, Plan, Step, Writable};
pub use probe::{
    Advice, Facts, Finding, PROBE_ARGUMENT, Primitive, Refused, advice, apparmor_profile, probe, probe_main,
};
pub use profile::{
    Access, Command, HIDDEN_UNLESS_SHOWN, IsolationMode, Limits, Owner, Place, Profile, Terminal,
    machine_memory,
};
pub use report::{Force, Layer, Report};
#[cfg(target_os = "linux")]
pub use repository::examine_repository;
pub use running::{Exit, Next, Running};
pub use sockets::bound_sockets;
pub use stage::Stage;
pub use tier::Tier;
pub use view::View;
