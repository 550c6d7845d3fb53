//! The settings of other sandboxes with their defaults, and those of a project of bosun.

use serde_json::Value as Json;
use serde_json::{Map, json};

use super::{
    EMPTY, Foreign, Import, Imported, Left, OTHER_TABLES, over, pi_sandbox_defaults, sysid_defaults,
    table_with_lists,
};
use portcullis_settings_format::FileKind;

/// The keys of bosun's lists, each with the name of sandbox-runtime's.
const LISTS: [(&str, &str); 4] = [
    ("deny_read", "denyRead"),
    ("allow_read", "allowRead"),
    ("allow_write", "allowWrite"),
    ("deny_write", "denyWrite"),
];

impl Foreign {
    /// Returns the settings with the defaults of the sandbox, in the shape of sandbox-runtime.
    #[must_use]
    pub fn complete(self, given: &Json) -> Json {
        match self {
            Self::Oddsjam | Self::Srt => given.clone(),
            Self::PiSandbox => over(&pi_sandbox_defaults(), given),
            Self::Sysid => over(&sysid_defaults(), given),
            Self::Bosun => {
                let table = table_with_lists(given);
                let list =
                    |key: &str| table.and_then(|table| table.get(key)).cloned().unwrap_or_else(|| json!([]));
                let files: Map<String, Json> =
                    LISTS.iter().map(|(key, name)| ((*name).to_owned(), list(key))).collect();
                json!({ "filesystem": files })
            }
        }
    }

    /// Returns the settings with the defaults of the sandbox, and a project's own over them.
    #[must_use]
    pub fn merged(self, users: &Json, projects: &Json) -> Json {
        let users = self.complete(users);
        if projects.is_object() { over(&users, projects) } else { users }
    }

    /// Returns true if a document looks like settings of this sandbox.
    #[must_use]
    pub fn recognises(self, given: &Json) -> bool {
        match self {
            Self::Bosun => table_with_lists(given).is_some(),
            Self::Oddsjam | Self::Srt | Self::PiSandbox | Self::Sysid => given.is_object(),
        }
    }
}

/// Converts bosun's `config.toml` of a project to the user's settings for that project.
///
/// An agent may have written the file, so it opens nothing outside of the project: such entries are left out.
#[must_use]
pub fn bosun_project(given: &Json) -> Imported {
    let mut given = given.clone();
    let mut left = Vec::new();
    if let Some(table) = table_with_lists_mut(&mut given) {
        for key in ["allow_read", "allow_write"] {
            if let Some(Json::Array(items)) = table.get_mut(key) {
                items.retain(|item| {
                    let stays = item.as_str().is_none_or(|text| is_inside(text, key));
                    if !stays {
                        left.push(outside(key, item));
                    }
                    stays
                });
            }
        }
    }
    let mut import = Import::into(EMPTY, FileKind::Settings);
    import.left = left;
    import.notes.push(OTHER_TABLES);
    import.bosun(&given);
    import.end()
}

fn is_inside(entry: &str, key: &str) -> bool {
    let is_tool = key == "allow_read" && entry.starts_with("/nix");
    is_tool || !(entry.starts_with(['/', '~']) || entry.split('/').any(|part| part == ".."))
}

fn outside(key: &str, item: &Json) -> Left {
    Left {
        key: key.to_owned(),
        value: item.clone(),
        reason:
            "it lies outside of the project, and a project's file opens nothing there; if you want it, use \
                 `portcullis allow`"
                .to_owned(),
    }
}

fn table_with_lists_mut(given: &mut Json) -> Option<&mut Map<String, Json>> {
    let members = given.as_object_mut()?;
    if LISTS.iter().any(|(key, _)| members.contains_key(*key)) {
        return Some(members);
    }
    members.values_mut().find_map(table_with_lists_mut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_of_bosun_opens_nothing_outside() {
        let given = json!({ "model": {}, "sandbox": {
            "deny_read": [".env"], "allow_write": ["workspace", "/", "~/x", "../y", "a/../../z"], "allow_read": [".", "/nix", "/etc"],
        } });
        let imported = bosun_project(&given);
        let settings: Json = serde_json::from_str(&imported.text).unwrap();
        assert_eq!(settings["filesystem"]["allowWrite"], json!(["workspace"]));
        assert_eq!(settings["policies"][0]["config"]["allow_write"], json!(["./workspace"]));
        assert_eq!(settings["policies"][0]["config"]["allow_read"], json!([".", "/nix"]));
        assert_eq!(imported.left.len(), 5, "{:?}", imported.left);
    }
}
