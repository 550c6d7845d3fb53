//! The paths of the environment, which the caller passes in: this crate reads no environment variables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use portcullis_settings_format::ConfigError;

use crate::allow_item::AllowItem;
use crate::disk::{Disk, follow};

/// The paths that settings depend on. Each is absolute; none must exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The directory the agent was started in.
    pub workspace: PathBuf,
    /// The caller's home directory; `~` in settings.
    pub home: PathBuf,
    /// Further home directories of the caller, from the user database.
    pub other_homes: Vec<PathBuf>,
    /// The agent's own directory: `~/.pi/agent`, or the value of `PI_CODING_AGENT_DIR`.
    pub agent_directory: PathBuf,
    /// Directory of the machine's settings: `/etc/portcullis`.
    pub machine_directory: PathBuf,
    /// Directory of the host's state, such as the audit log.
    pub state_directory: PathBuf,
    /// Directory of compiled policies.
    pub cache_directory: PathBuf,
    /// The temporary directory as commands and tools see it.
    pub temp: PathBuf,
    /// Programs that decide about the agent or start it: the host's binary, the extension, pi and its runtime.
    pub programs: Vec<PathBuf>,
    /// The directories of PATH, in order.
    pub path: Vec<PathBuf>,
    /// Roots of toolchains outside the system directories (`~/.cargo`, `~/.nvm`, ...).
    pub toolchains: Vec<PathBuf>,
    /// The directory of the user's GnuPG, if a variable names one.
    pub gnupg: Option<PathBuf>,
    /// The file named on the command line, which replaces the user's settings.
    pub settings: Option<PathBuf>,
    /// The agent's name, if the program that starts it gave it one.
    pub agent: String,
    /// Whether `/tmp` is the session's own in any case.
    pub keeps_tmp: bool,
    /// Permissions for this session only.
    pub allow: Vec<AllowItem>,
    /// What the bundle of a team contributes.
    pub team: Option<TeamSettings>,
}

/// Settings and presets of a team's bundle, whose signatures the caller has checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TeamSettings {
    /// The file with the bundle.
    pub file: PathBuf,
    /// Settings that only tighten, as JSON.
    pub settings: String,
    /// The texts of presets, by name. One of the program or the user with the same name has priority.
    pub presets: BTreeMap<String, String>,
    /// What the user should know of the bundle.
    pub warnings: Vec<String>,
}

impl Places {
    /// Returns the usual paths for a workspace and a home directory.
    ///
    /// ```
    /// use std::path::Path;
    /// let places = portcullis_settings::Places::usual(Path::new("/srv/app"), Path::new("/home/u"));
    /// assert_eq!(places.sandbox_directory(), Path::new("/home/u/.pi/agent/sandbox"));
    /// ```
    #[must_use]
    pub fn usual(workspace: &Path, home: &Path) -> Self {
        Self {
            workspace: workspace.to_owned(),
            home: home.to_owned(),
            other_homes: Vec::new(),
            agent_directory: home.join(".pi/agent"),
            machine_directory: PathBuf::from("/etc/portcullis"),
            state_directory: home.join(".local/state/portcullis"),
            cache_directory: home.join(".cache/portcullis"),
            temp: PathBuf::from("/tmp"),
            programs: Vec::new(),
            path: Vec::new(),
            toolchains: Vec::new(),
            gnupg: None,
            settings: None,
            agent: String::new(),
            keeps_tmp: false,
            allow: Vec::new(),
            team: None,
        }
    }

    /// Returns the directory of the user's settings and policies.
    #[must_use]
    pub fn sandbox_directory(&self) -> PathBuf {
        self.agent_directory.join("sandbox")
    }

    /// Returns the directory of the user's own presets.
    #[must_use]
    pub fn presets_directory(&self) -> PathBuf {
        self.sandbox_directory().join("presets")
    }

    /// Returns the directory of the user's texts for agents.
    #[must_use]
    pub fn agents_directory(&self) -> PathBuf {
        self.sandbox_directory().join("agents")
    }

    /// Returns the project's own settings file, which can only tighten.
    #[must_use]
    pub fn project_file(&self) -> PathBuf {
        self.workspace.join(".pi/portcullis.json")
    }

    /// Returns the machine's settings file, which can only tighten.
    #[must_use]
    pub fn machine_file(&self) -> PathBuf {
        self.machine_directory.join("settings.json")
    }

    /// Returns the canonical workspace.
    pub(crate) fn canonical_workspace(&self, disk: &dyn Disk) -> Result<PathBuf, ConfigError> {
        absolute(&self.workspace, "the working directory")?;
        canonical(&self.workspace, disk)
    }

    /// Returns the canonical home directories of the caller; `~` is the first.
    pub(crate) fn canonical_homes(&self, disk: &dyn Disk) -> Result<Vec<PathBuf>, ConfigError> {
        let homes = std::iter::once(&self.home).chain(&self.other_homes);
        homes.map(|home| absolute(home, "the home directory").and_then(|()| canonical(home, disk))).collect()
    }
}

pub(crate) fn absolute(path: &Path, what: &'static str) -> Result<(), ConfigError> {
    if path.is_absolute() { Ok(()) } else { Err(ConfigError::NotAbsolute { path: path.to_owned(), what }) }
}

pub(crate) fn canonical(path: &Path, disk: &dyn Disk) -> Result<PathBuf, ConfigError> {
    follow(path, disk)
        .map(|followed| followed.canonical)
        .map_err(|source| ConfigError::Path { path: path.to_owned(), source })
}
