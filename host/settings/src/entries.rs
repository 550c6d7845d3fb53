//! Entries of `projects.json`: complete settings, or differences from other settings.
//!
//! An entry without `extends` is complete and replaces all other settings. An entry with `extends` holds differences:
//! its lists are added to those of `default.json` or of the entry above it, and its other values replace theirs.
//! Answers create entries with `extends`, so that later edits of the defaults apply to the project as well.

use portcullis_settings_format::check::{Completeness, check};
use portcullis_settings_format::fault::invalid;
use portcullis_settings_format::json::{Member, Node, Value};
use portcullis_settings_format::pointer::step;
use portcullis_settings_format::{BUILT_IN, ConfigError, EXTENDS, Extends, Settings};
use serde_json::Map;
use serde_json::Value as Json;

use crate::disk::Disk;
use crate::merge::{Lists, come_from, merged, over};
use crate::places::Places;
use crate::settings_files::SettingsFiles;
use crate::{project_keys, settings_text};

/// `projects.json`, with the context to look up other entries.
#[derive(Clone, Copy)]
pub(crate) struct Entries<'a> {
    pub(crate) document: &'a Node,
    pub(crate) files: &'a SettingsFiles,
    pub(crate) places: &'a Places,
    pub(crate) disk: &'a dyn Disk,
}

impl<'a> Entries<'a> {
    /// Returns the complete settings of an entry.
    pub(crate) fn complete(self, member: &Member) -> Result<Node, ConfigError> {
        let (file, pointer) = (&self.files.entries, step("", &member.key));
        let Some(extends) = Extends::from_entry(&member.node) else {
            return self.with_grants_for_all(member);
        };
        check(&member.node, &pointer, Completeness::Part).map_err(|fault| invalid(file, fault))?;
        over(&self.below(member, extends)?, differences_of(&member.node), Lists::Added, file, &pointer)
    }

    /// Returns the complete settings that an entry extends.
    pub(crate) fn below(self, member: &Member, extends: Extends) -> Result<Node, ConfigError> {
        match (extends, self.above(member)?) {
            (Extends::Parent, Some(above)) => self.complete(above),
            (Extends::Parent, None) | (Extends::Default, _) => self.defaults(),
        }
    }

    /// Returns the entry of the closest directory above that of `member`.
    pub(crate) fn above(self, member: &Member) -> Result<Option<&'a Member>, ConfigError> {
        let Self { document, files, places, disk } = self;
        project_keys::entry_above(document, &files.entries, places, disk, &member.key)
    }

    /// Returns `member` and the entries that it extends, the closest first.
    pub(crate) fn chain(self, member: &'a Member) -> Result<Vec<&'a Member>, ConfigError> {
        let mut chain = vec![member];
        let mut last = member;
        while Extends::from_entry(&last.node) == Some(Extends::Parent)
            && let Some(above) = self.above(last)?
        {
            chain.push(above);
            last = above;
        }
        Ok(chain)
    }

    /// Returns the settings of `default.json`, or the built-in ones.
    pub(crate) fn defaults(self) -> Result<Node, ConfigError> {
        let file = &self.files.default;
        let Some(text) = settings_text::read(file, self.disk)? else { return built_in() };
        let mut node = portcullis_settings_format::json::read(&text).map_err(|fault| invalid(file, fault))?;
        come_from(&mut node, file, "");
        Settings::from_node(&node, file, "")?;
        Ok(node)
    }

    /// Returns a complete entry with the `grants` of `default.json` added.
    ///
    /// Answers for all projects apply in every project.
    fn with_grants_for_all(self, member: &Member) -> Result<Node, ConfigError> {
        let file = &self.files.default;
        let Some(text) = settings_text::read(file, self.disk)? else { return Ok(member.node.clone()) };
        let document = portcullis_settings_format::json::read(&text).map_err(|fault| invalid(file, fault))?;
        let mut grants = document.members().iter().filter(|default| default.key == "grants").cloned();
        let Some(mut grants) = grants.next().filter(|grants| !grants.node.items().is_empty()) else {
            return Ok(member.node.clone());
        };
        Settings::from_node(&document, file, "")?;
        come_from(&mut grants.node, file, "/grants");
        let mut entry = member.node.clone();
        come_from(&mut entry, &self.files.entries, &step("", &member.key));
        let added = Node { value: Value::Object(vec![grants]), ..document };
        Ok(merged(&entry, added, Lists::Added, ""))
    }
}

fn built_in() -> Result<Node, ConfigError> {
    let file = std::path::Path::new("<built in>");
    let mut node = portcullis_settings_format::json::read(BUILT_IN).map_err(|fault| invalid(file, fault))?;
    come_from(&mut node, file, "");
    Ok(node)
}

/// Decodes an entry of differences over the built-in settings.
pub(crate) fn alone(node: &Node, file: &std::path::Path, pointer: &str) -> Result<Settings, ConfigError> {
    let whole = over(&built_in()?, differences_of(node), Lists::Added, file, pointer)?;
    Settings::from_node(&whole, file, pointer)
}

/// Returns an entry without its `extends` key.
fn differences_of(entry: &Node) -> Node {
    let members = entry.members().iter().filter(|member| member.key != EXTENDS).cloned().collect();
    Node { value: Value::Object(members), ..entry.clone() }
}

/// Lists in which order has no meaning.
const UNORDERED: [&str; 8] = [
    "presets",
    "network.allowedDomains",
    "network.deniedDomains",
    "filesystem.denyRead",
    "filesystem.allowRead",
    "filesystem.allowWrite",
    "filesystem.denyWrite",
    GRANTS,
];

const GRANTS: &str = "grants";

/// Returns the differences that give `entry` when added to `below`.
///
/// `None` if `entry` lacks a value that `below` has.
pub(crate) fn differences(below: &Json, entry: &Json) -> Option<Json> {
    objects(below.as_object()?, entry.as_object()?, "").map(Json::Object)
}

fn objects(below: &Map<String, Json>, entry: &Map<String, Json>, parent: &str) -> Option<Map<String, Json>> {
    let mut differences = Map::new();
    for (key, known) in below.iter().filter(|(key, _)| *key != "$schema") {
        let name = if parent.is_empty() { key.clone() } else { format!("{parent}.{key}") };
        let is_empty = known.as_array().is_some_and(Vec::is_empty);
        let difference = match (known, entry.get(key)) {
            (_, Some(own)) if own == known => continue,
            // Grants also apply to a complete entry.
            (_, None) if is_empty || name == GRANTS => continue,
            (_, None) => return None,
            (Json::Array(known), Some(Json::Array(own))) => {
                let is_whole = known.iter().all(|item| own.contains(item) || name == GRANTS);
                if !UNORDERED.contains(&name.as_str()) || !is_whole {
                    return None;
                }
                own.iter().filter(|item| !known.contains(item)).cloned().collect()
            }
            (Json::Object(known), Some(Json::Object(own))) => Json::Object(objects(known, own, &name)?),
            (_, Some(own)) => own.clone(),
        };
        differences.insert(key.clone(), difference);
    }
    let added = entry.iter().filter(|(key, _)| !below.contains_key(*key));
    differences.extend(added.map(|(key, own)| (key.clone(), own.clone())));
    Some(differences)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_and_what_they_are_added_to_are_the_entry() {
        let below = json!({
            "enabled": true,
            "network": { "allowedDomains": ["a"], "deniedDomains": [] },
            "policies": [{ "use": "workspace" }],
            "grants": [{ "tool": "t" }],
        });
        let check = |change: fn(&mut Json), expected: Option<Json>| {
            let mut entry = below.clone();
            change(&mut entry);
            assert_eq!(differences(&below, &entry), expected, "{entry}");
        };
        check(|_| {}, Some(json!({})));
        check(
            |entry| entry["network"]["allowedDomains"] = json!(["b", "a"]),
            Some(json!({ "network": { "allowedDomains": ["b"] } })),
        );
        check(|entry| entry["enabled"] = json!(false), Some(json!({ "enabled": false })));
        check(|entry| entry["limits"] = json!({ "cpuMs": 1 }), Some(json!({ "limits": { "cpuMs": 1 } })));
        check(
            |entry| entry["grants"] = json!([{ "tool": "u" }]),
            Some(json!({ "grants": [{ "tool": "u" }] })),
        );
        // The entry lacks a value of the default, so it stays complete.
        check(|entry| entry["network"]["allowedDomains"] = json!(["b"]), None);
        check(|entry| entry["policies"] = json!([{ "use": "workspace" }, { "use": "guard" }]), None);
        check(|entry| drop(entry.as_object_mut().unwrap().remove("policies")), None);
        check(
            |entry| drop(entry["network"].as_object_mut().unwrap().remove("deniedDomains")),
            Some(json!({ "network": {} })),
        );
    }
}
