//! The lists, with their defaults: a missing list equals its default.

use portcullis_sdk::{ConfigError, FilePattern};
use serde::Deserialize;

/// The configuration, with the names of its TOML file; each list replaces the default.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub(crate) deny_read: Vec<String>,
    pub(crate) allow_write: Vec<String>,
    pub(crate) deny_write: Vec<String>,
    pub(crate) allow_read: Vec<String>,
    pub(crate) read_only_bash: Vec<String>,
    pub(crate) reservations: Reservations,
}

/// How agents avoid conflicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reservations {
    /// Paths that another agent has reserved are not written.
    Claimed,
    /// Only paths that the agent itself has reserved are written.
    Required,
    /// The first agent that writes a file reserves it.
    Automatic,
    /// Reservations are ignored.
    Off,
}

impl Default for Config {
    fn default() -> Self {
        let list = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect();
        Self {
            deny_read: list(&["~/.ssh", "~/.aws", "~/.gnupg", ".env", ".env.*", "*.pem", "*.key"]),
            allow_write: list(&["./workspace", "./.pi"]),
            deny_write: list(&["./config.toml", ".env", ".env.*", "*.pem", "*.key"]),
            allow_read: list(&[".", "/nix"]),
            read_only_bash: Vec::new(),
            reservations: Reservations::Claimed,
        }
    }
}

impl Config {
    /// Reports every invalid entry.
    pub(crate) fn check(self) -> Result<Self, Vec<ConfigError>> {
        let mut errors = Vec::new();
        let mut list = |key: &str, entries: &[String], fault: fn(&str) -> Option<String>| {
            for (index, entry) in entries.iter().enumerate() {
                errors
                    .extend(fault(entry).map(|message| ConfigError::new(format!("/{key}/{index}"), message)));
            }
        };
        list("deny_read", &self.deny_read, place_or_name);
        list("allow_write", &self.allow_write, place);
        list("deny_write", &self.deny_write, place_or_name);
        list("allow_read", &self.allow_read, place);
        list("read_only_bash", &self.read_only_bash, agent);
        if errors.is_empty() { Ok(self) } else { Err(errors) }
    }
}

/// Returns true if an entry is a place; otherwise it is a name or a pattern over names.
pub(crate) fn is_place(entry: &str) -> bool {
    entry.contains('/') || matches!(entry, "." | ".." | "~")
}

fn place(entry: &str) -> Option<String> {
    let empty = entry.is_empty() || entry.contains('\0');
    empty.then(|| "write a directory, for example `./workspace` or `/srv`".to_owned())
}

fn place_or_name(entry: &str) -> Option<String> {
    if entry.is_empty() || is_place(entry) {
        return place(entry);
    }
    FilePattern::name("/", entry).matches("/x").err().map(|error| error.to_string())
}

fn agent(entry: &str) -> Option<String> {
    entry.trim().is_empty().then(|| "write the name of an agent, or `*`".to_owned())
}
