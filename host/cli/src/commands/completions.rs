//! `portcullis completions`.

use clap::CommandFactory as _;

use crate::args::{Arguments, Completions};
use crate::exit::Exit;

/// Prints the completion script for a shell.
pub(crate) fn run(wanted: &Completions) -> crate::Outcome {
    let mut script = Vec::new();
    clap_complete::generate(wanted.shell, &mut Arguments::command(), "portcullis", &mut script);
    std::io::Write::write_all(&mut std::io::stdout().lock(), &script)?;
    Ok(Exit::Done)
}
