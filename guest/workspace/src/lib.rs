//! The default policy: the agent works in the directory where it was started.
//!
//! It turns the allow lists of the settings into standing rules, which apply alike to tools and commands, and answers
//! single requests by the same rules. Requests without a rule are left to the host, whose base asks. Explicit denies
//! and closed regions are the host's and take precedence.
//!
//! It must never know the host's crates or the location of settings: its configuration contains absolute canonical
//! paths.

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
