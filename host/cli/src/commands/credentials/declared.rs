//! The credentials of the settings that apply here.

use portcullis_bootstrap::loaded_settings::{self, LoadedSettings, Wanted};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::config::SettingsChoice;

/// Returns the names of the credentials that apply here.
pub(in crate::commands) fn names(around: &ProcessEnv) -> anyhow::Result<Vec<String>> {
    let resolved = loaded(around)?.resolved;
    let brokered = resolved.brokered.into_iter().map(|one| one.name);
    let ssh = resolved.ssh.into_iter().map(|one| one.name);
    Ok(brokered.chain(ssh).chain(resolved.signing.map(|one| one.name)).collect())
}

/// Returns the settings that apply in the current directory.
pub(super) fn loaded(around: &ProcessEnv) -> anyhow::Result<LoadedSettings> {
    loaded_settings::load(around, &Wanted::judging(around.cwd.clone(), None))
}

/// Returns the chosen settings.
pub(super) fn chosen(around: &ProcessEnv, choice: &SettingsChoice) -> anyhow::Result<LoadedSettings> {
    let project = choice.project.clone().unwrap_or_else(|| around.cwd.clone());
    loaded_settings::load(around, &Wanted::judging(project, choice.settings.clone()))
}
