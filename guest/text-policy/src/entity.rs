//! Principals and resources.

use serde_json::{Map, Value};

/// A principal or a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// The type.
    pub kind: &'static str,
    /// The id, unique within the type.
    pub id: String,
    /// Strings, whole numbers, booleans and lists of strings.
    pub attributes: Map<String, Value>,
    /// The arguments of a tool; empty for other types.
    pub arguments: Map<String, Value>,
    /// The groups that contain it, with the type of each.
    pub parents: Vec<(&'static str, String)>,
}

impl Entity {
    pub(crate) fn new(kind: &'static str, id: impl Into<String>, attributes: Value) -> Self {
        let attributes = if let Value::Object(attributes) = attributes { attributes } else { Map::new() };
        Self { kind, id: id.into(), attributes, arguments: Map::new(), parents: Vec::new() }
    }
}
