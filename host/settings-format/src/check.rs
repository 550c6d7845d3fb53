//! Checks a document against the table of fields: unknown keys, wrong types, refused fields.

use portcullis_decision::pattern::{HostPattern, NetworkPattern};

use crate::error::{Problem, shown};
use crate::fault::Fault;
use crate::field_lookup::{children, nearest, nearest_key};
use crate::json::{Member, Node, Value};
use crate::kept_field::KeptField;
use crate::pointer::step;
use crate::schema::{Field, Presence, Shape, Status};

/// Whether all required fields must be present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    /// They must.
    Whole,
    /// They need not: the document is a part of the settings.
    Part,
}

/// Checks a settings object. Returns its fields that have no effect, or the first mistake.
pub fn check(document: &Node, pointer: &str, completeness: Completeness) -> Result<Vec<KeptField>, Fault> {
    let (kept, mistakes) = check_all(document, pointer, completeness);
    mistakes.into_iter().next().map_or(Ok(kept), Err)
}

/// Checks a settings object. Returns its fields that have no effect, and all mistakes.
pub fn check_all(document: &Node, pointer: &str, completeness: Completeness) -> (Vec<KeptField>, Vec<Fault>) {
    let mut walk = Walk { kept: Vec::new(), mistakes: Vec::new(), refused: Vec::new(), completeness };
    walk.members(document, "", pointer);
    walk.mistakes.extend(walk.refused);
    (walk.kept, walk.mistakes)
}

/// Returns the fault of a value with the wrong type.
pub fn wrong_type(node: &Node, pointer: &str, wanted: String) -> Fault {
    let problem = Problem::WrongType { field: pointer.to_owned(), wanted, found: node.kind() };
    Fault { at: node.at, pointer: pointer.to_owned(), problem }
}

/// Returns the fault of a value that cannot be used.
pub(crate) fn bad_value(node: &Node, pointer: &str, reason: impl Into<String>) -> Fault {
    let problem = Problem::BadValue { field: pointer.to_owned(), reason: reason.into() };
    Fault { at: node.at, pointer: pointer.to_owned(), problem }
}

struct Walk {
    kept: Vec<KeptField>,
    mistakes: Vec<Fault>,
    /// Faults of refused fields.
    ///
    /// They are reported after wrong types, so that a typing error does not read as a request for the refused feature.
    refused: Vec<Fault>,
    completeness: Completeness,
}

impl Walk {
    fn members(&mut self, node: &Node, parent: &str, pointer: &str) {
        let Value::Object(found) = &node.value else {
            let pointer = if pointer.is_empty() { "the whole file" } else { pointer };
            self.mistakes.push(wrong_type(node, pointer, Shape::Object.describe()));
            return;
        };
        for member in found {
            let pointer = step(pointer, &member.key);
            match children(parent).find(|field| field.key() == member.key) {
                Some(field) => self.one_field(&member.node, field, &pointer),
                None => self.mistakes.push(unknown_key(member, parent, &pointer)),
            }
        }
        for field in children(parent).filter(|field| field.presence == Presence::Required) {
            if self.completeness == Completeness::Whole && node.member(field.key()).is_none() {
                self.mistakes.push(Fault {
                    at: node.at,
                    pointer: pointer.to_owned(),
                    problem: Problem::MissingKey { key: field.name.to_owned(), hint: missing_hint(field) },
                });
            }
        }
    }

    fn one_field(&mut self, node: &Node, field: &'static Field, pointer: &str) {
        // A refused field may have the value that upstream uses for "no".
        let asks_for_nothing = node.value == Value::Bool(false) || node.value == Value::List(Vec::new());
        let refused_before = self.refused.len();
        self.shape(node, field.shape, field.name, pointer);
        match field.status {
            Status::Honoured => {}
            Status::NoEffect(reason) => self.kept.push(KeptField {
                name: field.name,
                pointer: pointer.to_owned(),
                value: node.to_json(),
                reason,
            }),
            Status::Refused(_) if asks_for_nothing => {}
            Status::Refused(reason) => {
                // Report the refused object once, not once for each of its fields.
                self.refused.truncate(refused_before);
                self.refused.push(Fault {
                    at: node.at,
                    pointer: pointer.to_owned(),
                    problem: Problem::Refused { field: pointer.to_owned(), reason: reason.to_owned() },
                });
            }
        }
    }

    /// Checks a value against a shape. `name` is the prefix of the fields inside objects.
    fn shape(&mut self, node: &Node, wanted: Shape, name: &str, pointer: &str) {
        match (wanted, &node.value) {
            (Shape::Object, Value::Object(_)) => self.members(node, name, pointer),
            (Shape::Objects, Value::List(items)) => {
                let inside = format!("{name}[]");
                for (index, item) in items.iter().enumerate() {
                    self.members(item, &inside, &step(pointer, &index.to_string()));
                }
            }
            (Shape::List(item_shape), Value::List(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.shape(item, *item_shape, name, &step(pointer, &index.to_string()));
                }
            }
            (Shape::Map(value_shape), Value::Object(found)) => {
                for member in found {
                    self.shape(&member.node, *value_shape, name, &step(pointer, &member.key));
                }
            }
            _ => self.mistakes.extend(plain(node, wanted, pointer).err()),
        }
    }
}

/// Checks a value that contains no fields.
fn plain(node: &Node, wanted: Shape, pointer: &str) -> Result<(), Fault> {
    match (wanted, &node.value) {
        (Shape::Bool, Value::Bool(_)) | (Shape::AnyObject, Value::Object(_)) => Ok(()),
        (Shape::Integer(low, high), Value::Number(number)) => match number.as_u64() {
            Some(number) if (u64::from(low)..=u64::from(high)).contains(&number) => Ok(()),
            _ => Err(wrong_type(node, pointer, wanted.describe())),
        },
        (Shape::PortRange, Value::List(items)) => port_range(node, items, pointer),
        (Shape::Path, Value::Object(_)) => path_object(node, pointer),
        (_, Value::Text(text)) => text_fits(text, wanted).map_err(|fault| match fault {
            TextFault::Type => wrong_type(node, pointer, wanted.describe()),
            TextFault::Value(reason) => bad_value(node, pointer, reason),
        }),
        _ => Err(wrong_type(node, pointer, wanted.describe())),
    }
}

fn unknown_key(member: &Member, parent: &str, pointer: &str) -> Fault {
    let problem = Problem::UnknownKey { key: member.key.clone(), nearest: nearest_key(&member.key, parent) };
    Fault { at: member.key_at, pointer: pointer.to_owned(), problem }
}

fn missing_hint(field: &Field) -> &'static str {
    if matches!(field.shape, Shape::List(_)) { "write `[]` for an empty list" } else { "" }
}

enum TextFault {
    Type,
    Value(String),
}

fn text_fits(text: &str, wanted: Shape) -> Result<(), TextFault> {
    let outcome = match wanted {
        Shape::Text => no_nul(text),
        Shape::Path => usable_path(text),
        Shape::AbsolutePath => no_nul(text).and_then(|()| absolute(text)),
        Shape::OneOf(words) => one_of(text, words),
        Shape::AllowedDomain => domain(text).and_then(|pattern| narrow_enough(&pattern.host)),
        Shape::DeniedDomain => domain(text).map(|_| ()),
        Shape::Address => address(text),
        Shape::VariableName => variable(text, ""),
        Shape::VariableGlob => variable(text, "*?"),
        Shape::Bool
        | Shape::Integer(..)
        | Shape::List(_)
        | Shape::Map(_)
        | Shape::Object
        | Shape::Objects
        | Shape::AnyObject
        | Shape::PortRange => return Err(TextFault::Type),
    };
    outcome.map_err(TextFault::Value)
}

fn no_nul(text: &str) -> Result<(), String> {
    if text.contains('\0') { Err("a zero byte cannot be part of it".to_owned()) } else { Ok(()) }
}

/// Returns an error if the path cannot be used in settings.
pub(crate) fn usable_path(text: &str) -> Result<(), String> {
    no_nul(text)?;
    if text.trim().is_empty() {
        return Err("an empty path, write `.` for the working directory".to_owned());
    }
    match text.strip_prefix('~') {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') => {
            Err(format!("`{}` is not understood, write the home directory in full", shown(text)))
        }
        _ => Ok(()),
    }
}

fn absolute(text: &str) -> Result<(), String> {
    if text.starts_with('/') { Ok(()) } else { Err(format!("`{}` is not absolute", shown(text))) }
}

fn one_of(text: &str, words: &'static [&'static str]) -> Result<(), String> {
    if words.contains(&text) {
        return Ok(());
    }
    if words.len() <= MOST_SPELT_OUT {
        return Err(format!("`{}` is not {}", shown(text), Shape::OneOf(words).describe()));
    }
    let hint = match nearest(text, words.iter().copied()) {
        Some(nearest) => format!(", did you mean `{nearest}`?"),
        None => "; `portcullis config schema` lists what is".to_owned(),
    };
    Err(format!("`{}` is not known here{hint}", shown(text)))
}

/// Limit for the number of choices listed in a message.
const MOST_SPELT_OUT: usize = 8;

fn domain(text: &str) -> Result<NetworkPattern, String> {
    NetworkPattern::parse(text)
        .map_err(|error| format!("{error}, write `host`, `*.host` or `host:port` without scheme or path"))
}

fn narrow_enough(host: &HostPattern) -> Result<(), String> {
    match host {
        HostPattern::Any => Err("`*` would allow every host, name the hosts one by one".to_owned()),
        HostPattern::Below(top) if !top.contains('.') => {
            Err(format!("`*.{top}` would allow a whole top-level domain, name more of it"))
        }
        HostPattern::Name(_) | HostPattern::Below(_) | HostPattern::Block(_) => Ok(()),
    }
}

fn address(text: &str) -> Result<(), String> {
    match HostPattern::parse(text) {
        Ok(HostPattern::Block(_)) => Ok(()),
        _ => Err(format!("`{}` is neither an address nor a block like `10.0.0.0/8`", shown(text))),
    }
}

/// Returns an error if `text` is not a variable name. `also` holds the extra characters that a glob may use.
pub(crate) fn variable(text: &str, also: &str) -> Result<(), String> {
    let fits =
        |character: char| character.is_ascii_alphanumeric() || character == '_' || also.contains(character);
    let first = text.chars().next().is_some_and(|first| !first.is_ascii_digit());
    if first && text.chars().all(fits) {
        return Ok(());
    }
    Err(format!("`{}` is no name of an environment variable", shown(text)))
}

fn path_object(node: &Node, pointer: &str) -> Result<(), Fault> {
    let Value::Object(found) = &node.value else {
        return Err(wrong_type(node, pointer, Shape::Path.describe()));
    };
    for member in found {
        let inside = step(pointer, &member.key);
        match (member.key.as_str(), &member.node.value) {
            ("path", Value::Text(path)) => {
                usable_path(path).map_err(|reason| bad_value(&member.node, &inside, reason))?;
            }
            ("literal", Value::Bool(true)) => {}
            ("path", _) => return Err(wrong_type(&member.node, &inside, Shape::Text.describe())),
            ("literal", _) => {
                return Err(bad_value(&member.node, &inside, "it has to be true, or left out"));
            }
            _ => {
                let problem = Problem::UnknownKey { key: member.key.clone(), nearest: None };
                return Err(Fault { at: member.key_at, pointer: inside, problem });
            }
        }
    }
    if node.member("path").is_some() && node.member("literal").is_some() {
        return Ok(());
    }
    Err(bad_value(node, pointer, "write `{ \"path\": …, \"literal\": true }`, or the path as plain text"))
}

fn port_range(node: &Node, items: &[Node], pointer: &str) -> Result<(), Fault> {
    let ports: Vec<Option<u16>> =
        items.iter().map(|item| item.number().and_then(|number| u16::try_from(number).ok())).collect();
    match ports.as_slice() {
        [Some(low), Some(high)] if *low >= 1 && low <= high && high - low < 64 => Ok(()),
        _ => Err(wrong_type(node, pointer, Shape::PortRange.describe())),
    }
}
