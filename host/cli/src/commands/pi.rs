//! `portcullis pi`: starts pi with the extension loaded.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use portcullis_bootstrap::loaded_settings::{self, Wanted};
use portcullis_bootstrap::process_env::{ALLOW, ProcessEnv};
use portcullis_bootstrap::streams::say;
use portcullis_bootstrap::untrusted_paths::UntrustedPaths;
use portcullis_command_line::args::Pi;
use portcullis_command_line::exit::{self, Exit, RUN_FAILED};
use portcullis_server::contain::{self, CONTAIN};
use serde_json::Value;
#[cfg(target_os = "linux")]
use {
    portcullis_bootstrap::process_env::BRANCH,
    rustix::process::{Pid, Signal, kill_process},
    signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM},
    signal_hook::iterator::Signals,
    std::os::unix::process::ExitStatusExt as _,
    std::thread,
};

#[cfg(target_os = "linux")]
use crate::commands::branch as branches;
use crate::commands::{migrate, pi_extension};

/// Variable with the original PATH, for the extension.
const WHOLE_PATH: &str = "PORTCULLIS_PATH";

/// Executes pi; returns only if that fails.
pub(crate) fn run(pi: &Pi) -> exit::Outcome {
    let mut around = ProcessEnv::read()?;
    around.ensure_outside()?;
    around.allow.extend(pi.allow.iter().cloned());
    let mut arguments = pi.arguments.clone();
    // Remove the word at any position: pi would ignore it, and the user would rely on a sandbox.
    arguments.retain(|word| word != CONTAIN);
    let is_contained = pi.contain || arguments.len() < pi.arguments.len();
    let branch = branch(pi, &mut arguments);
    let reach = loaded_settings::reach(&around, &around.cwd);
    let program = around.find_program("pi".as_ref(), &reach).context(
        "there is no `pi` on PATH outside of what commands may write; install it with `npm install -g \
         @earendil-works/pi-coding-agent`",
    )?;
    let extension = pi_extension::unpack(&around.data)?;
    let is_approved = arguments.iter().any(|word| word == APPROVE);
    if let Some(found) = code_of_project(&around.cwd)
        && is_trustful(&program, &reach)?
    {
        arguments.retain(|word| word != APPROVE);
        if !is_approved {
            bail!(
                "this version of pi would run what the project brings along ({found}) with your rights and outside the \
                 sandbox; look at it, then start with `{APPROVE}`, or take pi 1.x, which asks"
            );
        }
    }
    let is_verb = is_verb_of_pi(arguments.first());
    if !is_verb {
        warn_of_others(&around);
    }
    if branch.is_some() && is_contained {
        bail!("`--branch` and `{CONTAIN}` exclude each other: pi itself would change the project");
    }
    if is_contained {
        if is_verb {
            bail!("`pi {}` changes pi itself; run it without `{CONTAIN}`", verb_of(&arguments));
        }
        let variables = kept_path(&reach)?;
        let start = contain::Start { program, extension, arguments, variables, trusted: is_approved };
        return Ok(Exit::Command(contain::run(&around, &start)?.unwrap_or(RUN_FAILED)));
    }
    let mut command = Command::new(&program);
    if !is_verb {
        command.arg("-e").arg(&extension);
    }
    command.envs(kept_path(&reach)?);
    if !around.allow.is_empty() {
        // Read here, so that a mistake is told before pi starts.
        loaded_settings::load(&around, &Wanted::judging(around.cwd.clone(), None))?;
        command.env(ALLOW, around.allow.join("\n"));
    }
    command.args(&arguments).env("PORTCULLIS_HOST", &around.executable);
    if let Some(name) = branch.filter(|_| !is_verb) {
        return in_branch(&around, command, &name);
    }
    let error = command.exec();
    Err(error).with_context(|| format!("starting `{}`", program.display()))
}

/// Returns the branch that the user wants. The word is removed at any position: pi would ignore it, and the user would
/// rely on a branch.
fn branch(pi: &Pi, arguments: &mut Vec<OsString>) -> Option<String> {
    let mut found = pi.branch.clone();
    arguments.retain(|word| {
        let Some(rest) = word.to_str().and_then(|word| word.strip_prefix("--branch")) else { return true };
        match rest.strip_prefix('=') {
            None if !rest.is_empty() => return true,
            name => found = Some(name.unwrap_or_default().to_owned()),
        }
        false
    });
    found
}

/// Runs pi in a branch, and shows the branch when pi has ended.
#[cfg(target_os = "linux")]
fn in_branch(around: &ProcessEnv, mut command: Command, name: &str) -> exit::Outcome {
    if command.get_args().any(|word| word.as_encoded_bytes().starts_with(b"--no-sandbox")) {
        bail!("`--no-sandbox` and `--branch` exclude each other; leave one of them out");
    }
    let name = branches::reserve(around, name)?;
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP]).context("catching signals")?;
    let mut child = command.env(BRANCH, &name).spawn().context("starting pi")?;
    let pi = Pid::from_child(&child);
    let handle = signals.handle();
    let ended = thread::scope(|scope| {
        scope.spawn(move || {
            for signal in signals.forever() {
                // A terminal sends the others to pi as well.
                let passed = match signal {
                    SIGTERM => Signal::TERM,
                    SIGHUP => Signal::HUP,
                    _ => continue,
                };
                // pi may have ended meanwhile.
                let _sent = kill_process(pi, passed);
            }
        });
        let ended = child.wait();
        handle.close();
        ended
    });
    let ended = ended.context("waiting for pi")?;
    branches::after_pi(around, &name)?;
    let code = ended.code().or_else(|| ended.signal().map(|signal| 128 + signal));
    Ok(Exit::Command(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(RUN_FAILED)))
}

/// Fails: there are no branches on this system.
#[cfg(not(target_os = "linux"))]
fn in_branch(_around: &ProcessEnv, _command: Command, _name: &str) -> exit::Outcome {
    bail!("branches need a sandbox for commands, which this system does not have")
}

/// Names extensions of other sandboxes, over which pi stops, and the command that removes each.
fn warn_of_others(around: &ProcessEnv) {
    for old in migrate::old_extensions(around, &around.cwd) {
        say(&format!("portcullis: {}", old.warning()));
    }
}

/// The option of pi 1.x for trusting a project.
const APPROVE: &str = "--approve";

/// Returns which files of the project pi would run as part of itself, if any.
fn code_of_project(project: &Path) -> Option<&'static str> {
    let own = project.join(".pi");
    if std::fs::read_dir(own.join("extensions")).is_ok_and(|mut entries| entries.next().is_some()) {
        return Some("`.pi/extensions`");
    }
    let settings = std::fs::read(own.join("settings.json"));
    settings.is_ok_and(|text| names_code(&text)).then_some("what `.pi/settings.json` names")
}

/// Keys of pi's settings that name code: parts of itself, or programs that it starts.
const NAMES_OF_CODE: [&str; 4] = ["extensions", "packages", "npmCommand", "shellPath"];

/// Returns true if settings may name code.
///
/// Text that pi may read differently counts as code: invalid JSON for us can be valid for pi, and pi takes a string in
/// place of a list as a list of characters.
fn names_code(settings: &[u8]) -> bool {
    let Ok(settings) = serde_json::from_slice::<Value>(settings) else { return true };
    NAMES_OF_CODE.into_iter().filter_map(|key| settings.get(key)).any(|value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    })
}

/// Returns true if this version of pi runs a project's code without asking.
fn is_trustful(program: &Path, reach: &UntrustedPaths) -> anyhow::Result<bool> {
    Ok(said_version(program, reach)?.lines().any(|line| line.trim().starts_with("0.")))
}

/// Returns the output of `pi --version`.
fn said_version(program: &Path, reach: &UntrustedPaths) -> anyhow::Result<String> {
    let mut command = Command::new(program);
    command.envs(kept_path(reach)?);
    let said = command.arg("--version").current_dir("/").stdin(Stdio::null()).output();
    let said = said.with_context(|| format!("asking `{}` for its version", program.display()))?;
    // 0.x prints it on standard error.
    Ok(String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned())
}

/// The pi that `portcullis pi` would start.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FoundPi {
    pub(crate) program: PathBuf,
    /// Its version, if it tells it.
    pub(crate) version: Option<String>,
}

/// Returns the pi on PATH that commands cannot replace.
pub(crate) fn find(around: &ProcessEnv) -> Option<FoundPi> {
    let reach = loaded_settings::reach(around, &around.cwd);
    let program = around.find_program("pi".as_ref(), &reach)?;
    let said = said_version(&program, &reach).unwrap_or_default();
    let is_version = |line: &&str| line.starts_with(|first: char| first.is_ascii_digit()) && line.len() <= 40;
    let version = said.lines().map(str::trim).find(is_version).map(str::to_owned);
    Some(FoundPi { program, version })
}

/// Returns variables with a PATH for pi that has only directories that commands cannot write.
///
/// pi starts programs by name (`node`, `fd`, `rg`, `git`). The extension passes the full PATH to commands.
fn kept_path(reach: &UntrustedPaths) -> anyhow::Result<Vec<(String, String)>> {
    let Some(whole) = std::env::var_os("PATH") else { return Ok(Vec::new()) };
    let is_kept = |directory: &PathBuf| directory.is_absolute() && !reach.holds(directory);
    let kept = std::env::join_paths(std::env::split_paths(&whole).filter(is_kept));
    let kept = kept.context("taking directories out of PATH")?;
    let text = |path: OsString| {
        path.into_string().ok().context("PATH contains entries that are not text; remove them")
    };
    Ok(match kept != whole {
        true => vec![("PATH".to_owned(), text(kept)?), (WHOLE_PATH.to_owned(), text(whole)?)],
        false => Vec::new(),
    })
}

/// Commands of pi that need no session. With `-e` in front, pi would take such a word for a prompt.
const VERBS_OF_PI: [&str; 6] = ["config", "install", "list", "remove", "uninstall", "update"];

fn verb_of(arguments: &[OsString]) -> String {
    arguments.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
}

fn is_verb_of_pi(first: Option<&OsString>) -> bool {
    first.is_some_and(|first| VERBS_OF_PI.iter().any(|verb| first == verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_a_project_brings_along() {
        let project = tempfile::tempdir().unwrap();
        let own = project.path().join(".pi");
        assert_eq!(code_of_project(project.path()), None);
        std::fs::create_dir_all(own.join("extensions")).unwrap();
        assert_eq!(code_of_project(project.path()), None);
        for (settings, is_code) in [
            ("{}", false),
            (r#"{"packages":[]}"#, false),
            (r#"{"packages":null,"theme":"dark"}"#, false),
            (r#"{"packages":["npm:x"]}"#, true),
            (r#"{"packages":"p"}"#, true),
            (r#"{"extensions":"e"}"#, true),
            (r#"{"npmCommand":["./npm"]}"#, true),
            // JavaScript accepts these, and serde does not.
            (r#"{"x":"\ud800","extensions":["./evil.ts"]}"#, true),
            (r#"{"x":1e999,"extensions":["./evil.ts"]}"#, true),
        ] {
            std::fs::write(own.join("settings.json"), settings).unwrap();
            assert_eq!(code_of_project(project.path()).is_some(), is_code, "{settings}");
        }
        std::fs::write(own.join("extensions/x.ts"), "").unwrap();
        assert_eq!(code_of_project(project.path()), Some("`.pi/extensions`"));
    }
}
