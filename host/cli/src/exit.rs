//! Exit codes, and how errors are printed.

use std::io::Write as _;
use std::process::ExitCode;

use portcullis_decision::Effect;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, or allowed.
    Done,
    /// `check`: a person must decide.
    Ask,
    /// `check`: refused.
    Deny,
    /// `audit verify`: a log is broken; `config validate`: a file cannot be used; `doctor`: an attack came through.
    Bad,
    /// `doctor`: the sandbox works, but is less than it can be.
    Weaker,
    /// `doctor`: commands are refused here.
    NoSandbox,
    /// `run`: the command's own status.
    Command(u8),
}

/// `run`: our own failure.
pub(crate) const RUN_FAILED: u8 = 125;
/// `run`: the command was refused, or cannot be executed.
pub(crate) const RUN_REFUSED: u8 = 126;

impl Exit {
    fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Bad => 1,
            Self::Weaker => 3,
            Self::NoSandbox => 4,
            Self::Ask => 10,
            Self::Deny => 20,
            Self::Command(code) => code,
        }
    }
}

impl From<Effect> for Exit {
    fn from(effect: Effect) -> Self {
        match effect {
            Effect::Allow => Self::Done,
            Effect::Ask => Self::Ask,
            Effect::Deny => Self::Deny,
        }
    }
}

/// Ends a command; an error is printed with all its causes and gives 1.
pub(crate) fn of(outcome: anyhow::Result<Exit>) -> ExitCode {
    match outcome {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

/// Ends `run`: an error of our own gives 125, as with `env` and other launchers.
pub(crate) fn of_run(outcome: anyhow::Result<Exit>) -> ExitCode {
    match outcome {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            complain(&error);
            ExitCode::from(RUN_FAILED)
        }
    }
}

/// Ends after arguments that make no sense, or that ask for help.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // Printing help fails only when nobody reads it.
    let _printed = error.print();
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}

/// Prints an error with its causes in one line.
pub(crate) fn complain(error: &anyhow::Error) {
    // What went wrong may be told in words from outside.
    let text: String = format!("{error:#}").chars().map(plain).collect();
    say(&format!("portcullis: {text}"));
}

/// A character that does not act on the terminal, but for ends of lines.
fn plain(character: char) -> String {
    match character {
        '\n' => "\n".to_owned(),
        other => portcullis_session::visible(other.encode_utf8(&mut [0; 4])),
    }
}

/// Prints a line for the user beside the output.
pub(crate) fn say(line: &str) {
    // When standard error is closed there is nobody to tell.
    let _written = writeln!(std::io::stderr().lock(), "{line}");
}
