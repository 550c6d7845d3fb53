//! `portcullis pi`: starts pi with the extension loaded.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::args::Pi;
use crate::commands::pi_extension;
use crate::surroundings::Surroundings;

/// Becomes pi; returns only when that fails.
pub(crate) fn run(pi: &Pi) -> crate::Outcome {
    let around = Surroundings::read()?;
    let program = around
        .find_program("pi".as_ref())
        .context("`pi` is not on PATH; install it with `npm install -g @earendil-works/pi-coding-agent`")?;
    let extension = pi_extension::unpack(&around.data)?;
    let mut arguments = pi.arguments.clone();
    if let Some(found) = code_of_project(&around.cwd)
        && is_trustful(&program)?
    {
        let before = arguments.len();
        arguments.retain(|word| word != APPROVE);
        if arguments.len() == before {
            bail!(
                "this version of pi would run what the project brings along ({found}) with your rights and outside the \
                 sandbox; look at it, then start with `{APPROVE}`, or take pi 1.x, which asks"
            );
        }
    }
    let mut command = Command::new(&program);
    if !is_verb_of_pi(pi.arguments.first()) {
        command.arg("-e").arg(&extension);
    }
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
    let settings: Value = serde_json::from_slice(&std::fs::read(own.join("settings.json")).ok()?).ok()?;
    let names_some = |key| settings.get(key).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    ["extensions", "packages"].into_iter().any(names_some).then_some("extensions in `.pi/settings.json`")
}

/// Whether this pi does not ask before it runs what a project brings along.
fn is_trustful(program: &Path) -> anyhow::Result<bool> {
    let said = Command::new(program).arg("--version").current_dir("/").output();
    let said = said.with_context(|| format!("asking `{}` for its version", program.display()))?;
    // 0.x says it on standard error.
    let version = [said.stdout, said.stderr].concat();
    Ok(String::from_utf8_lossy(&version).lines().any(|line| line.trim().starts_with("0.")))
}

/// What pi does by itself, without a session; with `-e` in front it would take the word for a prompt.
const VERBS_OF_PI: [&str; 6] = ["config", "install", "list", "remove", "uninstall", "update"];

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
        for (settings, is_code) in
            [("{}", false), ("[", false), (r#"{"packages":[]}"#, false), (r#"{"packages":["npm:x"]}"#, true)]
        {
            std::fs::write(own.join("settings.json"), settings).unwrap();
            assert_eq!(code_of_project(project.path()).is_some(), is_code, "{settings}");
        }
        std::fs::write(own.join("extensions/x.ts"), "").unwrap();
        assert_eq!(code_of_project(project.path()), Some("`.pi/extensions`"));
    }
}
