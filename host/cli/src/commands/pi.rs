//! `portcullis pi`: starts pi with the extension loaded.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::Context as _;

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
    let mut command = Command::new(&program);
    if !is_verb_of_pi(pi.arguments.first()) {
        command.arg("-e").arg(&extension);
    }
    let error = command.args(&pi.arguments).env("PORTCULLIS_HOST", &around.executable).exec();
    Err(error).with_context(|| format!("starting `{}`", program.display()))
}

/// What pi does by itself, without a session; with `-e` in front it would take the word for a prompt.
const VERBS_OF_PI: [&str; 6] = ["config", "install", "list", "remove", "uninstall", "update"];

fn is_verb_of_pi(first: Option<&OsString>) -> bool {
    first.is_some_and(|first| VERBS_OF_PI.iter().any(|verb| first == verb))
}
