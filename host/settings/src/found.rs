//! The settings that were found, with their sources.

use std::path::{Path, PathBuf};

use portcullis_decision::profile::BudgetRule;
use portcullis_settings_format::fault::invalid;
use portcullis_settings_format::json::Node;
use portcullis_settings_format::{ConfigError, Layer, Settings, Tightening, Warning};

use crate::agent_definition::template::AgentDefinition;
use crate::old_settings::OldFile;
use crate::settings_files::SettingsFiles;

/// Settings with their sources.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundSettings {
    /// The user's settings.
    pub settings: Settings,
    /// The source of the user's settings.
    pub source: Source,
    /// Settings of the machine and the project. They can only tighten.
    pub layers: Vec<Tightening>,
    /// The user's settings files in the chosen layout.
    pub files: SettingsFiles,
    /// All files that were looked up, whether they exist or not.
    ///
    /// If one of them changes, the settings must be read again.
    pub watched: Vec<PathBuf>,
    /// Settings files of other sandboxes, which are not read.
    pub old: Vec<OldFile>,
    /// The user's text for this agent.
    pub(crate) definition: Option<AgentDefinition>,
    /// Warnings on presets and agent definitions that cannot be used.
    pub(crate) warnings: Vec<Warning>,
    /// How much may be sent to the hosts of presets.
    pub(crate) preset_budgets: Vec<BudgetRule>,
    /// The documents, for the report on the origin of each value.
    pub(crate) documents: Vec<Document>,
}

/// A checked document, before it is decoded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Document {
    pub(crate) layer: Layer,
    pub(crate) file: PathBuf,
    pub(crate) pointer: String,
    pub(crate) node: Node,
}

/// The source of the user's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The file named on the command line.
    Named(PathBuf),
    /// An entry of `projects.json`.
    Project {
        /// The file.
        file: PathBuf,
        /// The entry's key, as written.
        key: String,
    },
    /// `default.json`.
    Default(PathBuf),
    /// The layers of the layered layout.
    Layered {
        /// The user's file for all projects. It may be missing.
        file: PathBuf,
        /// The key of the entry of `layered.json` that applies, if there is one.
        key: Option<String>,
    },
    /// The built-in settings, because no file exists.
    BuiltIn,
}

impl Source {
    /// Returns the file, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Named(file)
            | Self::Default(file)
            | Self::Project { file, .. }
            | Self::Layered { file, .. } => Some(file),
            Self::BuiltIn => None,
        }
    }
}

impl Document {
    pub(crate) fn read(text: &str, file: &Path, layer: Layer) -> Result<Self, ConfigError> {
        let node = portcullis_settings_format::json::read(text).map_err(|fault| invalid(file, fault))?;
        Ok(Self { layer, file: file.to_owned(), pointer: String::new(), node })
    }
}
