//! Policy configuration in a file of its own, TOML or JSON.

use std::path::Path;

use portcullis_settings_format::{ConfigError, PolicyConfigForm};
use serde_json::{Map, Value};

use crate::bosun_lists::with_endings;
use crate::disk::Disk;

/// Returns the table of bosun's `config.toml` with its lists of places; the other tables are about other things.
///
/// A configuration that has a list itself, or no table with one, is returned as it is.
pub(crate) fn lists_of_bosun(config: Map<String, Value>) -> Map<String, Value> {
    let has_list = |table: &Map<String, Value>| BOSUN_LISTS.iter().any(|key| table.contains_key(*key));
    let mut tables = config.values().filter_map(Value::as_object).filter(|table| has_list(table));
    let mut table = match (has_list(&config), tables.next(), tables.next()) {
        (false, Some(table), None) => table.clone(),
        _ => config,
    };
    for (_, list) in table.iter_mut().filter(|(key, _)| key.starts_with("deny")) {
        if let Value::Array(entries) = list {
            *entries = with_endings(entries);
        }
    }
    table
}

/// The lists of bosun's configuration.
const BOSUN_LISTS: [&str; 3] = ["deny_read", "allow_write", "deny_write"];

/// Reads a configuration in full. Unknown keys are kept, since the policy itself refuses them.
pub(crate) fn read(file: &Path, disk: &dyn Disk) -> Result<Map<String, Value>, ConfigError> {
    let bytes = disk.read(file).map_err(|source| ConfigError::Read { file: file.to_owned(), source })?;
    let wrong = |reason: String| ConfigError::PolicyConfig { file: file.to_owned(), reason };
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is no text".to_owned()))?;
    let read = match PolicyConfigForm::from_extension(file) {
        Some(PolicyConfigForm::Toml) => toml::from_str(&text).map_err(|error| error.to_string()),
        Some(PolicyConfigForm::Json) => serde_json::from_str(&text).map_err(|error| error.to_string()),
        None => Err("its name ends in neither `.toml` nor `.json`".to_owned()),
    };
    read.map_err(wrong)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn other_tables_of_bosun_are_left_alone() {
        let taken = |value: Value| Value::Object(lists_of_bosun(value.as_object().unwrap().clone()));
        let lists = json!({ "deny_read": [".ssh"], "allow_write": ["workspace"] });
        assert_eq!(taken(json!({ "model": { "name": "x" }, "sandbox": lists })), lists);
        assert_eq!(taken(lists.clone()), lists);
        let keys = json!({ "deny_read": [".pem", ".env"], "deny_write": [".key", "*.key"], "allow_write": [".pem"] });
        let wanted = json!({ "deny_read": [".pem", "*.pem", ".env"], "deny_write": [".key", "*.key"], "allow_write": [".pem"] });
        assert_eq!(taken(keys.clone()), wanted);
        assert_eq!(taken(json!({ "sandbox": keys })), wanted);
        let two = json!({ "one": lists, "two": lists });
        assert_eq!(taken(two.clone()), two, "it is not guessed which of two is meant");
        let slip = json!({ "model": {}, "sandbox": { "deny_raed": [] } });
        assert_eq!(taken(slip.clone()), slip, "the policy refuses what it does not know");
    }
}
