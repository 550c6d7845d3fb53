//! Checks whole files and returns all mistakes, while reading stops at the first.

use std::path::{Path, PathBuf};

use portcullis_settings_format::check::{Completeness, check_all};
use portcullis_settings_format::fault::invalid;
use portcullis_settings_format::json::{Node, Value};
use portcullis_settings_format::layout_choice::{self, chooses_layered};
use portcullis_settings_format::pointer::step;
use portcullis_settings_format::{
    ConfigError, Extends, Fault, FileKind, Layer, Layout, Position, Settings, Tightening,
};

use crate::discover::discover;
use crate::disk::Disk;
use crate::places::Places;
use crate::resolve::resolve;
use crate::settings_files::{self, SettingsFiles};
use crate::{entries, layered, project_keys, settings_text};

/// The result of checking a file.
#[derive(Debug)]
pub struct Checked {
    /// The file.
    pub file: PathBuf,
    /// The text, if the file could be read.
    pub text: Option<String>,
    /// All mistakes, in the order of the file.
    pub mistakes: Vec<ConfigError>,
}

/// Checks a file, which must exist.
pub fn validate(file: &Path, kind: FileKind, disk: &dyn Disk) -> Checked {
    let missing = || Checked {
        file: file.to_owned(),
        text: None,
        mistakes: vec![ConfigError::Missing { file: file.to_owned() }],
    };
    present(file, kind, disk).unwrap_or_else(missing)
}

/// Checks all existing files for these places, whether they apply or not, and then their combination.
pub fn validate_all(places: &Places, disk: &dyn Disk) -> Vec<Checked> {
    // If the layout is unknown, the file that chooses it has a mistake, which is reported for that file.
    let layout = SettingsFiles::find(places, disk).map_or(Layout::Projects, |files| files.layout);
    let layout = if places.settings.is_some() { Layout::Projects } else { layout };
    let users = SettingsFiles::in_layout(places, layout);
    let mut files = match &places.settings {
        Some(file) => vec![(file.clone(), FileKind::Settings)],
        None => {
            vec![(users.entries.clone(), users.entries_kind()), (users.default.clone(), users.default_kind())]
        }
    };
    if layout == Layout::Layered {
        files.push((places.default_file(), FileKind::Settings));
    }
    let mut checked: Vec<Checked> =
        files.into_iter().filter_map(|(file, kind)| present(&file, kind, disk)).collect();
    for (file, layer) in settings_files::tightening_files(places, layout) {
        checked.extend(match layer == Layer::Machine {
            true => present(&file, FileKind::Tightening(layer), disk),
            false => project(&file, layer, places, disk),
        });
    }
    if checked.iter().all(|file| file.mistakes.is_empty())
        && let Err(error) = discover(places, disk).and_then(|found| resolve(&found, places, disk))
    {
        let named = if let ConfigError::Invalid { file, .. } = &error { Some(file.clone()) } else { None };
        match checked.iter_mut().find(|file| Some(&file.file) == named.as_ref()) {
            Some(file) => file.mistakes.push(error),
            None => {
                let file = named.or_else(|| places.settings.clone());
                let file = file.unwrap_or_else(|| places.sandbox_directory());
                checked.push(Checked { file, text: None, mistakes: vec![error] });
            }
        }
    }
    checked
}

/// Checks a project's file. Never opens a link target outside the project, since lines of it would be shown.
fn project(file: &Path, layer: Layer, places: &Places, disk: &dyn Disk) -> Option<Checked> {
    let inside = places
        .canonical_workspace(disk)
        .and_then(|workspace| settings_text::stays_inside(file, &workspace, disk));
    match inside {
        Ok(()) => present(file, FileKind::Tightening(layer), disk),
        Err(error) => Some(Checked { file: file.to_owned(), text: None, mistakes: vec![error] }),
    }
}

fn present(file: &Path, kind: FileKind, disk: &dyn Disk) -> Option<Checked> {
    let (text, mistakes) = match settings_text::read(file, disk) {
        Ok(None) => return None,
        Ok(Some(text)) => {
            let mistakes = mistakes(&text, file, kind, disk);
            (Some(text), mistakes)
        }
        Err(error) => (None, vec![error]),
    };
    Some(Checked { file: file.to_owned(), text, mistakes })
}

/// Returns all mistakes of a text, in the order of the text.
pub(crate) fn mistakes(text: &str, file: &Path, kind: FileKind, disk: &dyn Disk) -> Vec<ConfigError> {
    let document = match portcullis_settings_format::json::read(text) {
        Ok(document) => document,
        Err(fault) => return vec![invalid(file, fault)],
    };
    let mut found = match kind {
        // Complete settings, or the choice of the layered layout.
        FileKind::Settings if chooses_layered(&document) => {
            layout_choice::chosen(text).err().map(|fault| invalid(file, fault)).into_iter().collect()
        }
        FileKind::Settings => settings(&document, file, ""),
        FileKind::Projects => projects(&document, file, disk, entry),
        FileKind::Part => part(&document, file, ""),
        FileKind::Parts => projects(&document, file, disk, part),
        FileKind::Tightening(layer) => tightening(&document, text, file, layer),
    };
    found.sort_by_key(position);
    found
}

fn settings(node: &Node, file: &Path, pointer: &str) -> Vec<ConfigError> {
    let (_, faults) = check_all(node, pointer, Completeness::Whole);
    if faults.is_empty() {
        // Conditions on more than one field.
        return Settings::from_node(node, file, pointer).err().into_iter().collect();
    }
    all(faults, file)
}

/// Returns all mistakes in the text of an entry of `projects.json`.
pub(crate) fn entry_mistakes(text: &str, file: &Path) -> Vec<ConfigError> {
    let mut found = match portcullis_settings_format::json::read(text) {
        Ok(document) => entry(&document, file, ""),
        Err(fault) => vec![invalid(file, fault)],
    };
    found.sort_by_key(position);
    found
}

/// Returns the mistakes of an entry, complete or of differences.
fn entry(node: &Node, file: &Path, pointer: &str) -> Vec<ConfigError> {
    if Extends::from_entry(node).is_none() {
        return settings(node, file, pointer);
    }
    let (_, faults) = check_all(node, pointer, Completeness::Part);
    if faults.is_empty() {
        return entries::alone(node, file, pointer).err().into_iter().collect();
    }
    all(faults, file)
}

fn part(node: &Node, file: &Path, pointer: &str) -> Vec<ConfigError> {
    let (_, faults) = check_all(node, pointer, Completeness::Part);
    if faults.is_empty() {
        return layered::alone(node, file, pointer).err().into_iter().collect();
    }
    all(faults, file)
}

fn projects(
    document: &Node,
    file: &Path,
    disk: &dyn Disk,
    mistakes: fn(&Node, &Path, &str) -> Vec<ConfigError>,
) -> Vec<ConfigError> {
    let Value::Object(members) = &document.value else {
        let fault =
            portcullis_settings_format::check::wrong_type(document, "the whole file", "an object".to_owned());
        return vec![invalid(file, fault)];
    };
    let mut found = Vec::new();
    let mut known: Vec<(PathBuf, &str)> = Vec::new();
    for member in members {
        match project_keys::project_key(member, disk) {
            Err(problem) => found.push(invalid(file, project_keys::key_fault(member, problem))),
            // The target of a link is not part of this text, and may be the agent's doing.
            Ok(key) if !key.links.is_empty() => {}
            Ok(key) => {
                if let Some((_, other)) = known.iter().find(|(earlier, _)| *earlier == key.path) {
                    let problem = project_keys::same_directory(member, other);
                    found.push(invalid(file, project_keys::key_fault(member, problem)));
                }
                known.push((key.path, &member.key));
            }
        }
        found.extend(mistakes(&member.node, file, &step("", &member.key)));
    }
    found
}

fn tightening(document: &Node, text: &str, file: &Path, layer: Layer) -> Vec<ConfigError> {
    let (_, faults) = check_all(document, "", Completeness::Part);
    if faults.is_empty() {
        return Tightening::parse(text, file, layer).err().into_iter().collect();
    }
    all(faults, file)
}

fn all(faults: Vec<Fault>, file: &Path) -> Vec<ConfigError> {
    faults.into_iter().map(|fault| invalid(file, fault)).collect()
}

fn position(error: &ConfigError) -> Position {
    match error {
        ConfigError::Invalid { at, .. } => *at,
        ConfigError::Read { .. }
        | ConfigError::Missing { .. }
        | ConfigError::Unusable { .. }
        | ConfigError::OfGit { .. }
        | ConfigError::Path { .. }
        | ConfigError::PolicyConfig { .. }
        | ConfigError::PolicyText { .. }
        | ConfigError::NotAbsolute { .. } => Position::default(),
    }
}
