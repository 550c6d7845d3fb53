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

use crate::bosun_lists::table_with_lists;
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

/// Default hosts of `@sysid/pi-sandbox`, and of `pi-sandbox`.
const HOSTS: [&str; 10] = [
    "npmjs.org",
    "*.npmjs.org",
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "pypi.org",
    "*.pypi.org",
    "github.com",
    "*.github.com",
    "api.github.com",
    "raw.githubusercontent.com",
];

const NAMES: [&str; 4] = [".env", ".env.*", "*.pem", "*.key"];

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

/// Returns the configuration of the policy `guard`, which has the semantics of `@sysid/pi-sandbox`: the given lists, with
/// the entries that were carried.
fn guard(given: &Json, carried: &Json) -> Json {
    let of = |part: &str, keys: &[&str]| {
        let member = |key: &&str| {
            let way = format!("/{part}/{key}");
            let kept = carried.pointer(&way).and_then(Json::as_array).cloned().unwrap_or_default();
            let is_kept = |item: &&Json| {
                item.as_str().is_some_and(|text| {
                    kept.contains(&json!(text)) || kept.contains(&json!(format!("**/{text}")))
                })
            };
            let items = given.pointer(&way).and_then(Json::as_array)?;
            Some(((*key).to_owned(), items.iter().filter(is_kept).cloned().collect()))
        };
        Json::Object(keys.iter().filter_map(member).collect())
    };
    json!({
        "network": of("network", &["allowedDomains", "deniedDomains"]),
        "filesystem": of("filesystem", &["denyRead", "allowWrite", "denyWrite"]),
    })
}

fn sysid_defaults() -> Json {
    json!({
        "network": { "allowedDomains": HOSTS, "deniedDomains": [] },
        "filesystem": { "denyRead": ["~/.ssh", "~/.aws", "~/.gnupg"], "allowWrite": [".", "/tmp"], "denyWrite": NAMES },
    })
}

fn pi_sandbox_defaults() -> Json {
    json!({
        "network": { "allowedDomains": HOSTS, "deniedDomains": [] },
        "filesystem": { "denyRead": ["/Users", "/home"], "allowRead": [".", "~/.config", "~/.local"],
            "allowWrite": [".", "/tmp"], "denyWrite": NAMES },
    })
}

/// Merges one level of objects, as both sandboxes do: a given list replaces the default list.
fn over(defaults: &Json, given: &Json) -> Json {
    let (Json::Object(defaults), Json::Object(given)) = (defaults, given) else { return given.clone() };
    let mut whole = defaults.clone();
    for (key, value) in given {
        match (whole.get_mut(key), value) {
            (Some(Json::Object(known)), Json::Object(more)) => {
                known.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            _ => {
                whole.insert(key.clone(), value.clone());
            }
        }
    }
    Json::Object(whole)
}

/// Turns names in `denyWrite` into globs that match at any depth. The other sandbox has names there; ours has paths.
fn names_at_every_depth(mut settings: Json) -> Json {
    if let Some(Json::Array(items)) = settings.pointer_mut("/filesystem/denyWrite") {
        for item in items {
            if let Json::String(text) = item
                && !text.contains('/')
                && ![".", "..", "~"].contains(&text.as_str())
            {
                *text = format!("**/{text}");
            }
        }
    }
    settings
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

    fn bosun(&mut self, given: &Json) {
        let Some(table) = table_with_lists(given) else {
            return self.leave("", &Json::Null, NO_TABLE);
        };
        let is_users = self.kind == FileKind::Settings;
        if is_users {
            self.carry(&["filesystem", "allowRead"], &json!(["."]));
        }
        let mut lists = Map::new();
        for (key, value) in table {
            let way: &[&str] = match key.as_str() {
                "deny_read" => &["filesystem", "denyRead"],
                "allow_read" => &["filesystem", "allowRead"],
                "allow_write" => &["filesystem", "allowWrite"],
                "deny_write" => &["filesystem", "denyWrite"],
                _ => {
                    self.leave(key, value, "Portcullis has no such key");
                    continue;
                }
            };
            let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            let converted: Vec<(Json, String)> =
                items.iter().filter_map(|item| self.bosun_item(key, item)).collect();
            let paths: Vec<Json> = converted.iter().map(|(path, _)| path.clone()).collect();
            let fit = self.append(way, &way.join("."), &paths);
            let entries = converted.into_iter().zip(fit).filter(|(_, fits)| *fits);
            lists.insert(key.clone(), entries.map(|((_, entry), _)| Json::from(entry)).collect());
        }
        // Its own policy decides by the lists as they are. The lists of the settings apply whatever the policy decides.
        if is_users {
            self.carry(&["policies"], &json!([{ "use": "bosun", "config": lists }]));
        }
    }

    /// Returns an entry as it is in the settings, and as it is in the policy's configuration.
    fn bosun_item(&mut self, key: &str, item: &Json) -> Option<(Json, String)> {
        let Some(text) = item.as_str() else {
            self.leave(key, item, "it is no path");
            return None;
        };
        if self.is_projects && key.starts_with("allow") && !is_inside(text, key) {
            self.leave(key, item, OUTSIDE);
            return None;
        }
        let is_name = !text.contains('/') && !text.starts_with('~') && text != ".";
        let (path, entry) = match (key, is_name) {
            // A bare name of a secret directory means the one in the home directory.
            ("deny_read", true) if SECRET_DIRECTORIES.contains(&text) => {
                (format!("~/{text}"), format!("~/{text}"))
            }
            ("deny_read" | "deny_write", true) => (format!("**/{text}"), text.to_owned()),
            // The policy takes a text without `/` for a name.
            (_, true) => (text.to_owned(), format!("./{text}")),
            _ => (text.to_owned(), text.to_owned()),
        };
        Some((path.into(), entry))
    }
}

/// Directories of secrets that are named without the home directory.
const SECRET_DIRECTORIES: [&str; 6] = [".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure"];

const NO_TABLE: &str = "not exactly one table has `deny_read`, `allow_read`, `allow_write` or `deny_write`";

/// Why an entry of a project's own file is left out.
const OUTSIDE: &str = "it lies outside of the project, and a project's file opens nothing there; if you want \
                                  it, use `portcullis allow`";

/// Returns true if an entry opens something in the project, or programs of Nix.
fn is_inside(entry: &str, key: &str) -> bool {
    let climbs = entry.split('/').any(|part| part == "..");
    let is_program = key == "allow_read" && (entry == "/nix" || entry.starts_with("/nix/"));
    !climbs && (is_program || !entry.starts_with(['/', '~']))
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

pub(crate) mod whole;

#[cfg(test)]
mod tests;
