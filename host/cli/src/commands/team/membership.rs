//! The team whose verbs are carried out.

use anyhow::Context as _;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::teams::{self, Joined};

/// Returns the team of this machine or user.
pub(super) fn joined(around: &ProcessEnv) -> anyhow::Result<Joined> {
    teams::joined(&around.agent_directory)?
        .context("this machine and its user are in no team; `portcullis team join` joins one")
}
