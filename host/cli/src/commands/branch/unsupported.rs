//! On this system there are no branches.

use std::sync::Arc;

use anyhow::bail;
use portcullis_bootstrap::loaded_settings::{LoadedSettings, Wanted};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::session::OpenSession;
use portcullis_command_line::args::branch;
use portcullis_command_line::exit::Outcome;
use portcullis_session::Prompter;

const REFUSED: &str = "branches need overlay mounts, which only Linux has";

/// Runs `branch`.
pub(crate) fn run(_verb: branch::Branch) -> Outcome {
    bail!(REFUSED)
}

/// Returns the names of branches, for completion.
pub(crate) fn names(_around: &ProcessEnv) -> anyhow::Result<Vec<String>> {
    Ok(Vec::new())
}

/// The branch in which a command runs; there is none on this system.
pub(crate) enum Branch {}

impl Branch {
    pub(crate) fn begin(_around: &ProcessEnv, _loaded: &LoadedSettings, _name: &str) -> anyhow::Result<Self> {
        bail!(REFUSED)
    }

    pub(crate) fn session(
        &self,
        _around: &ProcessEnv,
        _wanted: &Wanted,
        _loaded: LoadedSettings,
        _prompter: Arc<dyn Prompter>,
    ) -> anyhow::Result<OpenSession> {
        match *self {}
    }

    pub(crate) fn end(self) -> anyhow::Result<()> {
        match self {}
    }
}
