//! Escapes confusable characters: `pаypal` with a Cyrillic `а` is not `paypal`.
//!
//! Text in other scripts stays readable. A character that looks like ASCII is escaped where ASCII is expected: beside
//! ASCII letters, in a word that looks like ASCII as a whole, and if it looks like a special character of a shell or a
//! path.

use std::borrow::Cow;

use unicode_normalization::char::is_combining_mark;

use crate::escape::{escape, escape_lines, escape_subject};

/// Maximum number of combining marks on a letter, enough for all scripts.
///
/// More would be drawn over the surrounding text.
const MARKS_MAX: usize = 2;

/// Escapes unsafe and confusable characters of a text for one line; shortens a long text in the middle.
#[must_use]
pub fn escape_confusables(text: &str) -> String {
    escape(&without_confusables(text))
}

/// Escapes unsafe and confusable characters of a text that the user decides about.
///
/// Also returns true if a part was left out.
#[must_use]
pub fn escape_confusables_in_subject(text: &str) -> (String, bool) {
    escape_subject(&without_confusables(text))
}

/// Escapes a script like [`escape_confusables_in_subject`].
///
/// Line breaks are kept, and text that looks like an escape is distinguishable from an actual one.
#[must_use]
pub fn escape_script(text: &str) -> (String, bool) {
    escape_lines(&without_confusables(&with_own_escapes_doubled(text)))
}

/// Doubles the backslashes before text that looks like the rest of an escape.
///
/// It does the same before characters that may be escaped.
fn with_own_escapes_doubled(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('\\') {
        let (before, from) = rest.split_at(start);
        let after = from.trim_start_matches('\\');
        let run = from.strip_suffix(after).unwrap_or_default();
        let may_be_escaped = |next: char| !next.is_ascii() || (next.is_control() && next != '\n');
        told.push_str(before);
        told.push_str(run);
        if after.starts_with("u{") || after.starts_with(may_be_escaped) {
            told.push_str(run);
        }
        rest = after;
    }
    told.push_str(rest);
    Cow::Owned(told)
}

/// Escapes confusable characters.
fn without_confusables(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut word = String::new();
    let mut marks = 0;
    let mut before = None;
    for character in text.chars() {
        marks = if is_combining_mark(character) { marks + 1 } else { 0 };
        let is_heaped = marks > MARKS_MAX;
        let is_lone = is_mark(character) && before.is_none_or(|before: char| before.is_ascii());
        before = Some(character);
        if character.is_alphanumeric() && !is_heaped {
            word.push(character);
            continue;
        }
        push_word(&mut shown, &word);
        word.clear();
        push(&mut shown, character, is_heaped || is_lone || looks_plain(character));
    }
    push_word(&mut shown, &word);
    Cow::Owned(shown)
}

fn push_word(shown: &mut String, word: &str) {
    let among_plain = word.contains(|character: char| character.is_ascii_alphabetic());
    let passes = !word.is_ascii() && (among_plain || word.chars().all(looks_ascii));
    for character in word.chars() {
        push(shown, character, passes && looks_plain(character));
    }
}

fn push(shown: &mut String, character: char, escape: bool) {
    if escape {
        shown.extend(character.escape_default());
    } else {
        shown.push(character);
    }
}

/// Returns true for a combining mark.
///
/// It is drawn over the previous character and can make it look like a letter of its own.
fn is_mark(character: char) -> bool {
    matches!(character,
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe20}'..='\u{fe2f}')
}

fn looks_plain(character: char) -> bool {
    !character.is_ascii() && looks_ascii(character)
}

include!(concat!(env!("OUT_DIR"), "/looks_ascii.rs"));

/// Returns true if the character's skeleton (Unicode Technical Standard 39) is ASCII. That of a text is ASCII if those
/// of all its characters are.
fn looks_ascii(character: char) -> bool {
    let number = u32::from(character);
    let following = LOOKS_ASCII.partition_point(|(first, _)| *first <= number);
    following.checked_sub(1).and_then(|at| LOOKS_ASCII.get(at)).is_some_and(|(_, last)| number <= *last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_security::confusable_detection::skeleton;

    use super::*;

    proptest! {
        #[test]
        fn a_text_looks_like_ascii_if_all_its_characters_do(text in "[ -~à-ÿ\u{300}-\u{36f}\u{370}-\u{45f}\u{ff01}-\u{ff5e}\u{ac00}-\u{ac20}]{0,6}|\\PC{0,4}") {
            let whole = skeleton(&text).all(|part| part.is_ascii());
            prop_assert_eq!(text.chars().all(looks_ascii), whole);
        }
    }

    #[test]
    fn confusable_characters_are_escaped() {
        for (text, shown) in [
            ("cat /etc/passwd", "cat /etc/passwd"),
            // A Cyrillic a among ASCII letters, and a Cyrillic word that looks like `copy`.
            ("p\u{430}ypal.txt", "p\\u{430}ypal.txt"),
            ("\u{441}\u{43e}\u{440}\u{443}", "\\u{441}\\u{43e}\\u{440}\\u{443}"),
            ("\u{3bf}k", "\\u{3bf}k"),
            // Special characters of paths and shells.
            ("a\u{2215}b", "a\\u{2215}b"),
            ("a\u{ff0f}b", "a\\u{ff0f}b"),
            ("ls\u{37e} rm", "ls\\u{37e} rm"),
            ("a\u{2024}\u{2024}/b", "a\\u{2024}\\u{2024}/b"),
            ("\u{2018}x\u{2019}", "\\u{2018}x\\u{2019}"),
            ("\u{202e}x", "\\u{202e}x"),
            // Parts of a syllable, each of which some terminals draw as wide as a whole one, and stacked marks.
            ("\u{1100}\u{1100}", "\\u{1100}\\u{1100}"),
            ("日\u{301}\u{301}\u{301}", "日\u{301}\u{301}\\u{301}"),
            ("กี่\u{e48}", "กี่\\u{e48}"),
        ] {
            assert_eq!(escape_confusables(text), shown, "{text}");
        }
    }

    #[test]
    fn no_two_scripts_look_alike() {
        let scripts = [
            "make # x\nrm -rf ~/x",
            "make # x\\nrm -rf ~/x",
            "make # x\\\nrm -rf ~/x",
            "make # x\\\\nrm -rf ~/x",
            "printf 'a\u{202e}b'",
            "printf 'a\\u{202e}b'",
            "printf 'a\\\u{202e}b'",
            "a\tb",
            "a\\tb",
            "a\\\tb",
            "a\\u{9}b",
            "a\\\\u{9}b",
            "e\u{301}",
            "\u{e9}",
            "e\\u{301}",
            "'\u{301}'",
        ];
        let shown: std::collections::BTreeSet<String> =
            scripts.iter().map(|script| escape_script(script).0).collect();
        assert_eq!(shown.len(), scripts.len(), "{shown:#?}");
        let plain = "printf '%s\\n\\t' a \\\n b '\\.' '\\\\'\n";
        assert_eq!(escape_script(plain).0, plain, "what is plain stays so");
        assert_eq!(escape_script("a\tb\r").0, "a\\u{9}b\\u{d}");
    }

    #[test]
    fn other_scripts_stay_readable() {
        for text in [
            "müller/größe",
            "привет.txt",
            "日本語",
            "Ελλάδα",
            "naïve café",
            "한국어",
            "عربي",
            "ที่นี่",
            "हिन्दी",
            "🔒 ok",
        ] {
            assert_eq!(escape_confusables(text), text);
        }
    }
}
