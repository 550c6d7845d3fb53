//! The ways in which servers escape a character.

use super::references::{hexadecimal, references};

/// The most backslashes in front of a character: those of JSON in JSON in JSON.
const BACKSLASHES_MAX: usize = 7;

/// How the characters of a form can be written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// In either case, and each escaped or not.
    Text,
    /// As it is, where no escape is needed, with line breaks and the like between any two characters.
    Encoded,
}

impl Spelling {
    /// Returns the lengths of the texts at the beginning of `bytes` that stand for a character.
    pub(super) fn lengths(self, wanted: u8, bytes: &[u8]) -> impl Iterator<Item = usize> {
        let is_wanted = move |found: u8| self.is_same(wanted, found);
        let itself = bytes.first().filter(|found| is_wanted(**found) || wanted == b' ' && **found == b'+');
        itself.map(|_| 1).into_iter().chain(self.escapes(bytes, is_wanted))
    }

    /// Returns the length of the longest text at the beginning of `bytes` that stands for one of these characters.
    pub(super) fn longest(self, bytes: &[u8], is_one: impl Fn(u8) -> bool) -> Option<usize> {
        let itself = bytes.first().filter(|byte| is_one(**byte)).map(|_| 1);
        let escaped = bytes.first().is_some_and(|byte| begins_escape(*byte));
        let escapes = escaped.then(|| self.escapes(bytes, &is_one)).into_iter().flatten();
        itself.into_iter().chain(escapes).max()
    }

    /// Returns the length of what stands at the beginning of `bytes` and does not count between two characters.
    pub(super) fn separator(self, bytes: &[u8]) -> Option<usize> {
        let first = *bytes.first()?;
        match self {
            // UTF-16 and UTF-32 have these in characters of ASCII.
            Self::Text => (first == 0).then_some(1),
            Self::Encoded if is_between(first) => Some(1),
            Self::Encoded => self.escapes(bytes, is_between).next(),
        }
    }

    /// Returns true if one character counts as another.
    pub(super) fn is_same(self, wanted: u8, found: u8) -> bool {
        match self {
            Self::Text => wanted.eq_ignore_ascii_case(&found),
            Self::Encoded => wanted == found,
        }
    }

    /// Returns the lengths of the escapes at the beginning of `bytes` that stand for a wanted character.
    fn escapes(self, bytes: &[u8], is_wanted: impl Fn(u8) -> bool) -> impl Iterator<Item = usize> {
        let escape = self.escape(bytes, &is_wanted);
        let referred = references(bytes).filter(move |(found, _)| is_wanted(*found));
        escape.into_iter().chain(referred.map(|(_, length)| length))
    }

    /// Returns the length of the escape at the beginning of `bytes` if it stands for a wanted character.
    fn escape(self, bytes: &[u8], is_wanted: &impl Fn(u8) -> bool) -> Option<usize> {
        let coded = |high: u8, low: u8| hexadecimal(&[high, low]).is_some_and(is_wanted);
        match *bytes {
            [b'%', b'2', b'5', high, low, ..] if coded(high, low) => Some(5),
            [b'%', high, low, ..] => coded(high, low).then_some(3),
            [b'\\', b'\\', ..] if is_wanted(b'\\') => Some(2),
            [b'\\', ..] => {
                // JSON in a string of JSON escapes each backslash once more.
                let run = bytes.iter().take(BACKSLASHES_MAX).take_while(|byte| **byte == b'\\').count();
                match *bytes.get(run..)? {
                    [b'u', b'0', b'0', high, low, ..] if coded(high, low) => Some(run + 5),
                    [b'x', high, low, ..] if coded(high, low) => Some(run + 3),
                    [byte, ..] => self.unescaped(byte).is_some_and(is_wanted).then_some(run + 1),
                    [] => None,
                }
            }
            _ => None,
        }
    }

    /// Returns the character that a backslash and this byte stand for.
    fn unescaped(self, byte: u8) -> Option<u8> {
        match (self, byte) {
            (Self::Text, _) => Some(byte),
            (Self::Encoded, b'n') => Some(b'\n'),
            (Self::Encoded, b'r') => Some(b'\r'),
            (Self::Encoded, b't') => Some(b'\t'),
            (Self::Encoded, _) => (!byte.is_ascii_alphanumeric()).then_some(byte),
        }
    }
}

/// Returns true for a byte with which an escape of several bytes can begin.
pub(super) fn begins_escape(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&')
}

/// Returns true for what stands between the pieces of encoded texts, or in each character of them in UTF-16.
pub(super) fn is_between(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b':' | 0)
}
