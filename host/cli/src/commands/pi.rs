//! `portcullis pi`: starts pi with the extension loaded.

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
    let error = Command::new(&program)
        .arg("-e")
        .arg(&extension)
        .args(&pi.arguments)
        .env("PORTCULLIS_HOST", &around.executable)
        .exec();
    Err(error).with_context(|| format!("starting `{}`", program.display()))
}
