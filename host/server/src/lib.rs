//! Sessions that serve another process: pi through the protocol, a contained pi, `/sandbox`.
//!
//! This crate translates between the client and a session, which decides. It never contains rules.
//!
//! Reading order: `serve` (the host's end of the protocol), `menu` (the screens of `/sandbox`), `contain` (pi in a sandbox
//! of its own), [`terminal`] (questions on the terminal of `portcullis run`).

#[cfg(target_os = "linux")]
pub mod contain;
#[cfg(not(target_os = "linux"))]
#[path = "contain/unsupported.rs"]
pub mod contain;
mod menu;
mod serve;

pub mod grace;
pub mod kept_answers;
pub mod prompt_layout;
#[cfg(target_os = "linux")]
pub mod pty;
pub mod record_text;
mod start;
pub mod terminal;

pub use serve::ask_params;
pub use start::run;
