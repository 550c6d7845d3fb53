//! The default policy: where the agent was started is its world.
//!
//! It turns the allow lists of the settings into standing rules, which hold alike
//! for tools and commands, and answers single requests by the same rules. What it
//! has no rule for it leaves to the host, whose base asks. Explicit denies and
//! closed regions are the host's and come on top.
//!
//! It must never know the host's crates or where settings lie: its configuration
//! comes with absolute canonical paths.

mod config;
mod files;
mod network;
mod policy;
mod rule;

pub use config::{Config, Pattern};
pub use policy::WorkspacePolicy;

portcullis_sdk::export_policy!(WorkspacePolicy);

#[cfg(test)]
mod tests;
