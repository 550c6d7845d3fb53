//! The harness of the tests in this folder: a real pi in an environment of its own.
//!
//! - [`Tools`] are the programs a test needs: both supported pi versions, their Node, `rg`, `fd`, and the
//!   `portcullis` binary. A missing one is an error that says which and how to get it; no test is skipped.
//! - A [`Scene`] is a temporary home, project and outside directory of one user.
//! - A [`Launch`] is one run of pi in a scene against a scripted model: [`Launch::print`] for `pi -p`,
//!   [`Launch::rpc`] for a client on pi's standard streams, [`Launch::screen`] for the terminal under tmux.
//!
//! - A [`Terminal`] is one run of `portcullis` with a controlling terminal and simulated keys.
//! - A [`World`] puts a scene into a network with servers, which appear to be on other machines.
//! - A [`Registry`] is a real registry of packs on the loopback interface.
//! - A [`Serve`] is a client of `portcullis serve` that can send anything, including messages that no extension would
//!   send.
//!
//! No helper waits for a fixed time: every wait has a condition, and a deadline that reports all output up to then. The
//! harness must never know what Portcullis decides; the tests do.
//!
//! ```no_run
//! use portcullis_it::{Launch, PiVersion, Scene, User, script};
//!
//! # fn main() -> anyhow::Result<()> {
//! let scene = Scene::new(User::Ordinary)?;
//! let script = script([script::bash("echo hello"), script::say("it said {{result}}")]);
//! let finished = Launch::plain(&scene, PiVersion::V1_5, &script)?.print("go")?;
//! assert!(finished.stdout.contains("it said hello"));
//! # Ok(())
//! # }
//! ```

mod asks;
mod deadline;
mod launch;
pub mod machine_tmp;
mod outputs;
mod packs;
mod print;
pub mod processes;
mod reach;
mod registry;
mod rpc;
mod scene;
mod screen;
pub mod script;
mod serve;
mod terminal;
mod tools;
mod user;
mod world;

pub use asks::code_of;
pub use deadline::{Deadline, PATIENCE};
pub use launch::Launch;
pub use print::Finished;
pub use registry::{Certificate, Registry};
pub use rpc::Rpc;
pub use scene::{Confiner, Scene};
pub use screen::Screen;
pub use script::script;
pub use serve::{Interface, Serve};
pub use terminal::Terminal;
pub use tools::{Pi, PiVersion, Tools, for_commands, guest, portcullis};
pub use user::User;
pub use world::World;
