//! Conversion of the settings of other sandboxes.
//!
//! No value is dropped silently: each one is tried in its place, and a value that does not fit is reported with the
//! reason for which a settings file of ours would be refused.

use std::path::Path;

use portcullis_settings_format::error::shown;
use portcullis_settings_format::field_lookup::nearest_key;
use portcullis_settings_format::{Change, ConfigError, FIELDS, Field, FileKind, Layer, Shape, Status, field};
use serde_json::Value as Json;
use serde_json::{Map, json};

use self::defaults::{guard, names_at_every_depth, over, pi_sandbox_defaults, sysid_defaults};
use crate::disk::{Disk, RealDisk};
use crate::places::Places;
use crate::settings_text;
use crate::validate::mistakes;

/// The sandbox that the settings are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// `@oddsjam/pi-sandbox`: same format and same files as ours.
    Oddsjam,
    /// `@sysid/pi-sandbox`: lists replace the defaults, and `denyWrite` holds names.
    Sysid,
    /// `pi-sandbox`: same format, other files, other defaults.
    PiSandbox,
    /// `@anthropic-ai/sandbox-runtime` on its own.
    Srt,
    /// bosun's `config.toml`, converted to JSON.
    Bosun,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The settings in our format. They are valid.
    pub text: String,
    /// Values that could not be converted.
    pub left: Vec<Left>,
    /// Notes on how the settings were read.
    ///
    /// The effect of the settings is not described here; the caller reads it from the compiled rules.
    pub notes: Vec<&'static str>,
}

/// A value that could not be converted.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Left {
    /// The field, such as `network.allowedDomains`.
    pub key: String,
    /// The value.
    pub value: Json,
    /// The reason.
    pub reason: String,
}

/// Complete settings without any entry.
const EMPTY: &str = r#"{
  "network": { "allowedDomains": [], "deniedDomains": [] },
  "filesystem": { "denyRead": [], "allowRead": [], "allowWrite": [], "denyWrite": [] }
}
"#;

const OTHER_TABLES: &str =
    "only the table with `deny_read`, `allow_write` and `deny_write` is about the sandbox";

impl Foreign {
    /// Converts to complete settings of the user.
    #[must_use]
    pub fn user(self, given: &Json) -> Imported {
        let mut import = Import::into(EMPTY, FileKind::Settings);
        match self {
            Self::Oddsjam | Self::Srt => import.carry_all(given),
            Self::PiSandbox => {
                import.carry_all(&names_at_every_depth(over(&pi_sandbox_defaults(), given)));
                import.choose_layout();
            }
            Self::Sysid => {
                let whole = over(&sysid_defaults(), given);
                import.carry_all(&names_at_every_depth(whole.clone()));
                let config = guard(&whole, &import.carried());
                import.carry(&["policies"], &json!([{ "use": "guard", "config": config }]));
                import.choose_layout();
            }
            Self::Bosun => {
                import.notes.push(OTHER_TABLES);
                import.bosun(given);
            }
        }
        import.end()
    }

    /// Converts to a project's own file, which can only tighten.
    #[must_use]
    pub fn project(self, given: &Json) -> Imported {
        let mut import = Import::into("{}\n", FileKind::Tightening(Layer::Project));
        match self {
            Self::Bosun => {
                import.notes.push(OTHER_TABLES);
                import.bosun(given);
            }
            Self::Oddsjam | Self::Srt | Self::PiSandbox | Self::Sysid => {
                import.carry_all(&names_at_every_depth(given.clone()));
            }
        }
        import.end()
    }
}

/// Reads the settings of another sandbox, or returns `None` if the file does not exist.
///
/// # Errors
/// When the file cannot be read, or is not JSON.
pub fn read_foreign(file: &Path, disk: &dyn Disk) -> Result<Option<Json>, ConfigError> {
    let Some(text) = settings_text::read(file, disk)? else { return Ok(None) };
    let document = portcullis_settings_format::json::read(&text)
        .map_err(|fault| portcullis_settings_format::fault::invalid(file, fault))?;
    Ok(Some(document.to_json()))
}

/// Checks that a project's own file lies in the project, not behind a link that leads out of it.
///
/// # Errors
/// When it lies outside.
pub fn stays_in_project(file: &Path, places: &Places, disk: &dyn Disk) -> Result<(), ConfigError> {
    settings_text::stays_inside(file, &places.canonical_workspace(disk)?, disk)
}

/// An import in progress.
struct Import {
    text: String,
    kind: FileKind,
    left: Vec<Left>,
    notes: Vec<&'static str>,
    /// Whether an agent may have written the settings: they open nothing outside the project.
    is_projects: bool,
}

impl Import {
    fn into(text: &str, kind: FileKind) -> Self {
        Self { text: text.to_owned(), kind, left: Vec::new(), notes: Vec::new(), is_projects: false }
    }

    /// Returns the settings that were carried so far.
    fn carried(&self) -> Json {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    fn end(self) -> Imported {
        Imported { text: self.text, left: self.left, notes: self.notes }
    }

    /// Chooses the layout in which the imported files are not read.
    fn choose_layout(&mut self) {
        self.carry(&["layout"], &json!("projects"));
    }

    fn carry_all(&mut self, given: &Json) {
        match given.as_object() {
            Some(members) => self.members(&[], members),
            None => self.leave("", given, "settings are an object"),
        }
    }

    /// Converts members in the order of our table of fields, so that the result reads like any other settings file.
    fn members(&mut self, parent: &[&str], members: &Map<String, Json>) {
        let place = |key: &str| {
            let name = [parent, &[key]].concat().join(".");
            FIELDS.iter().position(|field| field.name == name).unwrap_or(usize::MAX)
        };
        let mut keys: Vec<&String> = members.keys().collect();
        keys.sort_by_key(|key| place(key));
        for key in keys {
            if let Some(value) = members.get(key) {
                self.carry(&[parent, &[key.as_str()]].concat(), value);
            }
        }
    }

    fn carry(&mut self, way: &[&str], value: &Json) {
        let name = way.join(".");
        let Some(known) = field(&name) else {
            let (parent, key) = name.rsplit_once('.').unwrap_or(("", &name));
            let near = nearest_key(key, parent).map(|near| format!(", is it `{near}`?")).unwrap_or_default();
            return self.leave(&name, value, &format!("Portcullis has no such key{near}"));
        };
        match (known.status, known.shape, value) {
            (Status::Refused(reason), ..) => {
                if *value != json!(false) && *value != json!([]) {
                    self.leave(&name, value, reason);
                }
            }
            // Objects whose fields are independent of each other.
            (_, Shape::Object, Json::Object(members)) if !has_required_parts(known) => {
                self.members(way, members)
            }
            (_, Shape::List(_) | Shape::Objects, Json::Array(items)) => {
                self.append(way, &name, items);
            }
            _ => {
                self.make(&Change::Set(owned(way), value.clone()), &name, value);
            }
        }
    }

    /// Appends the items that fit to a list, and returns for each whether it did.
    ///
    /// All are tried at once, and halves of them only if that fails: checking the settings once for each item of a long
    /// list would take minutes.
    fn append(&mut self, way: &[&str], name: &str, items: &[Json]) -> Vec<bool> {
        let append = |item: &Json| Change::Append(owned(way), item.clone());
        match items {
            [] => Vec::new(),
            [item] => vec![self.make(&append(item), name, item)],
            _ => {
                let all = items.iter().try_fold(self.text.clone(), |text, item| append(item).apply(&text));
                if let Ok(text) = all
                    && self.mistake(&text).is_none()
                {
                    self.text = text;
                    return vec![true; items.len()];
                }
                let (first, second) = items.split_at(items.len() / 2);
                [self.append(way, name, first), self.append(way, name, second)].concat()
            }
        }
    }

    /// Applies a change and returns true, unless the result would be invalid.
    fn make(&mut self, change: &Change, name: &str, value: &Json) -> bool {
        let mistake = match change.apply(&self.text) {
            Ok(text) => match self.mistake(&text) {
                None => {
                    self.text = text;
                    return true;
                }
                Some(ConfigError::Invalid { problem, .. }) => problem.to_string(),
                Some(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        self.leave(name, value, &mistake);
        false
    }

    fn mistake(&self, text: &str) -> Option<ConfigError> {
        mistakes(text, Path::new("<imported>"), self.kind, &RealDisk).into_iter().next()
    }

    fn leave(&mut self, key: &str, value: &Json, reason: &str) {
        self.left.push(Left { key: shown(key), value: value.clone(), reason: reason.to_owned() });
    }
}

/// Returns true if an object needs some of its fields to be valid, other than those present from the start.
fn has_required_parts(known: &Field) -> bool {
    let inside = format!("{}.", known.name);
    let is_required = |field: &&Field| field.presence == portcullis_settings_format::Presence::Required;
    let mut parts = FIELDS.iter().filter(|field| field.name.starts_with(&inside)).filter(is_required);
    !["network", "filesystem"].contains(&known.name) && parts.any(|part| !part.name.contains("[]"))
}

fn owned(way: &[&str]) -> Vec<String> {
    way.iter().map(|key| (*key).to_owned()).collect()
}

mod bosun;
mod defaults;
pub(crate) mod whole;

#[cfg(test)]
mod tests;
