//! `portcullis manual`: the manual pages, one for each command.

use anyhow::Context as _;
use portcullis_command_line::args::Manual;
use portcullis_command_line::exit::{self, Exit};

use super::completions::typed;

/// Writes the pages of all commands that users type.
pub(crate) fn run(manual: &Manual) -> exit::Outcome {
    clap_mangen::generate_to(typed(), &manual.directory)
        .with_context(|| format!("writing manual pages to `{}`", manual.directory.display()))?;
    Ok(Exit::Done)
}
