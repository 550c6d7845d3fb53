//! What one settings document says and another does not, in words.

use portcullis_settings_format::error::shown;
use serde_json::Value as Json;

/// Returns a phrase for each difference: what a list gained or lost, and which values were set, changed or removed.
pub(crate) fn differences(before: &Json, now: &Json) -> Vec<String> {
    let mut found = Vec::new();
    compare("", before, now, &mut found);
    found
}

fn compare(name: &str, before: &Json, now: &Json, found: &mut Vec<String>) {
    match (before, now) {
        _ if before == now => {}
        (Json::Object(old), Json::Object(new)) => {
            for (key, value) in old {
                let name = inside(name, key);
                match new.get(key) {
                    Some(other) => compare(&name, value, other, found),
                    None => found.push(format!("`{}` was removed", shown(&name))),
                }
            }
            for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                found.push(format!("`{}` is new: {}", shown(&inside(name, key)), written(value)));
            }
        }
        (Json::Array(old), Json::Array(new)) => {
            let missing = |some: &[Json], others: &[Json]| -> Vec<String> {
                some.iter().filter(|item| !others.contains(item)).map(written).collect()
            };
            let name = shown(name);
            for (word, items) in [("gained", missing(new, old)), ("lost", missing(old, new))] {
                if !items.is_empty() {
                    found.push(format!("`{name}` {word} {}", items.join(", ")));
                }
            }
            // The same items in another order mean the same.
        }
        _ => found.push(format!("`{}` is {} now", shown(name), written(now))),
    }
}

fn inside(name: &str, key: &str) -> String {
    if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") }
}

fn written(value: &Json) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    format!("`{}`", shown(&text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_difference_has_words() {
        let before = json!({ "a": { "list": ["x", "y"], "flag": true }, "gone": 1, "same": [1, 2] });
        let now = json!({ "a": { "list": ["y", "z"], "flag": false }, "fresh": { "k": 1 }, "same": [2, 1] });
        assert_eq!(
            differences(&before, &now),
            [
                "`a.flag` is `false` now",
                "`a.list` gained `z`",
                "`a.list` lost `x`",
                "`gone` was removed",
                "`fresh` is new: `{\"k\":1}`",
            ]
        );
        assert!(differences(&before, &before).is_empty());
    }
}
