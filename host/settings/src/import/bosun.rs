//! Conversion of bosun's three lists.

use portcullis_settings_format::FileKind;
use serde_json::{Map, Value as Json, json};

use super::Import;
use crate::bosun_lists::{table_with_lists, with_endings};

impl Import {
    /// Carries the lists, for the settings and for the policy `bosun`.
    pub(super) fn bosun(&mut self, given: &Json) {
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
            let items = if key.starts_with("deny") { with_endings(items) } else { items.to_vec() };
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
