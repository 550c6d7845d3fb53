//! Removes secrets and long contents from log records.
//!
//! Masking errs on the side of secrecy: a masked word that was no secret costs a detail, a secret that stays costs
//! more. It cannot be complete, so only the owner can read the log.

mod end;
mod names;
#[cfg(test)]
mod tests;
mod text;
mod words;

use portcullis_text::secrets::is_secret_name;
use serde_json::{Map, Value, json};

use crate::record::sha256;
use text::masked;
pub use text::{LONGEST_TEXT, MASK, mask_text};
use words::{Judged, NAMES, TEXT};

/// Key of a command's text. The beginning of a long one is kept, so that padding cannot hide the command.
const SCRIPT: &str = "script";

/// Key of a tool's input, which is a document of its own.
const INPUT: &str = "input";

/// Length of that beginning.
const BEGINNING: usize = 2048;

/// Masks a value recursively: secrets in texts and in lists of words, values under names of secrets, long texts.
#[must_use]
pub fn mask(mut value: Value) -> Value {
    mask_in_place(&mut value);
    value
}

/// Masks a value in place. Secrets are rare in a log, so other values are not copied.
fn mask_in_place(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > LONGEST_TEXT => *value = digest(text),
        Value::String(text) => mask_text_in_place(text),
        Value::Array(items) => mask_items(items),
        Value::Object(members) => mask_members(members, None),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Masks the items of a list. For words, the neighbours count too.
fn mask_items(items: &mut [Value]) {
    let judged = words::judge(items);
    for (item, judged) in items.iter_mut().zip(judged) {
        let masked = match judged {
            Judged::NoWord => {
                mask_in_place(item);
                continue;
            }
            Judged::Kept => None,
            Judged::Masked(text) => Some(text),
        };
        let place = if let Value::Object(members) = item {
            mask_members(members, Some(TEXT));
            members.get_mut(TEXT)
        } else {
            Some(item)
        };
        if let (Some(place), Some(masked)) = (place, masked) {
            *place = Value::String(masked);
        }
    }
}

/// Masks secrets in one text.
pub(crate) fn mask_text_in_place(text: &mut String) {
    if let Some(masked) = masked(text) {
        *text = masked;
    }
}

/// Masks all members except that of the key `judged`, which was masked before.
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

/// Parses a text as a JSON object or list, unless it is too long.
fn document(text: &str) -> Option<Value> {
    let known: Option<Value> = serde_json::from_str(text).ok().filter(|_| text.len() <= LONGEST_TEXT);
    known.filter(|value| value.is_object() || value.is_array())
}

/// Masks all values under a secret's name. Numbers in lists are kept, since they count things of that name.
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
    // A secret that is cut in two might not be recognized.
    let whole = head.rsplit_once(char::is_whitespace).map_or("", |(whole, _)| whole);
    let mut value = digest(text);
    if let Value::Object(members) = &mut value {
        members.insert("beginning".to_owned(), mask_text(whole).into());
    }
    value
}
