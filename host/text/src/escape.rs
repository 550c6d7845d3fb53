//! Escapes characters that steer a terminal, hide text, or change its order.

use std::borrow::Cow;

use unicode_script::{Script, UnicodeScript as _};

/// Maximum length of a text in a message, in characters.
const SHORT_MAX: usize = 300;

/// Maximum length of a text that the user decides about, in characters.
const SUBJECT_MAX: usize = 4_000;

/// Escapes the unsafe characters of a text for one line; shortens a long text in the middle.
#[must_use]
pub fn escape(text: &str) -> String {
    escape_up_to(text, SHORT_MAX)
}

/// Escapes a text that the user decides about. Also returns true if a part was left out.
#[must_use]
pub fn escape_subject(text: &str) -> (String, bool) {
    (escape_up_to(text, SUBJECT_MAX), text.chars().nth(SUBJECT_MAX).is_some())
}

/// Escapes a message of any length; line breaks are kept.
///
/// For the place where text leaves the program: text that is escaped already is unchanged.
#[must_use]
pub fn escape_message(text: &str) -> Cow<'_, str> {
    let stays = |character: char| character == '\n' || !is_unsafe(character);
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let escaped = |character: char| match stays(character) {
        true => Escaped::Plain(std::iter::once(character)),
        false => Escaped::Code(character.escape_default()),
    };
    Cow::Owned(text.chars().flat_map(escaped).collect())
}

/// Replaces the unsafe characters of JSON text by JSON escapes, which keep its meaning.
#[must_use]
pub fn escape_json(json: &str) -> Cow<'_, str> {
    // A line break can only be between the parts of a document; in strings it is already escaped.
    let stays = |character: char| character == '\n' || !is_unsafe(character);
    if json.chars().all(stays) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for character in json.chars() {
        if stays(character) {
            escaped.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    Cow::Owned(escaped)
}

/// Escapes a text of several lines.
///
/// Line breaks are kept. Also returns true if a part was left out. All escapes have the form `\u{…}`, so that `\n` and
/// `\t` in a script are distinguishable from escapes.
pub(crate) fn escape_lines(text: &str) -> (String, bool) {
    let escaped = |character: char| match character {
        '\n' => Escaped::Plain(std::iter::once(character)),
        _ if is_unsafe(character) => Escaped::Number(character.escape_unicode()),
        _ => Escaped::Plain(std::iter::once(character)),
    };
    (shortened(text, SUBJECT_MAX, escaped), text.chars().nth(SUBJECT_MAX).is_some())
}

fn escape_up_to(text: &str, most: usize) -> String {
    shortened(text, most, |character| match is_unsafe(character) {
        true => Escaped::Code(character.escape_default()),
        false => Escaped::Plain(std::iter::once(character)),
    })
}

/// Shortens a long text in the middle. Two fifths of the rest are its end, which contains the name in a path.
fn shortened(text: &str, most: usize, escaped: impl Fn(char) -> Escaped) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.chars().flat_map(escaped).collect();
    }
    let end = most / 5 * 2;
    let beginning: String = text.chars().take(most - end).flat_map(&escaped).collect();
    let end: String = text.chars().skip(length - end).flat_map(&escaped).collect();
    format!("{beginning} …({} characters left out)… {end}", length - most)
}

/// A character as itself, or escaped.
enum Escaped {
    Plain(std::iter::Once<char>),
    Code(std::char::EscapeDefault),
    Number(std::char::EscapeUnicode),
}

impl Iterator for Escaped {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self {
            Self::Plain(one) => one.next(),
            Self::Code(code) => code.next(),
            Self::Number(number) => number.next(),
        }
    }
}

/// Returns true if a character is unsafe to show.
///
/// It steers a terminal, is invisible, changes the direction of text, looks like a plain space, or has no certain
/// width.
#[must_use]
pub fn is_unsafe(character: char) -> bool {
    if (' '..='~').contains(&character) {
        return false;
    }
    character.is_control() || is_invisible(character) || has_no_certain_width(character)
}

fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{00a0}' | '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}'
        | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Returns true if terminals disagree on the width of a character.
///
/// These are parts of Korean syllables, regional indicators, skin tone modifiers, and characters without a script. A
/// line with such characters can be twice as wide as computed. Terminals with image support draw U+10EEEE as a part of
/// an image.
fn has_no_certain_width(character: char) -> bool {
    matches!(character, '\u{1100}'..='\u{11ff}' | '\u{a960}'..='\u{a97f}' | '\u{d7b0}'..='\u{d7ff}'
        | '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f3fb}'..='\u{1f3ff}')
        || character.script() == Script::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_characters_are_escaped() {
        for (text, shown) in [
            ("plain ü 日", "plain ü 日"),
            ("\x1b[2J", "\\u{1b}[2J"),
            ("a\u{200b}b", "a\\u{200b}b"),
            ("x\r\ny", "x\\r\\ny"),
            ("\u{e0041}", "\\u{e0041}"),
            // Some terminals draw these in one cell, others in several, and some as an image.
            ("\u{1100}\u{1100}", "\\u{1100}\\u{1100}"),
            ("\u{d7b0}\u{a960}", "\\u{d7b0}\\u{a960}"),
            ("👍\u{1f3fd}", "👍\\u{1f3fd}"),
            ("\u{1f1e9}", "\\u{1f1e9}"),
            ("\u{10eeee}\u{e0b0}", "\\u{10eeee}\\u{e0b0}"),
            ("\u{378}\u{10ffff}", "\\u{378}\\u{10ffff}"),
            ("한국어 🔒 ✓ é", "한국어 🔒 ✓ é"),
        ] {
            assert_eq!(escape(text), shown);
            assert_eq!(escape(shown), shown, "escaping again changes nothing");
        }
    }

    #[test]
    fn long_text_keeps_its_beginning_and_its_end() {
        let shown = escape(&format!("/begin/{}/end", "x".repeat(5_000)));
        assert!(shown.chars().count() < SHORT_MAX + 40, "{shown}");
        assert!(shown.starts_with("/begin/") && shown.ends_with("/end"), "{shown}");
    }

    #[test]
    fn a_message_keeps_its_lines() {
        assert_eq!(
            escape_message("a\nb\u{1b}]52;c;x\u{7}\u{202e}\r\n"),
            "a\nb\\u{1b}]52;c;x\\u{7}\\u{202e}\\r\n"
        );
        assert!(matches!(escape_message("plain ü\n"), Cow::Borrowed(_)));
        let long = "x".repeat(10_000);
        assert_eq!(escape_message(&long), long);
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({ "a\u{202e}": "ü \u{7f}\u{9b}\n\u{e0041}\u{1b} 日" });
        for text in [value.to_string(), format!("{value:#}")] {
            let escaped = escape_json(&text);
            assert!(escaped.chars().all(|character| character == '\n' || !is_unsafe(character)), "{escaped}");
            assert!(escaped.contains('ü') && escaped.contains('日'));
            assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
        }
    }
}
