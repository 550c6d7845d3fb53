//! The wanted sandbox of a session, and the one in force: plain data, and pure functions over it.
//!
//! A [`Profile`] describes the wanted sandbox. A [`Plan`] lists the mounts that implement it; computing one is pure and
//! needs no machine. A [`Report`] says which layers are in force, and a [`Tier`] how much of the sandbox a machine
//! supports; [`advice()`] names the cause of a failed probe and its remedy.
//!
//! Only [`NameOrder`] has side effects: the lock for changes of names, which the host and the brokers of all sandboxes
//! share.
//!
//! # Never
//! This crate starts no process and restricts none: `portcullis-sandbox-runtime` does. It knows no policies, settings,
//! users or grants; rules over names are opaque data to it.
//!
//! ```
//! use portcullis_sandbox::{Access, Limits, PathKind, PathAccess, Plan, Profile};
//!
//! let profile = Profile {
//!     places: vec![
//!         PathAccess { path: "/home".into(), access: Access::Hidden },
//!         PathAccess { path: "/home/u/project".into(), access: Access::ReadWrite },
//!     ],
//!     temp: "/var/tmp/session".into(),
//!     own: Vec::new(),
//!     closed: Vec::new(),
//!     devices: Vec::new(),
//!     hostname: "sandbox".into(),
//!     limits: Limits::default(),
//!     names: None,
//!     order: None,
//!     acting: None,
//! };
//! let plan = Plan::new(&profile, &|_| PathKind::Directory)?;
//! assert!(plan.to_string().contains("hide /home with u/project"));
//! # Ok::<(), portcullis_sandbox::PlanError>(())
//! ```

mod advice;
mod controllers;
mod error;
mod facts;
pub mod kernel_files;
mod mounts;
mod names;
pub mod network;
mod operation;
mod order;
mod places;
mod plan;
mod primitive;
mod profile;
mod report;
#[cfg(target_os = "linux")]
pub mod sock_diag;
mod sockets;
mod stage;
mod tier;
#[cfg(target_os = "linux")]
mod unix_diag;

pub use advice::{Advice, advice, apparmor_profile};
pub use controllers::{Controller, ControllerNames, NoGroup};
pub use error::PlanError;
pub use facts::Facts;
pub use mounts::decode_mount_path;
pub use names::{FileId, Judgement, MakeNames, NameRules, Names, Reads};
pub use network::{Hold, Network, WayOut};
pub use operation::{CallDetails, NameAccess};
#[cfg(target_os = "linux")]
pub use order::{ChangesFiles, OrderFiles};
pub use order::{Exclusive, Lock, NameOrder, RECORD_BEGINS};
pub use places::Places;
pub use plan::{MountStep, Opening, PathKind, Plan, Writable};
pub use primitive::{Finding, Primitive, Refused};
pub use profile::{
    Access, Command, HIDDEN_UNLESS_SHOWN, IsolationMode, Limits, OwnPlace, OwnSource, Owner, PathAccess,
    Profile, Terminal, machine_memory,
};
pub use report::{Force, Layer, Report};
pub use sockets::{bound_sockets, bound_sockets_where};
pub use stage::Stage;
pub use tier::Tier;
