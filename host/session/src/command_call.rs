//! A command to run, and its descriptions for policies and users.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use portcullis_decision::request::Origin;
use portcullis_shell::quoted;

/// The program of a command.
#[derive(Debug, Clone)]
pub enum Program {
    /// A script for the shell.
    Script(String),
    /// A program with its arguments.
    Argv(Vec<OsString>),
}

/// A command to run.
#[derive(Debug, Clone)]
pub struct CommandCall<'a> {
    /// The program.
    pub program: Program,
    /// The working directory; absolute.
    pub cwd: &'a Path,
    /// The environment that the caller passes.
    pub environment: Vec<(String, String)>,
    /// Maximum run time, without the time spent waiting for answers.
    pub timeout: Option<Duration>,
    /// The author of the command.
    pub origin: Origin,
    /// The client's call, if any.
    pub call: Option<&'a str>,
}

/// Returns a program as policies and users see it.
pub(crate) fn shown(program: &Program) -> String {
    match program {
        Program::Script(script) => script.clone(),
        Program::Argv(argv) => shown_argv(argv),
    }
}

/// Returns the arguments as a shell command line.
fn shown_argv(argv: &[OsString]) -> String {
    argv.iter().map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argv_is_shown_as_typed() {
        let argv: Vec<OsString> = ["echo", "a b", "it's", "", "x=1"].map(OsString::from).to_vec();
        assert_eq!(shown_argv(&argv), "echo 'a b' 'it'\\''s' '' x=1");
    }
}
