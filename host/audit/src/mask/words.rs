//! Finds secrets in lists of words, identified by the words before them: `["--token", "x"]`.

use portcullis_text::secrets::is_secret_name;
use serde_json::Value;

use super::names::{
    has_joined_secret, is_before_secret, is_header, is_leading, is_login_option, is_scheme, is_secret_option,
};
use super::text::{LONGEST_TEXT, MASK, masked};

/// Keys for a name whose value is under the key `value`.
pub(super) const NAMES: [&str; 2] = ["name", "key"];

/// Key of the text of a word in a parsed command.
pub(super) const TEXT: &str = "value";

/// The result for an item.
pub(super) enum Judged {
    /// It is not a word.
    NoWord,
    /// It is kept.
    Kept,
    /// It is replaced by this text.
    Masked(String),
}

/// Judges all items before masking any, since masking would hide leading words.
pub(super) fn judge(items: &[Value]) -> Vec<Judged> {
    let word = |index: Option<usize>| index.and_then(|index| text_of(items.get(index)?)).unwrap_or_default();
    let mut leading = "";
    let is_pair = items.len() == 2 && items.get(1).is_some_and(Value::is_object);
    let judge = |(index, item): (usize, &Value)| {
        let before = word(index.checked_sub(1));
        if is_leading(before) {
            leading = before;
        }
        let Some(text) = text_of(item).filter(|text| text.len() <= LONGEST_TEXT) else {
            return Judged::NoWord;
        };
        let is_assigned = is_pair && index == 1 && is_secret_name(before);
        let masked = if is_assigned { Some(MASK.to_owned()) } else { mask_word(text, before, leading) };
        masked.map_or(Judged::Kept, Judged::Masked)
    };
    items.iter().enumerate().map(judge).collect()
}

/// Returns the masked form of a word, or `None` if it is kept.
///
/// Shell quotes are already removed, so blanks are part of the value.
fn mask_word(word: &str, before: &str, leading: &str) -> Option<String> {
    let option = before.strip_suffix('=').unwrap_or(before);
    let is_argument = is_secret_option(option) && !option.contains('=') && !word.starts_with('-');
    let is_login = is_login_option(before) && word.contains(':');
    if is_argument || is_login || is_before_secret(leading, before) {
        return Some(MASK.to_owned());
    }
    if has_joined_secret(leading, word) {
        return Some(format!("-p{MASK}"));
    }
    if let Some((name, value)) = word.split_once('=')
        && is_name(name)
        && (is_secret_name(name) || (is_login_option(name) && value.contains(':')))
        && !value.is_empty()
    {
        return Some(format!("{name}={MASK}"));
    }
    match word.split_once(": ") {
        Some((name, value)) if is_name(name) && is_secret_name(name) => Some(masked_header(name, value)),
        _ => masked(word),
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
