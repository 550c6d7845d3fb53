//! Exit codes, and printing of errors.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use portcullis_bootstrap::streams::{complain, output, say};
use portcullis_decision::Effect;
use portcullis_packs::PackRefusal;
use portcullis_text::{escape, escape_json};
use serde_json::{Value, json};

use crate::args::Verb;

/// The outcome of a verb.
pub type Outcome = anyhow::Result<Exit>;

/// The result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, or allowed.
    Done,
    /// `check`: a person must decide.
    Ask,
    /// `check`: refused.
    Deny,
    /// The check found a fault.
    ///
    /// `audit verify`: a log is broken; `config show`, `config validate`: a session would refuse the settings;
    /// `doctor`: an attack came through; `asks list`, `grants list`, `ports list`: a session did not answer; `presets`: a preset has a
    /// mistake; `home clear`: a session uses it;
    /// `undo`, `redo`: something was left or failed; `changes prune`: a session runs; `branch commit`: something that
    /// was named is left in the branch;
    /// `team`: a bundle is refused, signatures are missing, or this machine has no bundle;
    /// `version`: the file is not the one that was released.
    Bad,
    /// `audit verify`: the named log does not exist; same code as for wrong usage.
    Missing,
    /// `doctor`: the sandbox works, but not with all layers.
    Weaker,
    /// `doctor`: commands are refused here.
    NoSandbox,
    /// `run`: the command's own status.
    Command(u8),
}

/// Exit code of every command but `run` on failure.
const EXIT_FAILED: u8 = 1;
/// Exit code of every command for invalid arguments.
const EXIT_USAGE: u8 = 2;
/// Exit code of `run` for our own failures.
pub const RUN_FAILED: u8 = 125;
/// Exit code of `run` if the command was refused or cannot be executed.
pub const RUN_REFUSED: u8 = 126;

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

/// The reader of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// A person.
    Person,
    /// A program, which passed `--json`.
    Program,
}

impl Audience {
    /// Returns the audience of a command line: `--json` means a program.
    #[must_use]
    pub fn from_arguments(words: &[OsString]) -> Self {
        let is_json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
        if is_json { Self::Program } else { Self::Person }
    }
}

/// Returns the exit code of a command.
///
/// An error is printed with all its causes, for a program also as JSON, and gives 1.
#[must_use]
pub fn exit_code(outcome: anyhow::Result<Exit>, audience: Audience) -> ExitCode {
    match outcome {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            complain(&error);
            if audience == Audience::Program {
                print_json(&object(&error));
            }
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// Prints JSON on one line, with unsafe characters escaped.
fn print_json(value: &Value) {
    // Ignore errors: standard output may be closed.
    let _written = writeln!(output().lock(), "{}", escape_json(&value.to_string()));
}

/// Returns an error as JSON: the failed operation, the causes, and for a refused pack the kind of refusal.
fn object(error: &anyhow::Error) -> Value {
    let refusal = error.chain().find_map(|cause| cause.downcast_ref::<PackRefusal>());
    let causes: Vec<String> = error.chain().skip(1).map(|cause| escape(&cause.to_string())).collect();
    json!({
        "error": {
            "kind": if refusal.is_some() { "refused" } else { "failed" },
            "code": refusal.map(PackRefusal::code),
            "message": escape(&error.to_string()),
            "causes": causes,
        },
        "exit": EXIT_FAILED,
    })
}

/// The result of a command that panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterPanic {
    /// `check`: it is denied.
    Deny,
    /// `run` and `exec-client`, which start commands.
    RunFailed,
    /// All other commands.
    Failed,
}

impl AfterPanic {
    /// Returns the result of a command if it panics.
    #[must_use]
    pub fn for_verb(verb: &Verb) -> Self {
        match verb {
            Verb::Check(_) => Self::Deny,
            Verb::Run(_) | Verb::ExecClient(_) => Self::RunFailed,
            Verb::Explain(_)
            | Verb::Status(_)
            | Verb::Audit(_)
            | Verb::Config(_)
            | Verb::Asks(_)
            | Verb::Ports(_)
            | Verb::Allow(_)
            | Verb::Deny(_)
            | Verb::Presets(_)
            | Verb::Credentials(_)
            | Verb::Home(_)
            | Verb::Migrate(_)
            | Verb::Changes(_)
            | Verb::Undo(_)
            | Verb::Redo(_)
            | Verb::Branch(_)
            | Verb::Grants(_)
            | Verb::Doctor(_)
            | Verb::Policy(_)
            | Verb::Team(_)
            | Verb::Serve
            | Verb::Sweep
            | Verb::Pi(_)
            | Verb::PiExtension(_)
            | Verb::Completions(_)
            | Verb::Version(_)
            | Verb::Manual(_)
            | Verb::Complete(_) => Self::Failed,
        }
    }

    /// Reports the panic and returns the exit code.
    #[must_use]
    pub fn end(self, panic: &str, audience: Audience) -> ExitCode {
        let error = anyhow::anyhow!("Portcullis failed ({panic}); this is a fault of ours, please report it");
        match self {
            Self::Deny => {
                complain(&error);
                if audience == Audience::Program {
                    let reason = error.to_string();
                    let denial = json!({
                        "effect": "deny", "policy": "host", "rule": "host.fault", "reason": reason,
                    });
                    print_json(&denial);
                }
                ExitCode::from(Exit::Deny.code())
            }
            Self::RunFailed => of_run(Err(error)),
            Self::Failed => exit_code(Err(error), audience),
        }
    }
}

/// Prints panics on one line, with unsafe characters escaped.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
        let said = panic.payload_as_str().unwrap_or("no message");
        say(&format!("portcullis: panic{}: {}", place.unwrap_or_default(), escape(said)));
    }));
}

/// Returns the exit code of `run`. An error of our own gives 125, as for `env` and other launchers.
#[must_use]
pub fn of_run(outcome: anyhow::Result<Exit>) -> ExitCode {
    match outcome {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            complain(&error);
            ExitCode::from(RUN_FAILED)
        }
    }
}

/// Returns the exit code for invalid arguments or for a request for help.
#[must_use]
pub fn usage(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        // The text quotes the arguments.
        say(error.render().to_string().trim_end());
        return ExitCode::from(EXIT_USAGE);
    }
    // Ignore errors: standard output may be closed.
    let _printed = error.print();
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Arguments;

    #[test]
    fn programs_say_that_they_are_some() {
        let audience =
            |words: &[&str]| Audience::from_arguments(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(audience(&["policy", "add", "--json", "x"]), Audience::Program);
        assert_eq!(audience(&["policy", "add", "x"]), Audience::Person);
        assert_eq!(audience(&["run", "--", "x", "--json"]), Audience::Person);
    }

    #[test]
    fn a_panic_permits_nothing() {
        let end = |words: &[&str], audience| {
            let verb = Arguments::try_parse_from(words).unwrap().verb;
            format!("{:?}", AfterPanic::for_verb(&verb).end("as a fault would", audience))
        };
        let code = |code: u8| format!("{:?}", ExitCode::from(code));
        assert_eq!(end(&["portcullis", "check", "read", "/x"], Audience::Person), code(20));
        assert_eq!(end(&["portcullis", "check", "--json", "read", "/x"], Audience::Program), code(20));
        assert_eq!(end(&["portcullis", "run", "--", "true"], Audience::Person), code(RUN_FAILED));
        assert_eq!(end(&["portcullis", "sweep"], Audience::Person), code(EXIT_FAILED));
    }

    #[test]
    fn a_refusal_has_a_word_for_its_reason() {
        let refused = anyhow::Error::new(PackRefusal::NoManifest).context("`x\u{1b}` is refused");
        let object = object(&refused);
        assert_eq!(object.pointer("/error/code"), Some(&json!("no-manifest")));
        assert_eq!(object.pointer("/error/kind"), Some(&json!("refused")));
        assert!(!object.to_string().contains('\u{1b}') && !object.to_string().contains("u001b"), "{object}");
        let failed = super::object(&anyhow::anyhow!("no disk"));
        assert_eq!(failed.pointer("/error/kind"), Some(&json!("failed")));
        assert_eq!(failed.pointer("/error/code"), Some(&Value::Null));
    }
}
