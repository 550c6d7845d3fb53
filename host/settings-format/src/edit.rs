//! Changes one place in the text of settings and keeps the order and layout of the rest.

use serde_json::Value as Json;

use crate::fault::Fault;
use crate::json::{Node, Value};

/// Maximum width of a list on one line, in characters; a longer list is written with one item per line.
const INLINE_MAX: usize = 80;

/// A change at one place of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Sets the value at this path. Missing objects on the path are created.
    Set(Vec<String>, Json),
    /// Appends an item to the list at this path, unless the list has it. A missing list is created.
    Append(Vec<String>, Json),
    /// Removes all items equal to this value from the list at this path.
    Drop(Vec<String>, Json),
    /// Removes the value at this path.
    Remove(Vec<String>),
    /// Sets the value at this path to this JSON text and keeps the text's layout.
    Copy(Vec<String>, String),
}

/// Why a text could not be changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EditError {
    /// The text is not JSON.
    #[error("line {}, column {}: {}", .0.line, .0.column, .1)]
    Text(crate::position::Position, crate::error::Problem),
    /// A value has the wrong type: an object on the path, or the list itself.
    #[error("`{}` is {found}, and {wanted} is needed there", crate::error::shown_place(pointer))]
    Shape {
        /// JSON pointer.
        pointer: String,
        /// Type of the existing value.
        found: &'static str,
        /// Type that is needed.
        wanted: &'static str,
    },
}

impl From<Fault> for EditError {
    fn from(fault: Fault) -> Self {
        Self::Text(fault.at, fault.problem)
    }
}

impl Change {
    /// Applies the change to `text`.
    ///
    /// ```
    /// use portcullis_settings_format::Change;
    /// let text = "{\n  \"b\": [\"x\"],\n  \"a\": 1\n}\n";
    /// let changed = Change::Append(vec!["b".into()], "y".into()).apply(text).unwrap();
    /// assert_eq!(changed, "{\n  \"b\": [\"x\", \"y\"],\n  \"a\": 1\n}\n");
    /// ```
    ///
    /// # Errors
    /// When the text is not JSON, or a value on the path has the wrong type.
    pub fn apply(&self, text: &str) -> Result<String, EditError> {
        let document = crate::json::read(text)?;
        let at = |path: &[String]| DeepestNode::find(&document, path);
        match self {
            Self::Set(path, value) => at(path)?.put(text, &Written::Value(value)),
            Self::Copy(path, json) => at(path)?.put(text, &Written::Text(json)),
            Self::Append(path, item) => {
                let place = at(path)?;
                if !place.missing.is_empty() {
                    return place.put(text, &Written::Value(&Json::Array(vec![item.clone()])));
                }
                let items = list(place.node, path)?;
                if items.iter().any(|known| known.to_json() == *item) {
                    return Ok(text.to_owned());
                }
                Ok(append_item(text, place.node, items, item))
            }
            Self::Drop(path, item) => {
                let place = at(path)?;
                if !place.missing.is_empty() {
                    return Ok(text.to_owned());
                }
                let gone = |node: &Node| node.to_json() == *item;
                let items = list(place.node, path)?;
                let spans: Vec<Part> = items.iter().map(Part::of_item).collect();
                Ok(match items.iter().position(gone) {
                    None => text.to_owned(),
                    Some(index) => self.apply(&without(text, place.node, &spans, index))?,
                })
            }
            Self::Remove(path) => {
                let Some((key, parent)) = path.split_last() else {
                    return Err(shape(&document, path, "something in it"));
                };
                let place = at(parent)?;
                let Value::Object(members) = &place.node.value else { return Ok(text.to_owned()) };
                if !place.missing.is_empty() {
                    return Ok(text.to_owned());
                }
                let parts: Vec<Part> = members
                    .iter()
                    .map(|member| Part { starts: member.starts, ends: member.node.span.end })
                    .collect();
                Ok(match members.iter().position(|member| member.key == *key) {
                    None => text.to_owned(),
                    Some(index) => without(text, place.node, &parts, index),
                })
            }
        }
    }
}

/// The value to write.
enum Written<'a> {
    Value(&'a Json),
    Text(&'a str),
}

impl Written<'_> {
    /// Returns its text for a line indented by `indent`.
    fn text(&self, indent: &str) -> String {
        match self {
            Self::Value(value) => rendered(value, indent),
            // The lines of a copy have no indentation of their original place.
            Self::Text(text) => text.trim().replace('\n', &format!("\n{indent}")),
        }
    }
}

/// The deepest existing node on a path, with the missing rest of the path.
struct DeepestNode<'a> {
    node: &'a Node,
    missing: Vec<String>,
}

impl<'a> DeepestNode<'a> {
    fn find(document: &'a Node, path: &[String]) -> Result<Self, EditError> {
        let mut node = document;
        for (depth, key) in path.iter().enumerate() {
            let (way, rest) = path.split_at_checked(depth).unwrap_or((path, &[]));
            match (&node.value, node.member(key)) {
                (_, Some(member)) => node = member,
                (Value::Object(_), None) => return Ok(Self { node, missing: rest.to_vec() }),
                _ => return Err(shape(node, way, "an object")),
            }
        }
        Ok(Self { node, missing: Vec::new() })
    }

    /// Writes a value at the end of the path.
    fn put(&self, text: &str, written: &Written<'_>) -> Result<String, EditError> {
        let Some((key, deeper)) = self.missing.split_first() else {
            let indent = indent_at(text, self.node.span.start);
            return Ok(spliced(text, self.node.span.clone(), &written.text(&indent)));
        };
        let Value::Object(members) = &self.node.value else { return Err(shape(self.node, &[], "an object")) };
        let outer = indent_at(text, self.node.span.start);
        let last = members.last();
        let lead = match last {
            Some(last) => space_before(text, last.starts).to_owned(),
            None => format!("\n{outer}  "),
        };
        let indent = lead.rsplit_once('\n').map_or(outer.as_str(), |(_, indent)| indent).to_owned();
        let mut value = written.text(&indent);
        for key in deeper.iter().rev() {
            value = format!("{{ {}: {value} }}", Json::from(key.as_str()));
        }
        let member = format!("{}: {value}", Json::from(key.as_str()));
        Ok(match last {
            Some(last) => {
                let end = last.node.span.end;
                spliced(text, end..end, &format!(",{lead}{member}"))
            }
            None => spliced(text, self.node.span.clone(), &format!("{{{lead}{member}\n{outer}}}")),
        })
    }
}

fn list<'a>(node: &'a Node, path: &[String]) -> Result<&'a [Node], EditError> {
    if let Value::List(items) = &node.value { Ok(items) } else { Err(shape(node, path, "a list")) }
}

fn shape(node: &Node, path: &[String], wanted: &'static str) -> EditError {
    let pointer = path.iter().fold(String::new(), |pointer, key| crate::pointer::step(&pointer, key));
    EditError::Shape { pointer, found: node.kind(), wanted }
}

fn append_item(text: &str, list: &Node, items: &[Node], item: &Json) -> String {
    let outer = indent_at(text, list.span.start);
    let Some(last) = items.last() else {
        return spliced(text, list.span.clone(), &rendered(&Json::Array(vec![item.clone()]), &outer));
    };
    let before = space_before(text, last.span.start);
    let lead = if before.contains('\n') { before } else { " " };
    let indent = lead.rsplit_once('\n').map_or(outer.as_str(), |(_, indent)| indent).to_owned();
    let added = format!(",{lead}{}", rendered(item, &indent));
    spliced(text, last.span.end..last.span.end, &added)
}

/// The byte range of an item or a member.
struct Part {
    starts: usize,
    ends: usize,
}

impl Part {
    fn of_item(node: &Node) -> Self {
        Self { starts: node.span.start, ends: node.span.end }
    }
}

/// Returns the text without one part of a list or object and without its comma.
fn without(text: &str, whole: &Node, parts: &[Part], index: usize) -> String {
    let before = index.checked_sub(1).and_then(|index| parts.get(index));
    match (parts.get(index), before, parts.get(index.saturating_add(1))) {
        (Some(part), _, Some(next)) => spliced(text, part.starts..next.starts, ""),
        (Some(part), Some(before), None) => spliced(text, before.ends..part.ends, ""),
        (Some(_), None, None) => {
            let empty = if matches!(whole.value, Value::List(_)) { "[]" } else { "{}" };
            spliced(text, whole.span.clone(), empty)
        }
        (None, _, _) => text.to_owned(),
    }
}

fn spliced(text: &str, range: std::ops::Range<usize>, new: &str) -> String {
    let (before, after) = (text.get(..range.start), text.get(range.end..));
    format!("{}{new}{}", before.unwrap_or_default(), after.unwrap_or_default())
}

/// Returns the white space directly before a byte.
fn space_before(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    before.get(before.trim_end().len()..).unwrap_or_default()
}

/// Returns the indentation of the line that contains a byte.
fn indent_at(text: &str, at: usize) -> String {
    let line = text.get(..at).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
    line.chars().take_while(|character| character.is_whitespace()).collect()
}

/// Formats a value for a line indented by `indent`.
fn rendered(value: &Json, indent: &str) -> String {
    let deeper = format!("{indent}  ");
    let lines = |open: char, parts: Vec<String>, close: char| {
        format!("{open}\n{deeper}{}\n{indent}{close}", parts.join(&format!(",\n{deeper}")))
    };
    match value {
        Json::Array(items) if !items.is_empty() => {
            let parts: Vec<String> = items.iter().map(|item| rendered(item, &deeper)).collect();
            let inline = format!("[{}]", parts.join(", "));
            if inline.len() <= INLINE_MAX && !inline.contains('\n') { inline } else { lines('[', parts, ']') }
        }
        Json::Object(members) if !members.is_empty() => {
            let part = |(key, value): (&String, &Json)| {
                format!("{}: {}", Json::from(key.as_str()), rendered(value, &deeper))
            };
            let parts: Vec<String> = members.iter().map(part).collect();
            let inline = format!("{{ {} }}", parts.join(", "));
            if inline.len() <= INLINE_MAX && !inline.contains('\n') { inline } else { lines('{', parts, '}') }
        }
        plain @ (Json::Null
        | Json::Bool(_)
        | Json::Number(_)
        | Json::String(_)
        | Json::Array(_)
        | Json::Object(_)) => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('.').filter(|key| !key.is_empty()).map(str::to_owned).collect()
    }

    fn check(change: &Change, text: &str, expected: &str) {
        assert_eq!(change.apply(text).as_deref(), Ok(expected), "{change:?}");
    }

    #[test]
    fn items_are_added_where_the_layout_wants_them() {
        let add = |item: Json| Change::Append(path("a"), item);
        check(&add(json!("y")), r#"{"a":["x"]}"#, r#"{"a":["x", "y"]}"#);
        check(&add(json!("y")), r#"{"a":[]}"#, r#"{"a":["y"]}"#);
        check(&add(json!("x")), r#"{"a":["x"]}"#, r#"{"a":["x"]}"#);
        let long = "{\n  \"a\": [\n    \"x\"\n  ]\n}";
        check(&add(json!("y")), long, "{\n  \"a\": [\n    \"x\",\n    \"y\"\n  ]\n}");
        check(&add(json!("y")), "{}", "{\n  \"a\": [\"y\"]\n}");
        check(&add(json!("y")), "{ \"b\": 1 }", "{ \"b\": 1, \"a\": [\"y\"] }");
        check(
            &Change::Append(path("f.a"), json!(1)),
            "{\n \"b\": 1\n}",
            "{\n \"b\": 1,\n \"f\": { \"a\": [1] }\n}",
        );
    }

    #[test]
    fn items_and_members_go_with_their_commas() {
        let text = r#"{"a": ["x", "y", "x"], "b": 1}"#;
        check(&Change::Drop(path("a"), json!("x")), text, r#"{"a": ["y"], "b": 1}"#);
        check(&Change::Drop(path("a"), json!("y")), text, r#"{"a": ["x", "x"], "b": 1}"#);
        check(&Change::Drop(path("c"), json!("y")), text, text);
        check(&Change::Remove(path("a")), text, r#"{"b": 1}"#);
        check(&Change::Remove(path("b")), text, r#"{"a": ["x", "y", "x"]}"#);
        check(&Change::Remove(path("b.c")), text, text);
        check(&Change::Remove(path("a")), r#"{ "a": 1 }"#, "{}");
    }

    #[test]
    fn values_are_replaced_and_copies_keep_their_lines() {
        check(&Change::Set(path("a"), json!(false)), r#"{ "a": true, "b": 1 }"#, r#"{ "a": false, "b": 1 }"#);
        let copy = Change::Copy(vec!["/x/y".into()], "{\n  \"z\": 1\n}\n".into());
        check(&copy, "{\n  \"/a\": {}\n}", "{\n  \"/a\": {},\n  \"/x/y\": {\n    \"z\": 1\n  }\n}");
    }

    #[test]
    fn what_is_in_the_way_is_told() {
        let wrong = Change::Append(path("a"), json!(1)).apply(r#"{"a": true}"#).unwrap_err();
        assert_eq!(wrong.to_string(), "`a` is true or false, and a list is needed there");
        let wrong = Change::Set(path("a.b"), json!(1)).apply(r#"{"a": []}"#).unwrap_err();
        assert_eq!(wrong.to_string(), "`a` is a list, and an object is needed there");
        assert!(matches!(Change::Remove(path("a")).apply("{"), Err(EditError::Text(..))));
    }

    fn document() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![any::<bool>().prop_map(Json::from), "[a-c/~\"é]{0,3}".prop_map(Json::from)];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|members| Json::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_change_changes_just_that(
            document in document(), keys in prop::collection::vec("[a-c]", 1..3), item in "[x-z]", pretty in any::<bool>()
        ) {
            let text = if pretty { format!("{document:#}") } else { document.to_string() };
            let pointer: String = keys.iter().map(|key| format!("/{key}")).collect();
            if let Ok(changed) = Change::Set(keys.clone(), json!(item)).apply(&text) {
                let changed: Json = serde_json::from_str(&changed).unwrap();
                prop_assert_eq!(changed.pointer(&pointer), Some(&json!(item)));
            }
            if let Ok(changed) = Change::Append(keys.clone(), json!(item)).apply(&text) {
                let back = Change::Drop(keys.clone(), json!(item)).apply(&changed).unwrap();
                let (back, before): (Json, Json) = (serde_json::from_str(&back).unwrap(), document.clone());
                if before.pointer(&pointer).is_some() {
                    prop_assert_eq!(back, before);
                }
            }
            if let Ok(changed) = Change::Remove(keys).apply(&text) {
                let changed: Json = serde_json::from_str(&changed).unwrap();
                prop_assert_eq!(changed.pointer(&pointer), None);
            }
        }
    }
}
