//! The test programs of the workspace: built by cargo, run by us, so that the slow ones run side by side.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::ledger::Ledger;
use super::runner::{self, Environment};
use crate::project;
use crate::run::say;

/// Which test programs are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// All.
    All,
    /// Those that need no sandbox, no pi and no built policies.
    Quick,
}

/// Who runs the tests of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Harness {
    /// Rust's own, which runs tests side by side.
    Rust,
    /// `portcullis-each-user`, which runs them one after the other, as root and as an ordinary user.
    EachUser,
}

/// A test program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// `crate` for unit tests, `crate/target` for others.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// The crate's directory, in which cargo runs tests.
    pub(super) directory: PathBuf,
    pub(super) harness: Harness,
}

/// Programs that take long, the longest first: the others fill the time that these leave.
const SLOW: [&str; 6] = [
    "portcullis-it/it",
    "portcullis-confine/kernel",
    "portcullis-policy-runtime/it",
    "portcullis-session/session",
    "portcullis-shell/differential",
    "portcullis-file-gate/gate",
];

/// Programs of the quick run's exclusions beside the slow ones: they need built guests.
const NEED_GUESTS: [&str; 2] = ["portcullis-workbench", "portcullis-workbench/shipped"];

/// Programs with a harness of their own.
const EACH_USER: [&str; 2] = ["portcullis-confine/kernel", "portcullis-file-gate/gate"];

/// Builds the test programs and runs those of `choice`.
pub(super) fn test(ledger: &mut Ledger, choice: Choice, environment: &Environment) {
    let start = Instant::now();
    say("building the tests ...");
    match build() {
        Ok(programs) => {
            ledger.took("building the tests", start.elapsed());
            runner::run(ledger, ordered(programs, choice), environment);
        }
        Err(error) => ledger.record("building the tests", start.elapsed(), Err(error)),
    }
}

/// Returns the programs of `choice`, the slow ones first.
fn ordered(programs: Vec<Program>, choice: Choice) -> Vec<Program> {
    let rank = |program: &Program| SLOW.iter().position(|slow| *slow == program.name).unwrap_or(SLOW.len());
    let is_chosen = |program: &Program| {
        choice == Choice::All
            || (rank(program) == SLOW.len() && !NEED_GUESTS.contains(&program.name.as_str()))
    };
    let mut chosen: Vec<Program> = programs.into_iter().filter(is_chosen).collect();
    chosen.sort_by_key(rank);
    chosen
}

fn build() -> Result<Vec<Program>> {
    let mut cargo = project::cargo();
    // Errors of the compiler go to standard error as people read them, the list of programs to standard output.
    cargo.args(["test", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"]);
    let output = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("starting cargo")?;
    if !output.status.success() {
        bail!("the tests do not build");
    }
    let text = String::from_utf8(output.stdout).context("reading cargo's list of programs")?;
    let mut programs = Vec::new();
    for line in text.lines() {
        let message: Value = serde_json::from_str(line).context("reading cargo's list of programs")?;
        programs.extend(program(&message));
    }
    if programs.is_empty() {
        bail!("cargo named no test program");
    }
    Ok(programs)
}

/// Reads a test program from one of cargo's messages.
fn program(message: &Value) -> Option<Program> {
    let is_test = message.pointer("/profile/test")?.as_bool()?;
    let path = message.get("executable")?.as_str().filter(|_| is_test)?;
    let manifest = PathBuf::from(message.get("manifest_path")?.as_str()?);
    let directory = manifest.parent()?.to_owned();
    let kind = message.pointer("/target/kind/0")?.as_str()?;
    let target = message.pointer("/target/name")?.as_str()?;
    let package = package_name(message.get("package_id")?.as_str()?)?;
    let name = if kind == "test" || kind == "bin" { format!("{package}/{target}") } else { package };
    let harness = if EACH_USER.contains(&name.as_str()) { Harness::EachUser } else { Harness::Rust };
    Some(Program { name, path: path.into(), directory, harness })
}

/// Reads the package's name from an id: `path+file:///clone/host/names#portcullis-names@0.1.0`, or without the name
/// where the directory has the same.
fn package_name(id: &str) -> Option<String> {
    let (source, fragment) = id.split_once('#')?;
    let name = fragment.split_once('@').map(|(name, _)| name).or_else(|| source.rsplit('/').next())?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(kind: &str, name: &str, is_test: bool) -> Value {
        json!({
            "package_id": "path+file:///c/host/names#portcullis-names@0.1.0",
            "manifest_path": "/c/host/names/Cargo.toml",
            "target": { "kind": [kind], "name": name },
            "profile": { "test": is_test },
            "executable": "/t/names-1",
        })
    }

    #[test]
    fn programs_are_named_after_crate_and_target() {
        let name = |kind, target| program(&message(kind, target, true)).map(|program| program.name);
        assert_eq!(name("lib", "portcullis_names"), Some("portcullis-names".to_owned()));
        assert_eq!(name("test", "all"), Some("portcullis-names/all".to_owned()));
        assert_eq!(program(&message("bin", "portcullis", false)), None);
        assert_eq!(package_name("path+file:///c/xtask#0.1.0"), Some("xtask".to_owned()));
    }

    #[test]
    fn a_quick_run_leaves_out_the_slow_programs() {
        let named = |name: &str| Program {
            name: name.to_owned(),
            path: PathBuf::new(),
            directory: PathBuf::new(),
            harness: Harness::Rust,
        };
        let programs = || ["portcullis-names/all", "portcullis-it/it"].map(named).to_vec();
        let names = |choice| -> Vec<String> {
            ordered(programs(), choice).into_iter().map(|program| program.name).collect()
        };
        assert_eq!(names(Choice::All), ["portcullis-it/it", "portcullis-names/all"]);
        assert_eq!(names(Choice::Quick), ["portcullis-names/all"]);
    }
}
