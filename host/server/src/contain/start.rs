//! What the user wants started.

use std::ffi::OsString;
use std::path::PathBuf;

/// How to start pi.
#[derive(Debug)]
pub struct Start {
    /// The program.
    pub program: PathBuf,
    /// The extension.
    pub extension: PathBuf,
    /// The user's arguments.
    pub arguments: Vec<OsString>,
    /// Variables with values other than the user's.
    pub variables: Vec<(String, String)>,
    /// Whether the user said that the project is trusted.
    pub trusted: bool,
}
