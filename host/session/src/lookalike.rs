//! Characters that pass for others, made visible: `pаypal` with a Cyrillic `а` is no `paypal`.
//!
//! A text of another script stays readable. What is escaped are characters that look like plain ones where plain
//! ones are expected: beside some, in a word that looks plain as a whole, and signs that look like those of a shell
//! or a path.

use std::borrow::Cow;

use unicode_normalization::char::is_combining_mark;
use unicode_security::confusable_detection::skeleton;

use crate::visible::{visible, visible_subject};

/// A letter has no more marks in the scripts that have most; heaps of them are drawn over what stands around.
const MARKS_MAX: usize = 2;

/// Makes a text safe to show to somebody who decides about it: nothing acts, and nothing passes for something else.
pub(crate) fn revealed(text: &str) -> String {
    visible(&unmasked(text))
}

/// As [`revealed`], for what a question is about. The second is whether a part was left out.
pub(crate) fn revealed_subject(text: &str) -> (String, bool) {
    visible_subject(&unmasked(text))
}

/// Escapes what passes for something else.
fn unmasked(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut word = String::new();
    let mut marks = 0;
    for character in text.chars() {
        marks = if is_combining_mark(character) { marks + 1 } else { 0 };
        let is_heaped = marks > MARKS_MAX;
        if character.is_alphanumeric() && !is_heaped {
            word.push(character);
            continue;
        }
        push_word(&mut shown, &word);
        word.clear();
        push(&mut shown, character, is_heaped || looks_plain(character));
    }
    push_word(&mut shown, &word);
    Cow::Owned(shown)
}

fn push_word(shown: &mut String, word: &str) {
    let among_plain = word.contains(|character: char| character.is_ascii_alphabetic());
    let passes = !word.is_ascii() && (among_plain || skeleton(word).all(|part| part.is_ascii()));
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

fn looks_plain(character: char) -> bool {
    !character.is_ascii() && skeleton(character.encode_utf8(&mut [0; 4])).all(|part| part.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_for_something_else_is_told() {
        for (text, shown) in [
            ("cat /etc/passwd", "cat /etc/passwd"),
            // A Cyrillic a among plain letters, and a word that is wholly Cyrillic and looks like `copy`.
            ("p\u{430}ypal.txt", "p\\u{430}ypal.txt"),
            ("\u{441}\u{43e}\u{440}\u{443}", "\\u{441}\\u{43e}\\u{440}\\u{443}"),
            ("\u{3bf}k", "\\u{3bf}k"),
            // Signs of paths and shells.
            ("a\u{2215}b", "a\\u{2215}b"),
            ("a\u{ff0f}b", "a\\u{ff0f}b"),
            ("ls\u{37e} rm", "ls\\u{37e} rm"),
            ("a\u{2024}\u{2024}/b", "a\\u{2024}\\u{2024}/b"),
            ("\u{2018}x\u{2019}", "\\u{2018}x\\u{2019}"),
            ("\u{202e}x", "\\u{202e}x"),
            // Parts of a syllable, each as wide as the whole of it on some terminals, and marks upon marks.
            ("\u{1100}\u{1100}", "\\u{1100}\\u{1100}"),
            ("日\u{301}\u{301}\u{301}", "日\u{301}\u{301}\\u{301}"),
            ("กี่\u{e48}", "กี่\\u{e48}"),
        ] {
            assert_eq!(revealed(text), shown, "{text}");
        }
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
            assert_eq!(revealed(text), text);
        }
    }
}
