//! The two ways in which the user's settings can be laid out in files.

use std::path::{Path, PathBuf};

use crate::check::step;
use crate::discover;
use crate::disk::Disk;
use crate::error::{ConfigError, Problem};
use crate::json::{Fault, Node};
use crate::places::Places;
use crate::settings::invalid;
use crate::validate::FileKind;

/// How the user's settings are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// The first seed's: the entry of `projects.json` that holds is taken in full, else `default.json`.
    Projects,
    /// The second seed's: `extensions/sandbox.json` over what is built in, key by key.
    Layered,
}

/// The word that chooses [`Layout::Layered`].
const LAYERED: &str = "layered";

/// The user's settings files in the layout that they have chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFiles {
    /// The layout.
    pub layout: Layout,
    /// What holds for all projects.
    pub default: PathBuf,
    /// What holds for single ones, by their directories.
    pub entries: PathBuf,
}

impl SettingsFiles {
    /// Looks which layout `default.json` chooses.
    ///
    /// # Errors
    /// When that cannot be known, because the file is there and cannot be read.
    pub fn of(places: &Places, disk: &dyn Disk) -> Result<Self, ConfigError> {
        let file = places.default_file();
        let layout = match discover::read(&file, disk)? {
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

    /// What the file for all projects is called, for people.
    #[must_use]
    pub fn default_name(&self) -> &'static str {
        match self.layout {
            Layout::Projects => "default.json",
            Layout::Layered => "extensions/sandbox.json",
        }
    }

    /// What the file with an entry for each project is called, for people.
    #[must_use]
    pub fn entries_name(&self) -> &'static str {
        match self.layout {
            Layout::Projects => "projects.json",
            Layout::Layered => "layered.json",
        }
    }

    /// What the file for all projects holds.
    #[must_use]
    pub fn default_kind(&self) -> FileKind {
        match self.layout {
            Layout::Projects => FileKind::Settings,
            Layout::Layered => FileKind::Part,
        }
    }

    /// What the file with an entry for each project holds.
    #[must_use]
    pub fn entries_kind(&self) -> FileKind {
        match self.layout {
            Layout::Projects => FileKind::Projects,
            Layout::Layered => FileKind::Parts,
        }
    }
}

/// Which layout the text of `default.json` chooses.
pub(crate) fn chosen(text: &str) -> Result<Layout, Fault> {
    let document = crate::json::read(text)?;
    if !chooses_layered(&document) {
        return Ok(Layout::Projects);
    }
    // Whatever else stands there would hold nowhere, and the user would believe in it.
    match document.members().iter().find(|member| !["$schema", "layout"].contains(&member.key.as_str())) {
        None => Ok(Layout::Layered),
        Some(member) => {
            let reason = "in the layered layout settings stand in `extensions/sandbox.json`, move it there";
            let field = step("", &member.key);
            let problem = Problem::BadValue { field: field.clone(), reason: reason.to_owned() };
            Err(Fault { at: member.key_at, pointer: field, problem })
        }
    }
}

pub(crate) fn chooses_layered(document: &Node) -> bool {
    document.member("layout").and_then(Node::text) == Some(LAYERED)
}

impl Places {
    /// Returns the user's settings for all projects.
    #[must_use]
    pub fn default_file(&self) -> PathBuf {
        self.sandbox_directory().join("default.json")
    }

    /// Returns the user's settings for single projects.
    #[must_use]
    pub fn projects_file(&self) -> PathBuf {
        self.sandbox_directory().join("projects.json")
    }

    /// Returns the user's settings for all projects in the layered layout: where the second seed has them.
    #[must_use]
    pub fn layered_file(&self) -> PathBuf {
        self.agent_directory.join("extensions/sandbox.json")
    }

    /// Returns the user's settings for single projects in the layered layout.
    #[must_use]
    pub fn layered_entries_file(&self) -> PathBuf {
        self.sandbox_directory().join("layered.json")
    }

    /// Returns the project's own file in the layered layout, which can only tighten.
    #[must_use]
    pub fn layered_project_file(&self) -> PathBuf {
        self.workspace.join(".pi/sandbox.json")
    }

    /// Returns every file that settings can stand in, whatever the layout.
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

    /// Whether a file is the machine's or the project's, where it has its usual place.
    #[must_use]
    pub fn is_of_others(&self, file: &Path) -> bool {
        [self.machine_file(), self.project_file(), self.layered_project_file()].iter().any(|one| one == file)
    }
}
