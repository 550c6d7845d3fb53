//! The programs of the sandbox in whose place this one runs.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

/// The exit status of `ssh` when it fails itself.
pub(crate) const FAILED: u8 = 255;

/// Becomes a program of the sandbox.
pub(crate) fn become_program(name: &str, words: &[OsString]) -> ExitCode {
    let error = Command::new(name).args(words).exec();
    say(&format!("portcullis: running `{name}`: {error}"));
    ExitCode::from(FAILED)
}

/// Prints a line for the user.
pub(crate) fn say(line: &str) {
    // If standard error is closed, the line is lost.
    drop(writeln!(io::stderr().lock(), "{line}"));
}
