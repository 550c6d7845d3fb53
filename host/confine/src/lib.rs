//! Runs commands in a box that the kernel enforces.
//!
//! A [`Profile`] says what is wanted, a [`Plan`] lists the mounts that make it real (pure, no machine
//! needed), and a [`Confinement`] is the running sandbox of one session.
//! Commands are launched into it one by one, several at a time, each with its own process numbers.
//!
//! # Processes
//! The host is never forked.
//! [`Confinement::start`] starts the host's own program with the argument [`KEEPER_ARGUMENT`]; the program
//! calls [`keeper_main`] before anything else.
//! The keeper is process 1 of the session's pid namespace and owns its mounts; for every command it makes an
//! init, which is process 1 of the command's pid namespace, and below it the command.
//! The init shares the keeper's memory, the command does until it is the program, so nothing is copied for a
//! command: what both do is a list of system calls that the keeper has prepared.
//! Where the kernel has Landlock, the mounts are not the only layer for files: a command is also under rules
//! that bind the files themselves, whatever way leads to them.
//! Where a profile has rules over names, a broker beside the inits makes, changes and removes names for commands:
//! each call is handed to it, and it asks the [`Names`] that the program has brought along.
//! All sandboxes that are given the same [`NameOrder`] change names in one order, and so does the host for its tools.
//! When the host, the keeper or an init dies, the kernel kills everything below it at once.
//!
//! # Network
//! A session has a network of its own, in which there is a loopback device and nothing else.
//! With [`Confinement::start_gated`] every address in it is local, and the kernel leads every connection and
//! every question for a name to [`Listeners`] that the host gets; what becomes of them is the host's business.
//! Where there is a broker, it has connect(2) wait until the host lets it go on, so that the limits which programs
//! set for connecting do not run; then the kernel makes the connection as it would have, to the same listeners.
//! All of it is made by messages to the kernel while the keeper still may; no program such as `ip` or `nft` is
//! needed, and commands cannot change it.
//!
//! # Limits
//! What a command may use is bounded by the kernel for each process, for the pid namespace, and, where one may be made,
//! by a control group of version 2 for all processes of a sandbox together; besides the keeper looks ten times a second
//! and says which limit a command has met.
//!
//! # Without namespaces
//! [`Confinement::start_without_namespaces`] makes a sandbox of Landlock, the broker and a stricter filter, where
//! namespaces and mounts are refused: see the tier [`Tier::Landlock`].
//! There the broker is the keeper's parent, and the end of a command is brought about by its init: it is alone
//! with the command under Landlock rules that no signal leaves, and kills whatever it can reach.
//!
//! # Never
//! This crate knows no policies, settings, users or grants: the profile is all it is told, and rules over names are
//! data to it.
//!
//! # What it does not stop
//! Sockets that lie in a visible directory can be connected to, read-only or not: hide the directory.
//! A second name (hard link) of a hidden file that lies in a visible place shows its content, unless the file is one of
//! [`NameRules::kept_back`].
//! The rules below the mounts say what can be changed, not what can be read: hidden files are hidden by mounts.
//! An abstract socket of one command cannot be reached from another.
//! A place that does not exist at the start cannot be hidden by its path: hide the directory it would be in.
//! (It can be kept from being made, by a rule over its name.)
//! A mask on a single file falls off when the host replaces that file by renaming another over it.
//!
//! # Platforms
//! Linux 5.12 or later with user namespaces; with Landlock from Linux 5.19 on, in full from 6.12. Elsewhere plans can be made, and [`Confinement::start`] returns
//! [`StartError::Unsupported`].
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

mod breach;
mod calls;
mod confinement;
mod error;
mod gate;
mod group;
mod held;
mod job;
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
mod deeds;
#[cfg(target_os = "linux")]
mod files;
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

pub use breach::Breach;
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
pub use names::{FileId, Judgement, MakeNames, NameRules, Names, Reads};
pub use order::{Exclusive, NameOrder};
pub use plan::{Opening, PathKind, Plan, Step, Writable};
pub use probe::{
    Advice, Facts, Finding, PROBE_ARGUMENT, Primitive, Refused, advice, apparmor_profile, probe, probe_main,
};
pub use profile::{
    Access, Command, HIDDEN_UNLESS_SHOWN, Limits, Owner, Place, Profile, Terminal, Walls, machine_memory,
};
pub use report::{Force, Layer, Report};
#[cfg(target_os = "linux")]
pub use repository::examine_repository;
pub use running::{Exit, Next, Running};
pub use sockets::bound_sockets;
pub use stage::Stage;
pub use tier::Tier;
pub use view::View;
