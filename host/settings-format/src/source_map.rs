//! Origins of policy configuration values, so that a decision can name the settings line behind it.

use std::collections::BTreeMap;

use crate::document_value::DocumentValue;
use crate::entry::Origin;
use crate::json::Value;

/// The origins of the values of one configuration, by JSON pointer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sites {
    values: BTreeMap<String, Origin>,
    /// Where the settings name the file with the whole configuration.
    file: Option<Origin>,
}

impl Sites {
    /// Returns the origins of all values in `place`.
    pub(crate) fn collect(place: &DocumentValue<'_>) -> Self {
        let mut sites = Self::default();
        sites.walk("", place);
        sites
    }

    /// Returns the origin of a configuration file.
    pub(crate) fn of_file(named: Origin) -> Self {
        Self { values: BTreeMap::new(), file: Some(named) }
    }

    /// Adds the items of the list at `pointer`, in order. Known origins are kept.
    pub fn add_list(&mut self, pointer: &str, items: impl IntoIterator<Item = Origin>) {
        for (index, origin) in items.into_iter().enumerate() {
            self.add(&format!("{pointer}/{index}"), origin);
        }
    }

    /// Adds the value at `pointer`. A known origin is kept.
    pub fn add(&mut self, pointer: &str, origin: Origin) {
        self.values.entry(pointer.to_owned()).or_insert(origin);
    }

    /// Adds the origins of `other` at and below the key `key`.
    pub fn add_from(&mut self, other: &Self, key: &str) {
        let below = other.values.iter().filter(|(pointer, _)| {
            let rest = pointer.strip_prefix('/').and_then(|pointer| pointer.strip_prefix(key));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        for (pointer, origin) in below {
            self.add(pointer, origin.clone());
        }
    }

    /// Describes where the value at `pointer` was written.
    ///
    /// A value that the settings do not contain is the policy's own.
    ///
    /// ```
    /// assert_eq!(portcullis_settings_format::Sites::default().words("/keep/0"), "`keep[0]`, a default of the policy's own");
    /// ```
    #[must_use]
    pub fn words(&self, pointer: &str) -> String {
        let shown = crate::error::shown_place(pointer);
        match (self.values.get(pointer), &self.file) {
            (Some(origin), _) => origin.to_string(),
            (None, Some(file)) => format!("{file}, `{shown}` in that file"),
            (None, None) => format!("`{shown}`, a default of the policy's own"),
        }
    }

    fn walk(&mut self, pointer: &str, place: &DocumentValue<'_>) {
        let Some(node) = place.node else { return };
        let inside: Vec<(String, DocumentValue<'_>)> = match &node.value {
            Value::List(_) => {
                place.items().into_iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
            }
            Value::Object(members) => {
                let child = |key: &String| (key.clone(), place.child(key));
                members.iter().map(|member| child(&member.key)).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => Vec::new(),
        };
        for (key, item) in inside {
            self.walk(&crate::pointer::step(pointer, &key), &item);
        }
        self.add(pointer, place.origin());
    }
}
