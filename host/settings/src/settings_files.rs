//! The paths of settings files in the two layouts.

use std::path::{Path, PathBuf};

use portcullis_settings_format::fault::invalid;
use portcullis_settings_format::layout_choice::chosen;
use portcullis_settings_format::{ConfigError, FileKind, Layer, Layout};

use crate::disk::Disk;
use crate::places::Places;
use crate::settings_text;

/// Returns the files that can only tighten.
pub(crate) fn tightening_files(places: &Places, layout: Layout) -> Vec<(PathBuf, Layer)> {
    let mut files = vec![(places.machine_file(), Layer::Machine), (places.project_file(), Layer::Project)];
    if layout == Layout::Layered {
        files.push((places.layered_project_file(), Layer::Sandbox));
    }
    files
}

/// The user's settings files in the chosen layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFiles {
    /// The layout.
    pub layout: Layout,
    /// The file for all projects.
    pub default: PathBuf,
    /// The file with one entry per project, keyed by directory.
    pub entries: PathBuf,
}

impl SettingsFiles {
    /// Finds the files of the layout that `default.json` chooses.
    ///
    /// # Errors
    /// When `default.json` exists but cannot be used.
    pub fn find(places: &Places, disk: &dyn Disk) -> Result<Self, ConfigError> {
        let file = places.default_file();
        let layout = match settings_text::read(&file, disk)? {
            None => Layout::Projects,
            Some(text) => chosen(&text).map_err(|fault| invalid(&file, fault))?,
        };
        Ok(Self::in_layout(places, layout))
    }

    pub(crate) fn in_layout(places: &Places, layout: Layout) -> Self {
        let (default, entries) = match layout {
            Layout::Projects => (places.default_file(), places.projects_file()),
            Layout::Layered => (places.layered_file(), places.layered_entries_file()),
        };
        Self { layout, default, entries }
    }

    /// Returns the name of the file for all projects, for messages.
    #[must_use]
    pub fn default_name(&self) -> &'static str {
        match self.layout {
            Layout::Projects => "default.json",
            Layout::Layered => "extensions/sandbox.json",
        }
    }

    /// Returns the name of the file with one entry per project, for messages.
    #[must_use]
    pub fn entries_name(&self) -> &'static str {
        match self.layout {
            Layout::Projects => "projects.json",
            Layout::Layered => "layered.json",
        }
    }

    /// Returns the kind of the file for all projects.
    #[must_use]
    pub fn default_kind(&self) -> FileKind {
        match self.layout {
            Layout::Projects => FileKind::Settings,
            Layout::Layered => FileKind::Part,
        }
    }

    /// Returns the kind of the file with one entry per project.
    #[must_use]
    pub fn entries_kind(&self) -> FileKind {
        match self.layout {
            Layout::Projects => FileKind::Projects,
            Layout::Layered => FileKind::Parts,
        }
    }
}

impl Places {
    /// Returns the file with the user's settings for all projects.
    #[must_use]
    pub fn default_file(&self) -> PathBuf {
        self.sandbox_directory().join("default.json")
    }

    /// Returns the file with the user's settings for single projects.
    #[must_use]
    pub fn projects_file(&self) -> PathBuf {
        self.sandbox_directory().join("projects.json")
    }

    /// Returns the file with the user's settings for all projects in the layered layout.
    ///
    /// Its path is that of `@sysid/pi-sandbox`.
    #[must_use]
    pub fn layered_file(&self) -> PathBuf {
        self.agent_directory.join("extensions/sandbox.json")
    }

    /// Returns the file with the user's settings for single projects in the layered layout.
    #[must_use]
    pub fn layered_entries_file(&self) -> PathBuf {
        self.sandbox_directory().join("layered.json")
    }

    /// Returns the project's own file in the layered layout, which can only tighten.
    #[must_use]
    pub fn layered_project_file(&self) -> PathBuf {
        self.workspace.join(".pi/sandbox.json")
    }

    /// Returns all paths of settings files, in any layout.
    #[must_use]
    pub fn settings_files(&self) -> Vec<PathBuf> {
        let mut files = vec![
            self.default_file(),
            self.projects_file(),
            self.layered_file(),
            self.layered_entries_file(),
            self.machine_file(),
            self.project_file(),
            self.layered_project_file(),
        ];
        files.extend(self.settings.clone());
        files
    }

    /// Returns true if a file is the machine's or the project's, at its usual path.
    #[must_use]
    pub fn is_of_others(&self, file: &Path) -> bool {
        [self.machine_file(), self.project_file(), self.layered_project_file()].iter().any(|one| one == file)
    }
}
