//! `portcullis manual`: the manual pages, one for each command.

use anyhow::Context as _;

use super::completions::typed;
use crate::args::Manual;
use crate::exit::Exit;

/// Writes the pages of all commands that users type.
pub(crate) fn run(manual: &Manual) -> crate::exit::Outcome {
    clap_mangen::generate_to(typed(), &manual.directory)
        .with_context(|| format!("writing manual pages to `{}`", manual.directory.display()))?;
    Ok(Exit::Done)
}
