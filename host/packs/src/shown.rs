//! Foreign text in messages.

/// Largest length of foreign text in an error, in characters.
const SHOWN_MAX: usize = 120;

/// Prepares foreign text for an error message: short, and on one line.
pub(crate) fn shown(text: &str) -> String {
    let one = |character: char| match portcullis_text::is_unsafe(character) {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    };
    let cut = if text.chars().nth(SHOWN_MAX).is_some() { "…" } else { "" };
    text.chars().take(SHOWN_MAX).map(one).chain([cut.to_owned()]).collect()
}
