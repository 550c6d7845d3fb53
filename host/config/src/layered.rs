//! The layered layout, in which later settings override earlier ones. Its files are those of `@sysid/pi-sandbox`.
//!
//! The layers are the built-in settings, the user's `extensions/sandbox.json` merged over them key by key, and the
//! user's entry for the project in `layered.json`, whose lists are added. They are merged into one document in which
//! each value records its file. The project's `.pi/sandbox.json` is not a layer of this kind: it only tightens, see
//! [`crate::tighten`] and [`crate::narrow`].

use std::path::Path;
use std::sync::Arc;

use crate::check::{Completeness, check, step};
use crate::discover::{self, Document, Source};
use crate::disk::Disk;
use crate::error::ConfigError;
use crate::json::{Home, Member, Node, Value};
use crate::layout::SettingsFiles;
use crate::places::Places;
use crate::schema::{Shape, field};
use crate::settings::{Entry, PathEntry, Settings, invalid};
use crate::tighten::Layer;

/// The built-in settings of the layered layout: the defaults of `@sysid/pi-sandbox`, unchanged, with its policy.
pub const LAYERED_BUILT_IN: &str = r#"{
  "enabled": true,
  "network": {
    "allowedDomains": [
      "npmjs.org", "*.npmjs.org", "registry.npmjs.org",
      "registry.yarnpkg.com",
      "pypi.org", "*.pypi.org",
      "github.com", "*.github.com", "api.github.com",
      "raw.githubusercontent.com"
    ],
    "deniedDomains": []
  },
  "filesystem": {
    "denyRead": ["~/.ssh", "~/.aws", "~/.gnupg"],
    "allowWrite": [".", "/tmp"],
    "denyWrite": [".env", ".env.*", "*.pem", "*.key"]
  },
  "policies": [{ "use": "guard" }]
}
"#;

/// Reads the user's layers.
///
/// # Errors
/// When one of the files exists but cannot be used.
pub(crate) fn read(
    places: &Places,
    files: &SettingsFiles,
    disk: &dyn Disk,
) -> Result<(Document, Source), ConfigError> {
    let mut whole = built_in()?;
    if let Some(text) = discover::read(&files.default, disk)? {
        whole = over(&whole, part(&text, &files.default)?, Lists::Replaced, &files.default, "")?;
    }
    let mut key = None;
    if let Some(text) = discover::read(&files.entries, disk)? {
        let document = crate::json::read(&text).map_err(|fault| invalid(&files.entries, fault))?;
        if let Some(member) = discover::entry_that_holds(&document, &files.entries, places, disk)? {
            let entry = member.node.clone();
            whole = over(&whole, entry, Lists::Added, &files.entries, &step("", &member.key))?;
            key = Some(member.key.clone());
        }
    }
    let document =
        Document { layer: Layer::User, file: files.default.clone(), pointer: String::new(), node: whole };
    Ok((document, Source::Layered { file: files.default.clone(), key }))
}

/// Decodes a file of partial settings, merged over the built-in ones.
pub(crate) fn alone(node: &Node, file: &Path, pointer: &str) -> Result<Settings, ConfigError> {
    let whole = over(&built_in()?, node.clone(), Lists::Replaced, file, pointer)?;
    Settings::from_node(&whole, file, "")
}

fn built_in() -> Result<Node, ConfigError> {
    let file = Path::new("<built in>");
    let mut node = part(LAYERED_BUILT_IN, file)?;
    come_from(&mut node, file, "");
    Ok(node)
}

fn part(text: &str, file: &Path) -> Result<Node, ConfigError> {
    crate::json::read(text).map_err(|fault| invalid(file, fault))
}

/// How to merge a list with that of an earlier layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lists {
    /// The later list replaces the earlier one.
    Replaced,
    /// The lists are concatenated.
    Added,
}

/// Merges `node`, found at `pointer` of `file`, over `below`.
///
/// The node is checked on its own first and the result right after merging, so that each mistake is reported for the
/// file that contains it.
pub(crate) fn over(
    below: &Node,
    mut node: Node,
    lists: Lists,
    file: &Path,
    pointer: &str,
) -> Result<Node, ConfigError> {
    check(&node, pointer, Completeness::Part).map_err(|fault| invalid(file, fault))?;
    come_from(&mut node, file, pointer);
    let whole = merged(below, node, lists, "");
    Settings::from_node(&whole, file, pointer)?;
    Ok(whole)
}

/// Records file and pointer in a value and all values inside it.
pub(crate) fn come_from(node: &mut Node, file: &Path, pointer: &str) {
    node.home = Some(Arc::new(Home { file: file.to_owned(), pointer: pointer.to_owned() }));
    match &mut node.value {
        Value::Object(members) => {
            for member in members {
                come_from(&mut member.node, file, &step(pointer, &member.key));
            }
        }
        Value::List(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                come_from(item, file, &step(pointer, &index.to_string()));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => {}
    }
}

/// Merges one value over another. `name` is the field of both; it is empty for the whole document.
pub(crate) fn merged(below: &Node, above: Node, lists: Lists, name: &str) -> Node {
    let shape = field(name).map(|field| field.shape);
    // An object with free keys is merged like a list of pairs.
    let is_map = lists == Lists::Added && matches!(shape, Some(Shape::Map(_)));
    let is_object = name.is_empty() || is_map || shape == Some(Shape::Object);
    match (&below.value, above.value) {
        (Value::Object(known), Value::Object(given)) if is_object => {
            let mut members = known.clone();
            for member in given {
                put(&mut members, member, lists, name);
            }
            Node { value: Value::Object(members), ..below.clone() }
        }
        (Value::List(known), Value::List(given)) if lists == Lists::Added => {
            Node { value: Value::List(known.iter().cloned().chain(given).collect()), ..below.clone() }
        }
        (_, value) => Node { value, at: above.at, span: above.span, home: above.home },
    }
}

fn put(members: &mut Vec<Member>, member: Member, lists: Lists, parent: &str) {
    let name = if parent.is_empty() { member.key.clone() } else { format!("{parent}.{}", member.key) };
    match members.iter_mut().find(|known| known.key == member.key) {
        Some(known) => known.node = merged(&known.node, member.node, lists, &name),
        None => members.push(member),
    }
}

/// Turns names in `denyWrite` into globs that match at any depth, as this layout defines them.
///
/// A text with a `/` is a path, as elsewhere.
pub(crate) fn names_at_every_depth(entries: &mut [Entry<PathEntry>]) {
    for entry in entries {
        if is_name(&entry.value) {
            entry.value.text = format!("/**/{}", entry.value.text);
        }
    }
}

fn is_name(path: &PathEntry) -> bool {
    !path.literal && !path.text.contains('/') && ![".", "..", "~"].contains(&path.text.as_str())
}
