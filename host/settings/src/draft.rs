//! Settings in an editor: changed step by step, checked after each step, saved as a whole.

use std::path::{Path, PathBuf};

use portcullis_settings_format::fault::invalid;
use portcullis_settings_format::json::Node;
use portcullis_settings_format::{Change, ConfigError, EditError, Extends, Layout};

use crate::disk::{Disk as _, RealDisk};
use crate::entries::Entries;
use crate::grant_changes::GrantFile;
use crate::grant_files::{begins_as, outdented, with_entry};
use crate::layered::LAYERED_BUILT_IN;
use crate::places::Places;
use crate::settings_files::SettingsFiles;
use crate::settings_text;
use crate::store::{Store, StoreError};
use crate::validate::{entry_mistakes, mistakes};

/// A set of settings that is being edited.
#[derive(Debug, Clone)]
pub struct Draft {
    grant_file: GrantFile,
    files: SettingsFiles,
    file: PathBuf,
    before: Option<Vec<u8>>,
    /// The text of the whole file, if it holds several entries.
    whole: Option<String>,
    text: String,
    /// The complete settings that the entry extends, if it holds differences.
    below: Option<Node>,
    changed: bool,
}

/// A mistake that keeps a draft from being saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// JSON pointer in the settings; empty for the whole document.
    pub pointer: String,
    /// Description of the mistake.
    pub text: String,
}

impl Draft {
    /// Opens the settings of a grant file. A new entry for a project extends the settings in force.
    ///
    /// # Errors
    /// When the existing file cannot be used.
    pub fn open(places: &Places, grant_file: &GrantFile) -> Result<Self, StoreError> {
        let key = match grant_file {
            GrantFile::Default => None,
            GrantFile::Entry { key, .. } => Some(key.clone()),
            GrantFile::NewEntry { key, .. } => Some(key.to_str().ok_or(StoreError::NotKept)?.to_owned()),
        };
        let files = SettingsFiles::find(places, &RealDisk).map_err(StoreError::broken)?;
        let file = if key.is_some() { files.entries.clone() } else { files.default.clone() };
        let before = present(&file)?;
        let text = settings_text::read(&file, &RealDisk).map_err(StoreError::broken)?;
        let mut below = None;
        let (whole, text) = match key {
            None => (None, text.unwrap_or_else(|| begins_as(files.layout).to_owned())),
            Some(key) => {
                let whole = with_entry(text.as_deref().unwrap_or("{}\n"), &files, places, &key)?;
                let document = portcullis_settings_format::json::read(&whole)
                    .map_err(|fault| StoreError::broken(invalid(&file, fault)))?;
                let member = document.members().iter().find(|member| member.key == key);
                if let Some((member, extends)) =
                    member.and_then(|own| Some((own, Extends::from_entry(&own.node)?)))
                {
                    let entries = Entries { document: &document, files: &files, places, disk: &RealDisk };
                    below = Some(entries.below(member, extends).map_err(StoreError::broken)?);
                }
                let span = member.map(|member| member.node.span.clone()).unwrap_or_default();
                let entry = outdented(whole.get(span).unwrap_or_default());
                (Some(whole), entry)
            }
        };
        // A text that is not JSON cannot be edited step by step; the user must repair it first.
        portcullis_settings_format::json::read(&text)
            .map_err(|fault| StoreError::broken(invalid(&file, fault)))?;
        Ok(Self { grant_file: grant_file.clone(), files, file, before, whole, text, below, changed: false })
    }

    /// Returns the grant file that holds the settings.
    #[must_use]
    pub fn grant_file(&self) -> &GrantFile {
        &self.grant_file
    }

    /// Returns the file that the draft is saved to.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the current text of the settings.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if the settings have changed since they were opened.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// Returns true if the settings hold only differences from other settings, which apply as well.
    #[must_use]
    pub fn is_of_differences(&self) -> bool {
        self.below.is_some()
    }

    /// Returns the value at a path of keys, or null.
    ///
    /// In the layered layout it is the built-in value if the user's file for all projects has none. In an entry of
    /// differences, a list holds the entry's own items only.
    #[must_use]
    pub fn value(&self, way: &[String]) -> serde_json::Value {
        let value = |text: &str| {
            let document = portcullis_settings_format::json::read(text).ok()?;
            let node = way.iter().try_fold(&document, |node, key| node.member(key))?;
            Some(node.to_json())
        };
        let below = || if self.replaces_lists() { value(LAYERED_BUILT_IN) } else { None };
        let extended = || {
            let node = way.iter().try_fold(self.below.as_ref()?, |node, key| node.member(key))?;
            Some(node.to_json()).filter(|value| !value.is_array())
        };
        value(&self.text).or_else(below).or_else(extended).unwrap_or_default()
    }

    /// Returns true if a list written here replaces a built-in list.
    fn replaces_lists(&self) -> bool {
        self.files.layout == Layout::Layered && self.grant_file == GrantFile::Default
    }

    /// Applies one change.
    ///
    /// # Errors
    /// When the change does not fit the document.
    pub fn change(&mut self, change: &Change) -> Result<(), EditError> {
        let mut text = self.text.clone();
        if self.replaces_lists()
            && let Change::Append(way, _) | Change::Drop(way, _) = change
            && self.value(way).is_array()
        {
            // Keep the existing items of the list.
            text = Change::Set(way.clone(), self.value(way)).apply(&text)?;
        }
        let text = change.apply(&text)?;
        self.changed |= text != self.text;
        self.text = text;
        Ok(())
    }

    /// Returns all mistakes that keep the draft from being saved.
    #[must_use]
    pub fn obstacles(&self) -> Vec<Obstacle> {
        let found = match (self.files.layout, &self.grant_file) {
            (Layout::Projects, GrantFile::Entry { .. } | GrantFile::NewEntry { .. }) => {
                entry_mistakes(&self.text, &self.file)
            }
            (Layout::Projects, GrantFile::Default) | (Layout::Layered, _) => {
                mistakes(&self.text, &self.file, self.files.default_kind(), &RealDisk)
            }
        };
        found.into_iter().map(obstacle).collect()
    }

    /// Saves the draft.
    ///
    /// # Errors
    /// When it has mistakes, or the file has changed since it was opened.
    pub fn save(&self, store: &Store) -> Result<(), StoreError> {
        let entries = self.files.entries_kind();
        let (kind, text) = match (&self.grant_file, &self.whole) {
            (GrantFile::Entry { key, .. }, Some(whole)) => (entries, self.placed(whole, key)?),
            (GrantFile::NewEntry { key, .. }, Some(whole)) => {
                (entries, self.placed(whole, &key.to_string_lossy())?)
            }
            _ => (self.files.default_kind(), self.text.clone()),
        };
        store.replace(&self.file, kind, self.before.as_deref(), &text)
    }

    fn placed(&self, whole: &str, key: &str) -> Result<String, StoreError> {
        Change::Copy(vec![key.to_owned()], self.text.clone())
            .apply(whole)
            .map_err(|error| StoreError::edit(&self.file, error))
    }
}

fn present(file: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match RealDisk.read(file) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StoreError::broken(ConfigError::Read { file: file.to_owned(), source })),
    }
}

fn obstacle(error: ConfigError) -> Obstacle {
    match error {
        ConfigError::Invalid { pointer, problem, .. } => Obstacle { pointer, text: problem.to_string() },
        other @ (ConfigError::Read { .. }
        | ConfigError::Missing { .. }
        | ConfigError::Unusable { .. }
        | ConfigError::OfGit { .. }
        | ConfigError::Path { .. }
        | ConfigError::PolicyConfig { .. }
        | ConfigError::PolicyText { .. }
        | ConfigError::NotAbsolute { .. }) => Obstacle { pointer: String::new(), text: other.to_string() },
    }
}
