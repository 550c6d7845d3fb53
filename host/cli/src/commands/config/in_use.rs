//! What the verbs of `config` are about: the settings files, the one that applies, and its policies.

use std::path::{Path, PathBuf};

use portcullis_bootstrap::loaded_settings;
use portcullis_bootstrap::policies::{self, Shown};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::config::SettingsChoice;
use portcullis_settings::{Places, RealDisk, Resolved, discover};
use portcullis_settings_format::ConfigError;

/// Returns the paths of settings and protected files.
pub(crate) fn places(around: &ProcessEnv, place: &SettingsChoice) -> anyhow::Result<Places> {
    let project = place.project.as_deref().unwrap_or(&around.cwd);
    loaded_settings::places(around, project, place.settings.as_deref())
}

/// Loads the policies of the settings as a session would.
pub(super) fn chain(around: &ProcessEnv, resolved: &Resolved) -> anyhow::Result<Vec<Shown>> {
    policies::shown(resolved, &around.cache.join("policies"), &around.agent_directory)
}

/// Returns the file that applies here, or would; if a file has a mistake, that one.
pub(super) fn file_in_use(places: &Places) -> anyhow::Result<PathBuf> {
    match discover(places, &RealDisk) {
        Ok(found) => Ok(found.source.file().map_or_else(|| places.default_file(), Path::to_owned)),
        Err(
            ConfigError::Invalid { file, .. }
            | ConfigError::Read { file, .. }
            | ConfigError::Unusable { file, .. },
        ) => Ok(file),
        Err(error) => Err(error.into()),
    }
}
