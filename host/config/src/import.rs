//! Settings of other sandboxes, made into ours.
//!
//! Nothing is lost in silence: every value is tried in its place, and what does not fit there is told with the reason
//! that a settings file of ours would be refused for.

use std::path::Path;

use serde_json::{Map, Value as Json, json};

use crate::discover;
use crate::disk::{Disk, RealDisk};
use crate::edit::Change;
use crate::error::{ConfigError, shown};
use crate::fields::FIELDS;
use crate::places::Places;
use crate::schema::{Field, Shape, Status, field, nearest_key};
use crate::tighten::Layer;
use crate::validate::{FileKind, mistakes};

/// Whose settings they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// `@oddsjam/pi-sandbox`: our own shape and places.
    Oddsjam,
    /// `@sysid/pi-sandbox`: lists over defaults, `denyWrite` holds names.
    Sysid,
    /// `pi-sandbox`: the same files elsewhere, other defaults.
    PiSandbox,
    /// `@anthropic-ai/sandbox-runtime` by itself.
    Srt,
    /// bosun's `config.toml`, read as JSON.
    Bosun,
}

/// What became of settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The settings in our shape; they can be used.
    pub text: String,
    /// What could not be carried.
    pub left: Vec<Left>,
    /// What the user should know of how it was read. What the settings come to is said by the rules made of them.
    pub notes: Vec<&'static str>,
}

/// Something that could not be carried.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Left {
    /// Its place, such as `network.allowedDomains`.
    pub key: String,
    /// The value.
    pub value: Json,
    /// Why.
    pub reason: String,
}

/// Complete settings in which nothing is allowed or denied yet.
const EMPTY: &str = r#"{
  "network": { "allowedDomains": [], "deniedDomains": [] },
  "filesystem": { "denyRead": [], "allowRead": [], "allowWrite": [], "denyWrite": [] }
}
"#;

/// What the second seed starts from, and pi-sandbox for hosts and names.
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
    /// Makes complete settings of the user's own.
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
                import.carry(&["policies"], &json!([{ "use": "guard", "config": guard(&whole) }]));
                import.choose_layout();
            }
            Self::Bosun => {
                import.notes.push(OTHER_TABLES);
                import.bosun(given);
            }
        }
        import.end()
    }

    /// Makes what a project's own file may say of one: what tightens.
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

/// Reads the settings of another sandbox; none where there is no file.
///
/// # Errors
/// When the file cannot be read, or is no JSON.
pub fn read_foreign(file: &Path, disk: &dyn Disk) -> Result<Option<Json>, ConfigError> {
    let Some(text) = discover::read(file, disk)? else { return Ok(None) };
    let document = crate::json::read(&text).map_err(|fault| crate::settings::invalid(file, fault))?;
    Ok(Some(document.to_json()))
}

/// Makes sure that a file of the project's own lies in the project, not behind a link that leads out of it.
///
/// # Errors
/// When it does not.
pub fn stays_in_project(file: &Path, places: &Places, disk: &dyn Disk) -> Result<(), ConfigError> {
    discover::stays_inside(file, &places.canonical_workspace(disk)?, disk)
}

/// The policy of the second seed's semantics, with these lists.
fn guard(lists: &Json) -> Json {
    let of = |part: &str, keys: &[&str]| {
        let member = |key: &&str| Some(((*key).to_owned(), lists.get(part)?.get(*key)?.clone()));
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

/// One level of merging, as both do it: a list that is given replaces the default of that list.
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

/// `denyWrite` holds names there, and paths here: a name becomes the glob that finds it at every depth.
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

/// Settings being put together.
struct Import {
    text: String,
    kind: FileKind,
    left: Vec<Left>,
    notes: Vec<&'static str>,
}

impl Import {
    fn into(text: &str, kind: FileKind) -> Self {
        Self { text: text.to_owned(), kind, left: Vec::new(), notes: Vec::new() }
    }

    fn end(self) -> Imported {
        Imported { text: self.text, left: self.left, notes: self.notes }
    }

    /// Says that the files which these settings came from are not to be read.
    fn choose_layout(&mut self) {
        self.carry(&["layout"], &json!("projects"));
    }

    fn carry_all(&mut self, given: &Json) {
        match given.as_object() {
            Some(members) => self.members(&[], members),
            None => self.leave("", given, "settings are an object"),
        }
    }

    /// In the order of our own table, so that the outcome reads as every other settings file.
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
            // Objects whose parts stand for themselves.
            (_, Shape::Object, Json::Object(members)) if !has_required_parts(known) => {
                self.members(way, members)
            }
            (_, Shape::List(_) | Shape::Objects, Json::Array(items)) => {
                for item in items {
                    self.make(&Change::Append(owned(way), item.clone()), &name, item);
                }
            }
            _ => self.make(&Change::Set(owned(way), value.clone()), &name, value),
        }
    }

    /// Makes a change, unless the settings could not be used with it.
    fn make(&mut self, change: &Change, name: &str, value: &Json) {
        let text = match change.apply(&self.text) {
            Ok(text) => text,
            Err(error) => return self.leave(name, value, &error.to_string()),
        };
        match mistakes(&text, Path::new("<imported>"), self.kind, &RealDisk).into_iter().next() {
            None => self.text = text,
            Some(ConfigError::Invalid { problem, .. }) => self.leave(name, value, &problem.to_string()),
            Some(error) => self.leave(name, value, &error.to_string()),
        }
    }

    fn leave(&mut self, key: &str, value: &Json, reason: &str) {
        self.left.push(Left { key: shown(key), value: value.clone(), reason: reason.to_owned() });
    }

    fn bosun(&mut self, given: &Json) {
        let Some(table) = table_with_lists(given) else {
            return self.leave("", &Json::Null, "no table has `deny_read`, `allow_write` or `deny_write`");
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
            let entries: Vec<Json> =
                items.iter().filter_map(|item| self.bosun_item(way, key, item)).map(Json::from).collect();
            lists.insert(key.clone(), entries.into());
        }
        // Its own policy decides by the lists as they are; those of the settings hold whatever decides.
        if is_users {
            self.carry(&["policies"], &json!([{ "use": "bosun", "config": lists }]));
        }
    }

    /// Carries one entry into the settings, and returns what the policy takes for it.
    fn bosun_item(&mut self, way: &[&str], key: &str, item: &Json) -> Option<String> {
        let Some(text) = item.as_str() else {
            self.leave(key, item, "it is no path");
            return None;
        };
        let is_name = !text.contains('/') && !text.starts_with('~') && text != ".";
        let (path, entry) = match (key, is_name) {
            // A directory of secrets is one of the home directory's.
            ("deny_read", true) if SECRET_DIRECTORIES.contains(&text) => {
                (format!("~/{text}"), format!("~/{text}"))
            }
            ("deny_read" | "deny_write", true) => (format!("**/{text}"), text.to_owned()),
            // What the policy takes for a name where it has no `/`.
            (_, true) => (text.to_owned(), format!("./{text}")),
            _ => (text.to_owned(), text.to_owned()),
        };
        let left = self.left.len();
        self.carry(way, &json!([path]));
        (self.left.len() == left).then_some(entry)
    }
}

/// What lies in home directories and is named without them.
const SECRET_DIRECTORIES: [&str; 6] = [".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure"];

fn table_with_lists(given: &Json) -> Option<&Map<String, Json>> {
    let members = given.as_object()?;
    if ["deny_read", "allow_write", "deny_write"].iter().any(|key| members.contains_key(*key)) {
        return Some(members);
    }
    members.values().find_map(table_with_lists)
}

/// Whether an object is no whole without some of its parts, other than those that are there from the start.
fn has_required_parts(known: &Field) -> bool {
    let inside = format!("{}.", known.name);
    let is_required = |field: &&Field| field.presence == crate::schema::Presence::Required;
    let mut parts = FIELDS.iter().filter(|field| field.name.starts_with(&inside)).filter(is_required);
    !["network", "filesystem"].contains(&known.name) && parts.any(|part| !part.name.contains("[]"))
}

fn owned(way: &[&str]) -> Vec<String> {
    way.iter().map(|key| (*key).to_owned()).collect()
}

#[cfg(test)]
mod tests;
