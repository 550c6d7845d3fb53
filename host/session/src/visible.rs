//! Text from outside made safe to show: nothing in it can move the cursor, hide or reorder characters.

use unicode_script::{Script, UnicodeScript as _};

/// Longest text that is shown in one place, in characters.
const SHOWN_MAX: usize = 300;

/// As [`SHOWN_MAX`], for what a question is about: who answers has to see it.
const SUBJECT_MAX: usize = 4_000;

/// Writes `text` so that every character is visible and none acts on a terminal; leaves the middle out
/// when it is long.
///
/// ```
/// assert_eq!(portcullis_session::visible("a\u{202e}b\n"), "a\\u{202e}b\\n");
/// ```
#[must_use]
pub fn visible(text: &str) -> String {
    visible_up_to(text, SHOWN_MAX)
}

/// As [`visible`], for what a question is about. The second is whether a part was left out.
#[must_use]
pub fn visible_subject(text: &str) -> (String, bool) {
    (visible_up_to(text, SUBJECT_MAX), text.chars().nth(SUBJECT_MAX).is_some())
}

/// As [`visible_subject`], for a text of several lines, which stay lines. Every escape in it is `\u{…}`, so that a
/// script's own `\n` and `\t` are none.
pub(crate) fn visible_lines(text: &str) -> (String, bool) {
    let escaped = |character: char| match character {
        '\n' => Escaped::Plain(std::iter::once(character)),
        _ if acts(character) => Escaped::Number(character.escape_unicode()),
        _ => Escaped::Plain(std::iter::once(character)),
    };
    (shortened(text, SUBJECT_MAX, escaped), text.chars().nth(SUBJECT_MAX).is_some())
}

fn visible_up_to(text: &str, most: usize) -> String {
    shortened(text, most, |character| match acts(character) {
        true => Escaped::Code(character.escape_default()),
        false => Escaped::Plain(std::iter::once(character)),
    })
}

/// Of a longer text two fifths are its end: what is used of a path is at the end of it.
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

fn acts(character: char) -> bool {
    character.is_control() || acts_invisibly(character)
}

/// Characters that take no space, change the direction of the text, or look like a plain space.
fn acts_invisibly(character: char) -> bool {
    matches!(character,
        '\u{00a0}' | '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}'
        | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
        || has_no_certain_width(character)
}

/// Characters of which terminals do not agree how much room they take, as they draw some together with those before
/// them: parts of Korean syllables, letters of flags, colours of skin, and what no script has. Such a row may be twice as
/// long as a program believes. Terminals with pictures draw U+10EEEE as a piece of one.
fn has_no_certain_width(character: char) -> bool {
    matches!(character, '\u{1100}'..='\u{11ff}' | '\u{a960}'..='\u{a97f}' | '\u{d7b0}'..='\u{d7ff}'
        | '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f3fb}'..='\u{1f3ff}')
        || character.script() == Script::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_acts() {
        for (text, shown) in [
            ("plain ü 日", "plain ü 日"),
            ("\x1b[2J", "\\u{1b}[2J"),
            ("a\u{200b}b", "a\\u{200b}b"),
            ("x\r\ny", "x\\r\\ny"),
            ("\u{e0041}", "\\u{e0041}"),
            // What some terminals draw in one cell, others in many, and some as a picture.
            ("\u{1100}\u{1100}", "\\u{1100}\\u{1100}"),
            ("\u{d7b0}\u{a960}", "\\u{d7b0}\\u{a960}"),
            ("👍\u{1f3fd}", "👍\\u{1f3fd}"),
            ("\u{1f1e9}", "\\u{1f1e9}"),
            ("\u{10eeee}\u{e0b0}", "\\u{10eeee}\\u{e0b0}"),
            ("\u{378}\u{10ffff}", "\\u{378}\\u{10ffff}"),
            ("한국어 🔒 ✓ é", "한국어 🔒 ✓ é"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn long_text_keeps_its_beginning_and_its_end() {
        let shown = visible(&format!("/begin/{}/end", "x".repeat(5_000)));
        assert!(shown.chars().count() < SHOWN_MAX + 40, "{shown}");
        assert!(shown.starts_with("/begin/") && shown.ends_with("/end"), "{shown}");
    }
}
