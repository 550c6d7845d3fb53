//! The credentials of the settings that apply here.

use portcullis_bootstrap::loaded_settings::{self, LoadedSettings, Wanted};
use portcullis_bootstrap::process_env::ProcessEnv;

/// Returns the names of the credentials that apply here.
pub(in crate::commands) fn names(around: &ProcessEnv) -> anyhow::Result<Vec<String>> {
    let resolved = loaded(around)?.resolved;
    let brokered = resolved.brokered.into_iter().map(|one| one.name);
    let ssh = resolved.ssh.into_iter().map(|one| one.name);
    Ok(brokered.chain(ssh).chain(resolved.signing.map(|one| one.name)).collect())
}

/// Returns the settings that apply here.
pub(super) fn loaded(around: &ProcessEnv) -> anyhow::Result<LoadedSettings> {
    loaded_settings::load(around, &Wanted::judging(around.cwd.clone(), None))
}
