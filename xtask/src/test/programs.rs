//! The test programs of the workspace. Cargo builds them and this module runs them, so that slow ones run in
//! parallel.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::ledger::Ledger;
use super::runner::{self, Environment, Harness, Program};
use crate::project;
use crate::run::say;

/// The test programs to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// All programs.
    All,
    /// Programs that need no sandbox, no pi and no built policies.
    Quick,
}

/// Slow programs, the slowest first. The others fill the remaining time.
const SLOW: [&str; 8] = [
    "portcullis-it/it",
    "portcullis-everyday/quick",
    "portcullis-sandbox-runtime/kernel",
    "portcullis-policy-runtime/it",
    "portcullis-session/session",
    "portcullis-shell/differential",
    "portcullis-file-gate/gate",
    PORTABLE,
];

/// Programs that need built guests. The quick run leaves them out, like the slow ones.
const NEED_GUESTS: [&str; 2] = ["portcullis-policy-tools", "portcullis-policy-tools/shipped"];

/// Programs that use `portcullis-each-user`.
const EACH_USER: [&str; 3] =
    ["portcullis-sandbox-runtime/kernel", "portcullis-profile-runtime/launcher", "portcullis-file-gate/gate"];

/// The tests of the file gate, against the gate of systems other than Linux.
const PORTABLE: &str = "portcullis-file-gate/gate-portable";

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
    let mut programs = build_with(&["--workspace"])?;
    let portable = build_with(&[
        "--package",
        "portcullis-file-gate",
        "--features",
        "portable",
        "--lib",
        "--test",
        "gate",
    ])?;
    programs.extend(portable.into_iter().map(|program| Program {
        name: match program.harness {
            Harness::EachUser => PORTABLE.to_owned(),
            Harness::Rust => format!("{}/portable", program.name),
        },
        ..program
    }));
    Ok(programs)
}

fn build_with(what: &[&str]) -> Result<Vec<Program>> {
    let mut cargo = project::cargo();
    // The compiler's errors go to standard error in readable form, the list of programs to standard output.
    cargo.args(["test", "--no-run", "--message-format", "json-render-diagnostics"]).args(what);
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

/// Parses a test program from one of cargo's messages.
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

/// Parses the package name from an id: `path+file:///clone/host/exec-surface#portcullis-exec-surface@0.1.0`.
///
/// The id omits the name if it equals that of the directory.
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
            "package_id": "path+file:///c/host/exec-surface#portcullis-exec-surface@0.1.0",
            "manifest_path": "/c/host/exec-surface/Cargo.toml",
            "target": { "kind": [kind], "name": name },
            "profile": { "test": is_test },
            "executable": "/t/names-1",
        })
    }

    #[test]
    fn programs_are_named_after_crate_and_target() {
        let name = |kind, target| program(&message(kind, target, true)).map(|program| program.name);
        assert_eq!(name("lib", "portcullis_exec_surface"), Some("portcullis-exec-surface".to_owned()));
        assert_eq!(name("test", "all"), Some("portcullis-exec-surface/all".to_owned()));
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
        let programs = || ["portcullis-exec-surface/all", "portcullis-it/it"].map(named).to_vec();
        let names = |choice| -> Vec<String> {
            ordered(programs(), choice).into_iter().map(|program| program.name).collect()
        };
        assert_eq!(names(Choice::All), ["portcullis-it/it", "portcullis-exec-surface/all"]);
        assert_eq!(names(Choice::Quick), ["portcullis-exec-surface/all"]);
    }
}
