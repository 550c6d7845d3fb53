//! Taking secrets and long contents out of what is logged.
//!
//! This errs on the side of masking: a masked word that was no secret costs a line of the log its detail, a
//! secret that stays costs more. It is no promise either; the log is readable by its owner alone for that reason.

mod end;
mod names;
#[cfg(test)]
mod tests;
mod text;
mod words;

use serde_json::{Map, Value, json};

use crate::record::sha256;
use names::is_secret_name;
pub use text::mask_text;

/// Longer text is a file's content rather than a command, and is replaced by its length and hash.
pub const LONGEST_TEXT: usize = 4096;

/// What stands in a secret's place.
pub const MASK: &str = "[masked]";

/// The key of a command's text. What a long one begins with is kept: padding must not hide what was run.
const SCRIPT: &str = "script";

/// The key of what a tool is called with, which is a document of its own.
const INPUT: &str = "input";

/// So much of it.
const BEGINNING: usize = 2048;

/// The keys under which a thing has its name, where its value stands under `value`.
const NAMES: [&str; 2] = ["name", "key"];

/// Masks a value throughout: secrets in texts and lists of words, values under names of secrets, long texts.
#[must_use]
pub fn mask(value: Value) -> Value {
    match value {
        Value::String(text) if text.len() > LONGEST_TEXT => digest(&text),
        Value::String(text) => Value::String(mask_text(&text)),
        Value::Array(items) => Value::Array(words::mask_items(items)),
        Value::Object(members) => Value::Object(mask_members(members)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

fn mask_members(mut members: Map<String, Value>) -> Map<String, Value> {
    let is_named = NAMES.iter().filter_map(|name| members.get(*name)?.as_str()).any(is_secret_name);
    for (key, place) in &mut members {
        let value = place.take();
        let is_long_script = key == SCRIPT && value.as_str().is_some_and(|text| text.len() > LONGEST_TEXT);
        *place = if is_secret_name(key) || (is_named && key == "value") {
            conceal(value)
        } else if is_long_script {
            beginning(value.as_str().unwrap_or_default())
        } else if let Some(document) = value.as_str().filter(|_| key == INPUT).and_then(document) {
            Value::String(mask(document).to_string())
        } else {
            mask(value)
        };
    }
    members
}

/// What a text says that is not too long, where it is a document of several things.
fn document(text: &str) -> Option<Value> {
    let known: Option<Value> = serde_json::from_str(text).ok().filter(|_| text.len() <= LONGEST_TEXT);
    known.filter(|value| value.is_object() || value.is_array())
}

/// Masks all that stands under a secret's name. Numbers in lists are kept: they count what is so named.
fn conceal(value: Value) -> Value {
    match value {
        Value::String(_) | Value::Number(_) => Value::String(MASK.to_owned()),
        Value::Array(items) => Value::Array(
            items.into_iter().map(|item| if item.is_number() { item } else { conceal(item) }).collect(),
        ),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(key, value)| (key, conceal(value))).collect())
        }
        Value::Null | Value::Bool(_) => value,
    }
}

pub(crate) fn digest(text: &str) -> Value {
    json!({ "length": text.len(), "sha256": sha256(text.as_bytes()) })
}

fn beginning(text: &str) -> Value {
    let end = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= BEGINNING).last().unwrap_or(0);
    let head = text.get(..end).unwrap_or_default();
    // A secret that is cut in two may not be recognised.
    let whole = head.rsplit_once(char::is_whitespace).map_or("", |(whole, _)| whole);
    let mut value = digest(text);
    if let Value::Object(members) = &mut value {
        members.insert("beginning".to_owned(), mask_text(whole).into());
    }
    value
}
