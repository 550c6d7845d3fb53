//! `portcullis pi`: starts pi with the extension loaded.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::args::Pi;
use crate::commands::pi_extension;
use crate::contain::{self, CONTAIN};
use crate::reach::Reach;
use crate::surroundings::Surroundings;
use crate::wire;

/// Tells the extension what PATH was before.
const WHOLE_PATH: &str = "PORTCULLIS_PATH";

/// Becomes pi; returns only when that fails.
pub(crate) fn run(pi: &Pi) -> crate::Outcome {
    let around = Surroundings::read()?;
    let mut arguments = pi.arguments.clone();
    // Wherever it stands: a word that pi ignores must not be taken for a sandbox.
    arguments.retain(|word| word != CONTAIN);
    let is_contained = pi.contain || arguments.len() < pi.arguments.len();
    let reach = wire::reach(&around, &around.cwd);
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
    if is_contained {
        if is_verb {
            bail!("`pi {}` changes pi itself; run it without `{CONTAIN}`", verb_of(&arguments));
        }
        let variables = kept_path(&reach)?;
        let start = contain::Start { program, extension, arguments, variables, trusted: is_approved };
        return contain::run(&around, start);
    }
    let mut command = Command::new(&program);
    if !is_verb {
        command.arg("-e").arg(&extension);
    }
    command.envs(kept_path(&reach)?);
    let error = command.args(&arguments).env("PORTCULLIS_HOST", &around.executable).exec();
    Err(error).with_context(|| format!("starting `{}`", program.display()))
}

/// What pi 1.x calls it when the user trusts a project.
const APPROVE: &str = "--approve";

/// What a project has that pi would run as a part of itself.
fn code_of_project(project: &Path) -> Option<&'static str> {
    let own = project.join(".pi");
    if std::fs::read_dir(own.join("extensions")).is_ok_and(|mut entries| entries.next().is_some()) {
        return Some("`.pi/extensions`");
    }
    let settings = std::fs::read(own.join("settings.json"));
    settings.is_ok_and(|text| names_code(&text)).then_some("what `.pi/settings.json` names")
}

/// The settings by which pi takes code: as a part of itself, or as the programs that it starts by itself.
const NAMES_OF_CODE: [&str; 4] = ["extensions", "packages", "npmCommand", "shellPath"];

/// Whether settings may name code. What is read here in another way than in pi must not count as none: a file that is
/// no JSON for us may be some for it, and a text in the place of a list is a list of letters to it.
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

/// Whether this pi does not ask before it runs what a project brings along.
fn is_trustful(program: &Path, reach: &Reach) -> anyhow::Result<bool> {
    let mut command = Command::new(program);
    command.envs(kept_path(reach)?);
    let said = command.arg("--version").current_dir("/").output();
    let said = said.with_context(|| format!("asking `{}` for its version", program.display()))?;
    // 0.x says it on standard error.
    let version = [said.stdout, said.stderr].concat();
    Ok(String::from_utf8_lossy(&version).lines().any(|line| line.trim().starts_with("0.")))
}

/// pi starts programs by their names (`node`, `fd`, `rg`, `git`), so it gets the directories of PATH that commands
/// cannot write. The extension gives the whole PATH to commands.
fn kept_path(reach: &Reach) -> anyhow::Result<Vec<(String, String)>> {
    let Some(whole) = std::env::var_os("PATH") else { return Ok(Vec::new()) };
    let is_kept = |directory: &PathBuf| directory.is_absolute() && !reach.holds(directory);
    let kept = std::env::join_paths(std::env::split_paths(&whole).filter(is_kept));
    let kept = kept.context("taking directories out of PATH")?;
    let text = |path: OsString| path.into_string().ok().context("PATH is not text; take out what is not");
    Ok(match kept != whole {
        true => vec![("PATH".to_owned(), text(kept)?), (WHOLE_PATH.to_owned(), text(whole)?)],
        false => Vec::new(),
    })
}

/// What pi does by itself, without a session; with `-e` in front it would take the word for a prompt.
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
            // JavaScript reads these, and serde does not.
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
