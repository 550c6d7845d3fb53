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

use portcullis_text::secrets::is_secret_name;
use serde_json::{Map, Value, json};

use crate::record::sha256;
pub use text::mask_text;
use text::masked;

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
pub fn mask(mut value: Value) -> Value {
    mask_in_place(&mut value);
    value
}

/// The same. Next to nothing in a log is a secret, so what is none is left where it is.
fn mask_in_place(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > LONGEST_TEXT => *value = digest(text),
        Value::String(text) => mask_text_in_place(text),
        Value::Array(items) => words::mask_items(items),
        Value::Object(members) => mask_members(members, None),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Masks secrets in one text.
pub(crate) fn mask_text_in_place(text: &mut String) {
    if let Some(masked) = masked(text) {
        *text = masked;
    }
}

/// Masks all members but that of the key `judged`, which was looked at before.
fn mask_members(members: &mut Map<String, Value>, judged: Option<&str>) {
    let is_named = NAMES.iter().filter_map(|name| members.get(*name)?.as_str()).any(is_secret_name);
    for (key, value) in members {
        if value.is_null() || value.is_boolean() || judged == Some(key) {
            continue;
        }
        let long_script = value.as_str().filter(|text| key == SCRIPT && text.len() > LONGEST_TEXT);
        if is_secret_name(key) || (is_named && key == "value") {
            conceal(value);
        } else if let Some(script) = long_script {
            *value = beginning(script);
        } else if let Some(document) = value.as_str().filter(|_| key == INPUT).and_then(document) {
            *value = Value::String(mask(document).to_string());
        } else {
            mask_in_place(value);
        }
    }
}

/// What a text says that is not too long, where it is a document of several things.
fn document(text: &str) -> Option<Value> {
    let known: Option<Value> = serde_json::from_str(text).ok().filter(|_| text.len() <= LONGEST_TEXT);
    known.filter(|value| value.is_object() || value.is_array())
}

/// Masks all that stands under a secret's name. Numbers in lists are kept: they count what is so named.
fn conceal(value: &mut Value) {
    match value {
        Value::String(_) | Value::Number(_) => *value = Value::String(MASK.to_owned()),
        Value::Array(items) => items.iter_mut().filter(|item| !item.is_number()).for_each(conceal),
        Value::Object(members) => members.values_mut().for_each(conceal),
        Value::Null | Value::Bool(_) => {}
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
