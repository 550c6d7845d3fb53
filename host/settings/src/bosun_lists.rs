//! The table of bosun's `config.toml` that is about the sandbox.

use serde_json::{Map, Value as Json};

/// The keys of bosun's lists, each with the name of sandbox-runtime's.
pub(crate) const LISTS: [(&str, &str); 4] = [
    ("deny_read", "denyRead"),
    ("allow_read", "allowRead"),
    ("allow_write", "allowWrite"),
    ("deny_write", "denyWrite"),
];

/// Returns the table with the lists of bosun. Of two such tables, none is chosen.
pub(crate) fn table_with_lists(given: &Json) -> Option<&Map<String, Json>> {
    value_with_lists(given)?.as_object()
}

/// Returns the same table as a value.
pub(crate) fn value_with_lists(given: &Json) -> Option<&Json> {
    fn collect<'a>(given: &'a Json, found: &mut Vec<&'a Json>) {
        let Some(members) = given.as_object() else { return };
        if LISTS.iter().any(|(key, _)| members.contains_key(*key)) {
            found.push(given);
        }
        members.values().for_each(|value| collect(value, found));
    }
    let mut found = Vec::new();
    collect(given, &mut found);
    match found.as_slice() {
        [table] => Some(table),
        _ => None,
    }
}

/// Endings of files with keys. In a list of denials, `.pem` means the files that end so as well.
const KEY_ENDINGS: [&str; 4] = [".pem", ".key", ".p12", ".pfx"];

/// Returns the entries of a list of denials, with a pattern beside each name that is an ending of files with keys.
pub(crate) fn with_endings(entries: &[Json]) -> Vec<Json> {
    let mut all = Vec::new();
    for entry in entries {
        all.push(entry.clone());
        let pattern = entry.as_str().filter(|text| KEY_ENDINGS.contains(text)).map(|text| format!("*{text}"));
        all.extend(pattern.map(Json::from).filter(|pattern| !entries.contains(pattern)));
    }
    all
}

/// Returns true if any table has lists of bosun.
pub(crate) fn has_lists(given: &Json) -> bool {
    let members = given.as_object();
    members.is_some_and(|members| {
        LISTS.iter().any(|(key, _)| members.contains_key(*key)) || members.values().any(has_lists)
    })
}
