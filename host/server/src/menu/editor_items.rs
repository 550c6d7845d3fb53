//! The items of a field in the list editor, each as a line of text.
//!
//! An object with free keys is a list of `KEY = value`, and an object with fields of its own is its JSON.

use portcullis_settings_format::{Change, Shape};
use serde_json::{Value, json};

/// What stands between a key and its value.
const EQUALS: &str = " = ";

/// Returns true if a value of this shape is edited as a list.
pub(super) fn is_list(shape: Shape) -> bool {
    match shape {
        Shape::List(item) => !matches!(item, Shape::List(_)),
        Shape::Map(value) => matches!(value, Shape::Text | Shape::List(Shape::Text)),
        Shape::Objects => true,
        Shape::Bool
        | Shape::Text
        | Shape::AbsolutePath
        | Shape::Integer(..)
        | Shape::OneOf(_)
        | Shape::Path
        | Shape::AllowedDomain
        | Shape::DeniedDomain
        | Shape::Address
        | Shape::VariableName
        | Shape::VariableGlob
        | Shape::Object
        | Shape::AnyObject
        | Shape::PortRange => false,
    }
}

/// Returns the items of a value: those of a list, or a line for each key.
pub(super) fn items(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.clone(),
        Value::Object(members) => members.iter().map(|(key, value)| line(key, value)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn line(key: &str, value: &Value) -> Value {
    let list = |items: &Vec<Value>| items.iter().map(word).collect::<Vec<_>>().join(", ");
    let text = value.as_array().map_or_else(|| word(value), list);
    json!(format!("{key}{EQUALS}{text}"))
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the text of an item in the input line.
pub(super) fn typed(shape: Shape, item: &Value) -> Option<String> {
    (shape == Shape::Objects).then(|| item.to_string())
}

/// Returns the change that removes an item.
pub(super) fn removal(shape: Shape, way: Vec<String>, item: &Value) -> Change {
    let key = item.as_str().and_then(|line| line.split_once(EQUALS)).map(|(key, _)| key.to_owned());
    match key.filter(|_| matches!(shape, Shape::Map(_))) {
        Some(key) => Change::Remove([way, vec![key]].concat()),
        None => Change::Drop(way, item.clone()),
    }
}

/// Returns the change that adds what was typed.
///
/// # Errors
/// When it is not written as such an item is.
pub(super) fn addition(shape: Shape, way: Vec<String>, text: &str) -> Result<Change, String> {
    if let Shape::Map(value) = shape {
        let (key, given) = text.split_once('=').ok_or("write KEY = value")?;
        let (key, given) = (key.trim(), given.trim());
        if key.is_empty() {
            return Err("write KEY = value".to_owned());
        }
        let value = if matches!(value, Shape::List(_)) {
            given.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
        } else {
            json!(given)
        };
        return Ok(Change::Set([way, vec![key.to_owned()]].concat(), value));
    }
    if shape == Shape::Objects {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("write JSON, such as {{ … }}: {error}"))?;
        return Ok(Change::Append(way, value));
    }
    Ok(Change::Append(way, json!(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: Shape = Shape::Map(&Shape::Text);
    const LISTS: Shape = Shape::Map(&Shape::List(&Shape::Text));

    fn way() -> Vec<String> {
        vec!["field".to_owned()]
    }

    #[test]
    fn a_key_and_its_value_are_one_line() {
        let value = json!({ "A": "x = y", "*": ["a.test", "/usr"] });
        let lines = items(&value);
        assert!(
            lines.contains(&json!("A = x = y")) && lines.contains(&json!("* = a.test, /usr")),
            "{lines:?}"
        );
        let inside = |key: &str| vec!["field".to_owned(), key.to_owned()];
        assert_eq!(addition(TEXTS, way(), "A = x = y"), Ok(Change::Set(inside("A"), json!("x = y"))));
        assert_eq!(addition(LISTS, way(), "*=a, b,"), Ok(Change::Set(inside("*"), json!(["a", "b"]))));
        assert_eq!(removal(TEXTS, way(), &json!("A = x = y")), Change::Remove(inside("A")));
        assert!(addition(TEXTS, way(), "A").is_err() && addition(TEXTS, way(), " = b").is_err());
    }

    #[test]
    fn an_object_is_its_json() {
        let policy = json!({ "use": "guard" });
        assert_eq!(typed(Shape::Objects, &policy).as_deref(), Some(r#"{"use":"guard"}"#));
        assert_eq!(
            addition(Shape::Objects, way(), r#"{"use":"guard"}"#),
            Ok(Change::Append(way(), policy.clone()))
        );
        assert_eq!(removal(Shape::Objects, way(), &policy), Change::Drop(way(), policy));
        assert!(addition(Shape::Objects, way(), "{ use").is_err());
    }
}
