//! Secrets in lists of words, which are known by the words before them: `["--token", "x"]`.

use serde_json::Value;

use super::names::{
    has_joined_secret, is_before_secret, is_header, is_leading, is_login_option, is_scheme, is_secret_name,
    is_secret_option,
};
use super::text::mask_text;
use super::{LONGEST_TEXT, MASK, NAMES, mask};

/// The key under which a word of a parsed command has its text.
const TEXT: &str = "value";

/// Masks the items of a list; items that are words are judged by their neighbours too.
pub(super) fn mask_items(items: Vec<Value>) -> Vec<Value> {
    let word = |index: Option<usize>| index.and_then(|index| text_of(items.get(index)?)).unwrap_or_default();
    let mut leading = "";
    let is_pair = items.len() == 2 && items.get(1).is_some_and(Value::is_object);
    let masked: Vec<Option<String>> = items
        .iter()
        .enumerate()
        .map(|(index, item)| {
            let before = word(index.checked_sub(1));
            if is_leading(before) {
                leading = before;
            }
            let text = text_of(item).filter(|text| text.len() <= LONGEST_TEXT)?;
            let is_assigned = is_pair && index == 1 && is_secret_name(before);
            Some(if is_assigned { MASK.to_owned() } else { mask_word(text, before, leading) })
        })
        .collect();
    items.into_iter().zip(masked).map(|(item, masked)| with_text(item, masked)).collect()
}

/// Masks one word whole. It has no quotes of a shell any more, so that blanks are parts of values.
fn mask_word(word: &str, before: &str, leading: &str) -> String {
    let option = before.strip_suffix('=').unwrap_or(before);
    let is_argument = is_secret_option(option) && !option.contains('=') && !word.starts_with('-');
    let is_login = is_login_option(before) && word.contains(':');
    if is_argument || is_login || is_before_secret(leading, before) {
        return MASK.to_owned();
    }
    if has_joined_secret(leading, word) {
        return format!("-p{MASK}");
    }
    if let Some((name, value)) = word.split_once('=')
        && is_name(name)
        && (is_secret_name(name) || (is_login_option(name) && value.contains(':')))
        && !value.is_empty()
    {
        return format!("{name}={MASK}");
    }
    match word.split_once(": ") {
        Some((name, value)) if is_name(name) && is_secret_name(name) => masked_header(name, value),
        _ => mask_text(word),
    }
}

fn masked_header(name: &str, value: &str) -> String {
    match value.split_once(' ') {
        Some((scheme, _)) if is_header(name) && is_scheme(scheme) => format!("{name}: {scheme} {MASK}"),
        _ => format!("{name}: {MASK}"),
    }
}

fn is_name(text: &str) -> bool {
    text.chars().all(|character| character.is_ascii_alphanumeric() || "_-.".contains(character))
}

fn text_of(item: &Value) -> Option<&str> {
    let has_name = || NAMES.iter().any(|name| item.get(*name).is_some());
    item.as_str().or_else(|| item.get(TEXT)?.as_str().filter(|_| !has_name()))
}

fn with_text(item: Value, masked: Option<String>) -> Value {
    match (item, masked) {
        (Value::String(_), Some(text)) => Value::String(text),
        (Value::Object(mut members), Some(text)) => {
            members.remove(TEXT);
            let mut masked = mask(Value::Object(members));
            if let Value::Object(members) = &mut masked {
                members.insert(TEXT.to_owned(), Value::String(text));
            }
            masked
        }
        (item, _) => mask(item),
    }
}
