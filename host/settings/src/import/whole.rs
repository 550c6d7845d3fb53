//! The settings of other sandboxes with their defaults, and those of a project of bosun.

use portcullis_settings_format::{Change, FileKind};
use serde_json::Value as Json;
use serde_json::{Map, json};

use super::{EMPTY, Foreign, Import, Imported, OTHER_TABLES, over, pi_sandbox_defaults, sysid_defaults};
use crate::bosun_lists::{LISTS, has_lists, table_with_lists, value_with_lists};

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

    /// Returns the part of a document that is about the sandbox.
    #[must_use]
    pub fn rules_of(self, given: &Json) -> &Json {
        match self {
            Self::Bosun => value_with_lists(given).unwrap_or(given),
            Self::Oddsjam | Self::Srt | Self::PiSandbox | Self::Sysid => given,
        }
    }

    /// Returns true if a document looks like settings of this sandbox.
    #[must_use]
    pub fn recognises(self, given: &Json) -> bool {
        match self {
            Self::Bosun => has_lists(given),
            Self::Oddsjam | Self::Srt | Self::PiSandbox | Self::Sysid => given.is_object(),
        }
    }
}

/// Converts bosun's `config.toml` of a project to the user's settings for that project.
///
/// An agent may have written the file, so it opens nothing outside of the project: such entries are left out. The entry
/// extends the user's settings for all projects, so their denials stay.
#[must_use]
pub fn bosun_project(given: &Json) -> Imported {
    let mut import = Import::into(EMPTY, FileKind::Settings);
    import.is_projects = true;
    import.notes.push(OTHER_TABLES);
    import.bosun(given);
    let mut imported = import.end();
    match Change::Set(vec!["extends".to_owned()], json!("default")).apply(&imported.text) {
        Ok(text) => imported.text = text,
        Err(error) => imported.left.push(super::Left {
            key: "extends".to_owned(),
            value: json!("default"),
            reason: error.to_string(),
        }),
    }
    imported
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(given: &Json) -> (Json, Vec<Json>) {
        let imported = bosun_project(given);
        let settings: Json = serde_json::from_str(&imported.text).unwrap();
        (settings, imported.left.into_iter().map(|left| left.value).collect())
    }

    #[test]
    fn a_project_of_bosun_opens_nothing_outside() {
        let (settings, left) = opened(&json!({ "model": {}, "sandbox": {
            "deny_read": [".env"], "allow_write": ["workspace", "/", "~/x", "../y", "a/../../z"],
            "allow_read": [".", "/nix", "/nix/store", "/etc", "/nix/../home", "/nixos"],
        } }));
        assert_eq!(settings["filesystem"]["allowWrite"], json!(["workspace"]));
        assert_eq!(settings["policies"][0]["config"]["allow_write"], json!(["./workspace"]));
        assert_eq!(settings["policies"][0]["config"]["allow_read"], json!([".", "/nix", "/nix/store"]));
        assert_eq!(settings["extends"], "default", "the user's denials stay");
        assert_eq!(left.len(), 7, "{left:?}");
    }

    /// Each of these once opened `/` by another form than a list in the first table.
    #[test]
    fn other_forms_of_the_lists_open_nothing_either() {
        for given in [
            json!({ "a": { "allow_read": ["."] }, "sandbox": { "allow_write": ["/"] } }),
            json!({ "sandbox": { "allow_write": "/" } }),
            json!({ "sandbox": { "allow_write": [["/"]] } }),
            json!({ "sandbox": { "allow_write": [{ "path": "/", "literal": true }] } }),
            json!({ "sandbox": { "allow_write": [], "more": { "allow_write": ["/"] } } }),
        ] {
            let (settings, left) = opened(&given);
            let text = settings.to_string();
            assert!(!text.contains("\"/\"") && !text.contains("[\"/"), "{given}: {text}");
            assert!(!left.is_empty(), "{given}");
        }
    }
}
