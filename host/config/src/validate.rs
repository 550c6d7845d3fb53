//! Checks whole files and tells every mistake, where reading them stops at the first.

use std::path::{Path, PathBuf};

use crate::check::{Completeness, check_all, step};
use crate::discover::{self, discover};
use crate::disk::Disk;
use crate::error::ConfigError;
use crate::json::{Fault, Node, Position, Value};
use crate::places::Places;
use crate::resolve::resolve;
use crate::settings::{Settings, invalid};
use crate::tighten::{Layer, Tightening};

/// What a settings file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// One complete set of settings, as `default.json`.
    Settings,
    /// Settings for each project, as `projects.json`.
    Projects,
    /// A layer that can only tighten.
    Tightening(Layer),
}

impl FileKind {
    /// Returns the kind that a file has by its usual name; one of another name holds settings.
    #[must_use]
    pub fn of(file: &Path) -> Self {
        match file.file_name().and_then(|name| name.to_str()) {
            Some("projects.json") => Self::Projects,
            Some("portcullis.json") => Self::Tightening(Layer::Project),
            _ => Self::Settings,
        }
    }
}

/// A file that was checked.
#[derive(Debug)]
pub struct Checked {
    /// The file.
    pub file: PathBuf,
    /// Its text, where it could be read.
    pub text: Option<String>,
    /// Every mistake, in the order of the file.
    pub mistakes: Vec<ConfigError>,
}

/// Checks one file, which has to be there.
pub fn validate(file: &Path, kind: FileKind, disk: &dyn Disk) -> Checked {
    let missing = || Checked {
        file: file.to_owned(),
        text: None,
        mistakes: vec![ConfigError::Missing { file: file.to_owned() }],
    };
    present(file, kind, disk).unwrap_or_else(missing)
}

/// Checks every file that is there for these places, whichever of them holds, and last whether they make sense
/// together.
pub fn validate_all(places: &Places, disk: &dyn Disk) -> Vec<Checked> {
    let mut files = match &places.settings {
        Some(file) => vec![(file.clone(), FileKind::Settings)],
        None => vec![
            (places.sandbox_directory().join("projects.json"), FileKind::Projects),
            (places.sandbox_directory().join("default.json"), FileKind::Settings),
        ],
    };
    files.push((places.machine_file(), FileKind::Tightening(Layer::Machine)));
    let mut checked: Vec<Checked> =
        files.into_iter().filter_map(|(file, kind)| present(&file, kind, disk)).collect();
    checked.extend(project(places, disk));
    if checked.iter().all(|file| file.mistakes.is_empty())
        && let Err(error) = discover(places, disk).and_then(|found| resolve(&found, places, disk))
    {
        let file = places.settings.clone().unwrap_or_else(|| places.sandbox_directory());
        checked.push(Checked { file, text: None, mistakes: vec![error] });
    }
    checked
}

/// Never opens what a link leads to outside of the project: lines of it would be shown.
fn project(places: &Places, disk: &dyn Disk) -> Option<Checked> {
    let file = places.project_file();
    let inside = places
        .canonical_workspace(disk)
        .and_then(|workspace| discover::stays_inside(&file, &workspace, disk));
    match inside {
        Ok(()) => present(&file, FileKind::Tightening(Layer::Project), disk),
        Err(error) => Some(Checked { file, text: None, mistakes: vec![error] }),
    }
}

fn present(file: &Path, kind: FileKind, disk: &dyn Disk) -> Option<Checked> {
    let (text, mistakes) = match discover::read(file, disk) {
        Ok(None) => return None,
        Ok(Some(text)) => {
            let mistakes = mistakes(&text, file, kind, disk);
            (Some(text), mistakes)
        }
        Err(error) => (None, vec![error]),
    };
    Some(Checked { file: file.to_owned(), text, mistakes })
}

/// Every mistake of a text, in the order of the text.
pub(crate) fn mistakes(text: &str, file: &Path, kind: FileKind, disk: &dyn Disk) -> Vec<ConfigError> {
    let document = match crate::json::read(text) {
        Ok(document) => document,
        Err(fault) => return vec![invalid(file, fault)],
    };
    let mut found = match kind {
        FileKind::Settings => settings(&document, file, ""),
        FileKind::Projects => projects(&document, file, disk),
        FileKind::Tightening(layer) => tightening(&document, text, file, layer),
    };
    found.sort_by_key(position);
    found
}

fn settings(node: &Node, file: &Path, pointer: &str) -> Vec<ConfigError> {
    let (_, faults) = check_all(node, pointer, Completeness::Whole);
    if faults.is_empty() {
        // What depends on more than one field.
        return Settings::from_node(node, file, pointer).err().into_iter().collect();
    }
    all(faults, file)
}

fn projects(document: &Node, file: &Path, disk: &dyn Disk) -> Vec<ConfigError> {
    let Value::Object(members) = &document.value else {
        let fault = crate::check::wrong_type(document, "the whole file", "an object".to_owned());
        return vec![invalid(file, fault)];
    };
    let mut found = Vec::new();
    let mut known: Vec<(PathBuf, &str)> = Vec::new();
    for member in members {
        match discover::project_key(member, disk) {
            Err(problem) => found.push(invalid(file, discover::key_fault(member, problem))),
            // Where a link leads is not a matter of this text, and may be an agent's doing.
            Ok(key) if !key.links.is_empty() => {}
            Ok(key) => {
                if let Some((_, other)) = known.iter().find(|(earlier, _)| *earlier == key.path) {
                    let problem = discover::same_directory(member, other);
                    found.push(invalid(file, discover::key_fault(member, problem)));
                }
                known.push((key.path, &member.key));
            }
        }
        found.extend(settings(&member.node, file, &step("", &member.key)));
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
        | ConfigError::Path { .. }
        | ConfigError::NotAbsolute { .. } => Position::default(),
    }
}
