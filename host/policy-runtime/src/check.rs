//! Checks on the values that a guest returns, before the host uses them.

use portcullis_decision::PolicyError;
use portcullis_decision::pattern::PatternError;
use portcullis_text::{escape_confusables, is_unsafe};

use crate::limits;

/// Bytes of a rule id or title.
pub(crate) const NAME: usize = 128;
/// Bytes of a reason, hint or other single line.
pub(crate) const LINE: usize = 1 << 10;
/// Bytes of details, help and `brief`.
pub(crate) const LONG: usize = 8 << 10;
/// Entries in one list of a profile.
pub(crate) const PROFILE_ENTRIES: usize = 10_000;
/// Bytes of all globs of a profile together.
///
/// This is slightly more than the settings allow, because each glob is prefixed with the path of its
/// directory.
pub(crate) const GLOBS: usize = 256 << 10;
/// Entries in any other list.
pub(crate) const ENTRIES: usize = 1_000;
/// Options of one question.
pub(crate) const OPTIONS: usize = 8;
/// Bytes of the schema of a configuration.
pub(crate) const SCHEMA: usize = 64 << 10;

/// Returns the error for an answer that breaks the contract.
pub(crate) fn bad(detail: impl Into<String>) -> PolicyError {
    PolicyError::BadAnswer { detail: detail.into() }
}

/// Returns the error for an invalid pattern.
pub(crate) fn bad_pattern(error: &PatternError) -> PolicyError {
    bad(error.to_string())
}

pub(crate) fn too_large(what: &str, limit: usize) -> PolicyError {
    PolicyError::AnswerSize { detail: format!("{what} of more than {limit}") }
}

/// Converts each entry of a list after checking its length.
pub(crate) fn list<G, T>(
    entries: Vec<G>,
    what: &str,
    limit: usize,
    convert: impl FnMut(G) -> Result<T, PolicyError>,
) -> Result<Vec<T>, PolicyError> {
    if entries.len() > limit {
        return Err(too_large(&format!("`{what}`, a list"), limit));
    }
    entries.into_iter().map(convert).collect()
}

/// Checks a name that is used as a key: not empty, visible characters only, no confusable characters.
pub(crate) fn name(text: String, what: &str) -> Result<String, PolicyError> {
    if text.is_empty() {
        return Err(bad(format!("`{what}` is empty")));
    }
    optional_name(text, what)
}

/// Like [`name`], but an empty text is allowed.
pub(crate) fn optional_name(text: String, what: &str) -> Result<String, PolicyError> {
    if text.len() > NAME {
        return Err(too_large(&format!("`{what}`, a name"), NAME));
    }
    if text.contains(char::is_whitespace) || escape_confusables(&text) != text {
        return Err(bad(format!(
            "`{what}` holds a space, or a character that is invisible or passes for another: `{}`",
            escape_confusables(&text)
        )));
    }
    Ok(text)
}

/// Checks the name of a tool. It comes from pi and policies repeat it, so it may contain any character.
pub(crate) fn tool_name(text: String, what: &str) -> Result<String, PolicyError> {
    if text.is_empty() {
        return Err(bad(format!("`{what}` is empty")));
    }
    if text.len() > LINE { Err(too_large(&format!("`{what}`, a name"), LINE)) } else { Ok(text) }
}

/// Checks a JSON pointer into the configuration. It may be empty.
pub(crate) fn pointer(text: String, what: &str) -> Result<String, PolicyError> {
    let is_pointer = text.is_empty() || text.starts_with('/');
    if text.len() > LINE {
        return Err(too_large(&format!("`{what}`, a JSON pointer"), LINE));
    }
    if is_pointer { Ok(text) } else { Err(bad(format!("`{what}` is no JSON pointer"))) }
}

/// Checks data that must not be cut.
pub(crate) fn data(text: String, what: &str) -> Result<String, PolicyError> {
    if text.len() > limits::ANSWER_TEXT {
        return Err(too_large(&format!("`{what}`, a text"), limits::ANSWER_TEXT));
    }
    Ok(text)
}

/// Returns one line for people: cut, with unsafe characters replaced.
pub(crate) fn line(text: String) -> String {
    people(&text, LINE, is_unsafe)
}

/// Returns a short title for people.
pub(crate) fn title(text: String) -> String {
    people(&text, NAME, is_unsafe)
}

/// Returns several lines for people.
pub(crate) fn long_text(text: String) -> String {
    people(&text, LONG, |character| is_unsafe(character) && !matches!(character, '\n' | '\t'))
}

fn people(text: &str, limit: usize, is_refused: impl Fn(char) -> bool) -> String {
    let cut = text.get(..text.floor_char_boundary(limit)).unwrap_or_default();
    let shown = |character: char| if is_refused(character) { char::REPLACEMENT_CHARACTER } else { character };
    cut.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(name("fs.write".into(), "rule").as_deref(), Ok("fs.write"));
        assert_eq!(name("größe.日本".into(), "rule").as_deref(), Ok("größe.日本"));
        let hostile =
            ["a\u{202e}b", "a\u{200b}", "a\u{e0041}", "a\u{feff}", "\u{9b}2J", "p\u{430}ypal", "a\u{ff0f}b"];
        for text in ["", "a b", "a\nb", "a\u{1b}[2J", &"a".repeat(NAME + 1)].into_iter().chain(hostile) {
            assert!(name(text.into(), "rule").is_err(), "{text:?}");
        }
        assert_eq!(optional_name(String::new(), "rule").as_deref(), Ok(""));
    }

    #[test]
    fn texts_for_people() {
        assert_eq!(line("a\u{1b}[2J\nb\u{202e}c".into()), "a\u{fffd}[2J\u{fffd}b\u{fffd}c");
        assert_eq!(title("a\u{200b}\u{e0041}\u{85}ü".into()), "a\u{fffd}\u{fffd}\u{fffd}ü");
        assert_eq!(long_text("a\n\tb\r".into()), "a\n\tb\u{fffd}");
        assert_eq!(line("é".repeat(LINE)).chars().count(), LINE / 2);
    }

    #[test]
    fn lists() {
        assert!(list(vec![1, 2], "x", 2, Ok).is_ok());
        assert!(matches!(list(vec![1, 2, 3], "x", 2, Ok), Err(PolicyError::AnswerSize { .. })));
    }
}
