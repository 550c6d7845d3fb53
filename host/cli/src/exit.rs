//! Exit codes, and how errors are printed.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use portcullis_decision::Effect;
use portcullis_packs::Refusal;
use portcullis_session::visible;
use serde_json::{Value, json};

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, or allowed.
    Done,
    /// `check`: a person must decide.
    Ask,
    /// `check`: refused.
    Deny,
    /// `audit verify`: a log is broken; `config show`, `config validate`: a session would refuse the settings;
    /// `doctor`: an attack came through; `asks list`, `grants list`, `ports list`: a session did not answer.
    Bad,
    /// `audit verify`: what was named is not there, as with other wrong usage.
    Missing,
    /// `doctor`: the sandbox works, but is less than it can be.
    Weaker,
    /// `doctor`: commands are refused here.
    NoSandbox,
    /// `run`: the command's own status.
    Command(u8),
}

/// What every command but `run` ends with when it fails.
const EXIT_FAILED: u8 = 1;
/// What every command ends with whose words make no sense.
const EXIT_USAGE: u8 = 2;
/// `run`: our own failure.
pub(crate) const RUN_FAILED: u8 = 125;
/// `run`: the command was refused, or cannot be executed.
pub(crate) const RUN_REFUSED: u8 = 126;

impl Exit {
    fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Bad => 1,
            Self::Missing => EXIT_USAGE,
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

/// For whom a command answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// A person.
    Person,
    /// A program, which has asked for JSON.
    Program,
}

impl Audience {
    /// Who has typed these words: a program says `--json`.
    pub(crate) fn of(words: &[OsString]) -> Self {
        let is_json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
        if is_json { Self::Program } else { Self::Person }
    }
}

/// Ends a command; an error is printed with all its causes and gives 1. A program is given it as an object, too.
pub(crate) fn of(outcome: anyhow::Result<Exit>, audience: Audience) -> ExitCode {
    match outcome {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            complain(&error);
            if audience == Audience::Program {
                // When standard output is closed there is nobody to tell.
                let _written = writeln!(std::io::stdout().lock(), "{}", object(&error));
            }
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// An error for programs: what was being done, why it was not, and, where a pack is refused, a word for the reason.
fn object(error: &anyhow::Error) -> Value {
    let refusal = error.chain().find_map(|cause| cause.downcast_ref::<Refusal>());
    let causes: Vec<String> = error.chain().skip(1).map(|cause| visible(&cause.to_string())).collect();
    json!({
        "error": {
            "kind": if refusal.is_some() { "refused" } else { "failed" },
            "code": refusal.map(Refusal::code),
            "message": visible(&error.to_string()),
            "causes": causes,
        },
        "exit": EXIT_FAILED,
    })
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
    if error.use_stderr() { ExitCode::from(EXIT_USAGE) } else { ExitCode::SUCCESS }
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
        other => visible(other.encode_utf8(&mut [0; 4])),
    }
}

/// Prints a line for the user beside the output.
pub(crate) fn say(line: &str) {
    // When standard error is closed there is nobody to tell.
    let _written = writeln!(std::io::stderr().lock(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_say_that_they_are_some() {
        let audience = |words: &[&str]| Audience::of(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(audience(&["policy", "add", "--json", "x"]), Audience::Program);
        assert_eq!(audience(&["policy", "add", "x"]), Audience::Person);
        assert_eq!(audience(&["run", "--", "x", "--json"]), Audience::Person);
    }

    #[test]
    fn a_refusal_has_a_word_for_its_reason() {
        let refused = anyhow::Error::new(Refusal::NoManifest).context("`x\u{1b}` is refused");
        let object = object(&refused);
        assert_eq!(object.pointer("/error/code"), Some(&json!("no-manifest")));
        assert_eq!(object.pointer("/error/kind"), Some(&json!("refused")));
        assert!(!object.to_string().contains('\u{1b}') && !object.to_string().contains("u001b"), "{object}");
        let failed = super::object(&anyhow::anyhow!("no disk"));
        assert_eq!(failed.pointer("/error/kind"), Some(&json!("failed")));
        assert_eq!(failed.pointer("/error/code"), Some(&Value::Null));
    }
}
