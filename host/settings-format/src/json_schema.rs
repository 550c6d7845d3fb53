//! JSON Schemas of settings files for editors, generated from the table of fields.

use serde_json::{Map, Value, json};

use crate::extends::EXTENDS;
use crate::field_lookup::children;
use crate::file_kind::FileKind;
use crate::layer::Layer;
use crate::schema::{Field, Presence, Shape, Status};
use crate::tighten::{TIGHTENING_FIELDS, is_harmless};

/// Returns the JSON Schema (draft 2020-12) of a kind of settings file.
///
/// It covers the checks that an editor can make. Reading the file is stricter, since it also checks conditions on more
/// than one field.
///
/// ```
/// use portcullis_settings_format::{FileKind, json_schema};
/// let schema = json_schema(FileKind::Settings);
/// assert_eq!(schema["properties"]["enabled"]["type"], "boolean");
/// ```
#[must_use]
pub fn json_schema(kind: FileKind) -> Value {
    let (title, mut schema) = match kind {
        FileKind::Settings => ("Settings of Portcullis", object("", Wanted::Whole)),
        FileKind::Projects => {
            let entry = json!({ "anyOf": [object("", Wanted::Whole), differences()] });
            ("Settings of Portcullis by project", projects(&entry))
        }
        FileKind::Part => ("Settings of Portcullis over the built-in ones", object("", Wanted::Part)),
        FileKind::Parts => {
            let entry = object("", Wanted::Part);
            ("Settings of Portcullis by project, added to the others", projects(&entry))
        }
        FileKind::Tightening(Layer::Sandbox) => {
            ("Settings of Portcullis that narrow the user's", object("", Wanted::Narrowing))
        }
        FileKind::Tightening(_) => {
            ("Settings of Portcullis that can only tighten", object("", Wanted::Tightening))
        }
    };
    if let Value::Object(schema) = &mut schema {
        schema.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
        schema.insert("title".to_owned(), title.into());
    }
    schema
}

/// The fields that a file may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// All fields; required ones must be present.
    Whole,
    /// All fields; none is required.
    Part,
    /// As `Part`, plus `extends`.
    Differences,
    /// The fields that can only tighten; none is required.
    Tightening,
    /// As `Tightening`, plus the fields of a project's own file in the layered layout.
    Narrowing,
}

impl Wanted {
    fn has(self, field: &Field) -> bool {
        match self {
            Self::Whole | Self::Part => field.name != EXTENDS,
            Self::Differences => true,
            Self::Tightening => TIGHTENING_FIELDS.contains(&field.name),
            Self::Narrowing => TIGHTENING_FIELDS.contains(&field.name) || is_harmless(field.name),
        }
    }
}

/// Returns the schema of an entry of differences.
fn differences() -> Value {
    let mut schema = object("", Wanted::Differences);
    if let Value::Object(members) = &mut schema {
        members.insert("required".to_owned(), json!([EXTENDS]));
    }
    schema
}

fn projects(entry: &Value) -> Value {
    json!({
        "type": "object",
        "description": "Settings for each project, by the absolute path of its directory.",
        "propertyNames": { "pattern": "^/" },
        "additionalProperties": entry,
    })
}

fn object(parent: &str, wanted: Wanted) -> Value {
    let fields = children(parent).filter(|field| wanted.has(field));
    let properties: Map<String, Value> =
        fields.clone().map(|field| (field.key().to_owned(), one_field(field, wanted))).collect();
    let required: Vec<&str> = fields
        .filter(|field| wanted == Wanted::Whole && field.presence == Presence::Required)
        .map(Field::key)
        .collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if let (Value::Object(schema), false) = (&mut schema, required.is_empty()) {
        schema.insert("required".to_owned(), required.into());
    }
    schema
}

fn one_field(field: &Field, wanted: Wanted) -> Value {
    let (note, value) = match field.status {
        Status::Honoured => (String::new(), shape(field.shape, field.name, wanted)),
        Status::NoEffect(reason) => {
            (format!(" No effect: {reason}."), shape(field.shape, field.name, wanted))
        }
        Status::Refused(reason) => (format!(" Refused: {reason}."), asks_for_nothing(field.shape)),
    };
    let mut schema = json!({ "description": format!("{}{note}", field.meaning) });
    if let (Value::Object(schema), Value::Object(value)) = (&mut schema, value) {
        schema.extend(value);
        if field.status != Status::Honoured && field.name != "$schema" {
            schema.insert("deprecated".to_owned(), true.into());
        }
    }
    schema
}

/// Returns the schema of a refused field: the values that request nothing.
fn asks_for_nothing(shape: Shape) -> Value {
    match shape {
        Shape::Bool => json!({ "const": false }),
        Shape::List(_) | Shape::Objects => json!({ "type": "array", "maxItems": 0 }),
        Shape::Text
        | Shape::AbsolutePath
        | Shape::Integer(..)
        | Shape::OneOf(_)
        | Shape::Path
        | Shape::AllowedDomain
        | Shape::DeniedDomain
        | Shape::Address
        | Shape::VariableName
        | Shape::VariableGlob
        | Shape::Map(_)
        | Shape::Object
        | Shape::AnyObject
        | Shape::PortRange => json!({ "not": {} }),
    }
}

fn shape(wanted: Shape, name: &str, fields: Wanted) -> Value {
    match wanted {
        Shape::Bool => json!({ "type": "boolean" }),
        Shape::Text => json!({ "type": "string" }),
        Shape::AbsolutePath => json!({ "type": "string", "pattern": "^/" }),
        Shape::Integer(low, high) => json!({ "type": "integer", "minimum": low, "maximum": high }),
        Shape::OneOf(words) => json!({ "enum": words }),
        Shape::Path => path(),
        Shape::AllowedDomain => {
            json!({ "type": "string", "minLength": 1, "not": { "pattern": "^\\*(:|$)" } })
        }
        Shape::DeniedDomain | Shape::Address => json!({ "type": "string", "minLength": 1 }),
        Shape::VariableName => json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }),
        Shape::VariableGlob => json!({ "type": "string", "pattern": "^[A-Za-z_*?][A-Za-z0-9_*?]*$" }),
        Shape::List(item) => json!({ "type": "array", "items": shape(*item, name, fields) }),
        Shape::Map(value) => {
            json!({ "type": "object", "additionalProperties": shape(*value, name, fields) })
        }
        Shape::Object => object(name, fields),
        Shape::Objects => json!({ "type": "array", "items": object(&format!("{name}[]"), fields) }),
        Shape::AnyObject => json!({ "type": "object" }),
        Shape::PortRange => json!({
            "type": "array", "minItems": 2, "maxItems": 2,
            "items": { "type": "integer", "minimum": 1, "maximum": 65535 },
        }),
    }
}

fn path() -> Value {
    json!({ "anyOf": [
        { "type": "string", "pattern": "\\S" },
        {
            "type": "object",
            "properties": { "path": { "type": "string", "pattern": "\\S" }, "literal": { "const": true } },
            "required": ["path", "literal"],
            "additionalProperties": false,
        },
    ] })
}
