//! Merges settings documents, with the origin of each value.

use std::path::Path;
use std::sync::Arc;

use portcullis_settings_format::check::{Completeness, check};
use portcullis_settings_format::fault::invalid;
use portcullis_settings_format::json::{Home, Member, Node, Value};
use portcullis_settings_format::pointer::step;
use portcullis_settings_format::{ConfigError, Settings, Shape, field};

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
