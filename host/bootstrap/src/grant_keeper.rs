//! Stores answers that outlive the session in the user's settings.

use std::sync::{Mutex, PoisonError};

use portcullis_decision::{Grant, GrantPattern, GrantScope};
use portcullis_session::{GrantPlace, GrantStore, preset_place};
use portcullis_settings::{
    AllowLists, FoundSettings, GrantFile, Places, RealDisk, Seed, SettingsFiles, Store, grant_files, keep,
    keep_preset, preset,
};
use portcullis_settings_format::Layout;

use crate::loaded_settings::LoadedSettings;

/// Prefix of the id of a project entry, followed by its key.
const ENTRY: &str = "entry:";

/// Writes to the settings files of `Places`.
#[derive(Debug)]
pub struct FileKeeper {
    places: Places,
    store: Store,
    state: Mutex<StoreState>,
    /// What the answers allow that were stored since [`FileKeeper::take_kept`] was called.
    kept: Mutex<Vec<String>>,
}

#[derive(Debug)]
struct StoreState {
    grant_files: Vec<GrantFile>,
    files: SettingsFiles,
    lists: AllowLists,
}

impl StoreState {
    /// Without a place to store them, answers last as long as the session.
    fn load(found: &FoundSettings, places: &Places, lists: AllowLists) -> Self {
        let grant_files = grant_files(found, places, &RealDisk).unwrap_or_default();
        Self { grant_files, files: found.files.clone(), lists }
    }
}

impl FileKeeper {
    /// Returns a keeper for these settings.
    #[must_use]
    pub fn new(loaded: &LoadedSettings) -> Self {
        let state = StoreState::load(&loaded.found, &loaded.places, AllowLists::Unheard);
        Self {
            places: loaded.places.clone(),
            store: Store::new(&loaded.places),
            state: Mutex::new(state),
            kept: Mutex::default(),
        }
    }

    /// Returns, once, the hosts and paths that answers of this session have stored, as their patterns.
    pub fn take_kept(&self) -> Vec<String> {
        std::mem::take(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, allowed: impl Iterator<Item = String>) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).extend(allowed);
    }

    /// Called when the policies of the chain have been loaded.
    pub fn learn(&self, lists: AllowLists) {
        self.lock().lists = lists;
    }

    /// Called when the settings have been read again.
    pub fn refresh(&self, found: &FoundSettings, lists: AllowLists) {
        *self.lock() = StoreState::load(found, &self.places, lists);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, StoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GrantStore for FileKeeper {
    fn places(&self) -> Vec<GrantPlace> {
        let state = self.lock();
        state.grant_files.iter().filter_map(|grant_file| place(grant_file, &state.files)).collect()
    }

    fn keep(&self, place: &str, grant: &Grant) -> Result<(), String> {
        if let Some((name, place)) = preset_place(place) {
            let preset = preset(name, &self.places, &RealDisk).ok().flatten();
            let hosts = preset.into_iter().flat_map(|preset| preset.hosts);
            self.note(hosts.map(|host| host.pattern.to_string()));
            return keep_preset(&self.store, &self.places, &grant_file_at(place), name)
                .map_err(|error| format!("{:#}", anyhow::Error::new(error)));
        }
        self.note(std::iter::once(match &grant.pattern {
            GrantPattern::Network(host) => host.to_string(),
            GrantPattern::Path(path) => path.pattern.to_string(),
            GrantPattern::Exact(_) | GrantPattern::Command(_) | GrantPattern::Tool(_) => String::new(),
        }));
        let grant_file = grant_file_at(place);
        let lists = self.lock().lists;
        keep(&self.store, &self.places, &grant_file, grant, lists)
            .map_err(|error| format!("{:#}", anyhow::Error::new(error)))
    }
}

/// Returns the file of a place's id.
fn grant_file_at(place: &str) -> GrantFile {
    match place.strip_prefix(ENTRY) {
        // Written to the existing entry if another process has created it, else to a new one.
        Some(key) => GrantFile::Entry { key: key.to_owned(), exact: true },
        None => GrantFile::Default,
    }
}

/// Labels of `@oddsjam/pi-sandbox`.
fn place(grant_file: &GrantFile, files: &SettingsFiles) -> Option<GrantPlace> {
    let entries = files.entries_name();
    let (key, scope, label, id, target) = match grant_file {
        GrantFile::Entry { key, exact } => {
            let label = match exact {
                true => "Always in this project".to_owned(),
                false => format!("Always in this project (parent: {key})"),
            };
            ('P', GrantScope::Project, label, format!("{ENTRY}{key}"), format!("{entries}[\"{key}\"]"))
        }
        GrantFile::NewEntry { key, seed } => {
            let key = key.to_str()?;
            let (letter, label, from) = match seed {
                Seed::Parent => {
                    ('N', format!("Always in this project (new config: {key})"), "over the parent's")
                }
                Seed::Default => {
                    let from = match files.layout {
                        Layout::Projects => "over default.json",
                        Layout::Layered => "over your settings for all projects",
                    };
                    ('P', "Always in this project".to_owned(), from)
                }
            };
            let target = format!("{entries}[\"{key}\"], {from}");
            (letter, GrantScope::Project, label, format!("{ENTRY}{key}"), target)
        }
        GrantFile::Default => {
            let label = "Always, in every project".to_owned();
            ('A', GrantScope::User, label, "default".to_owned(), files.default_name().to_owned())
        }
    };
    Some(GrantPlace { id, key, scope, label, target })
}
