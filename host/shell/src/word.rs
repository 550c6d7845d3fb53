//! Words: removes quotes, and tells whether a word contains expansions.

use portcullis_decision::request::Word;

use crate::found::ReadError;
use crate::scan::{METACHARACTERS, Reader};

/// A word that is being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) value: String,
    pub(crate) literal: bool,
    /// True if any part of it was quoted.
    pub(crate) quoted: bool,
}

impl Text {
    pub(crate) fn new() -> Self {
        Self { value: String::new(), literal: true, quoted: false }
    }

    pub(crate) fn into_word(self) -> Word {
        Word { value: self.value, literal: self.literal }
    }
}

/// The unquoted opening characters seen in a word.
#[derive(Debug, Default)]
struct Special {
    bracket: bool,
    brace: bool,
}

impl Reader<'_> {
    /// Reads a word; returns `None` if no word comes next.
    pub(crate) fn word(&mut self) -> Result<Option<Text>, ReadError> {
        let start = self.position();
        let mut text = Text::new();
        self.word_into(&mut text)?;
        if self.position() == start {
            return Ok(None);
        }
        self.found.count_word()?;
        Ok(Some(text))
    }

    /// Reads the rest of a word into `text`.
    pub(crate) fn word_into(&mut self, text: &mut Text) -> Result<(), ReadError> {
        let mut special = Special::default();
        let mut before = '=';
        while let Some(next) = self.peek() {
            if self.sees("<(") || self.sees(">(") {
                self.process_substitution(text)?;
                continue;
            }
            if METACHARACTERS.contains(next) {
                return Ok(());
            }
            self.bump();
            match next {
                '\\' => {
                    text.quoted = true;
                    text.value.push(self.bump_raw().unwrap_or('\\'));
                }
                '\'' => self.single_quoted(text)?,
                '"' => self.double_quoted(text)?,
                '`' => self.backquoted(text, false)?,
                '$' => self.dollar(text, false)?,
                other => {
                    special.look_at(other, before, text, self.peek());
                    text.value.push(other);
                }
            }
            before = next;
        }
        Ok(())
    }

    fn single_quoted(&mut self, text: &mut Text) -> Result<(), ReadError> {
        text.quoted = true;
        loop {
            match self.bump_raw() {
                None => return Err(self.error("a quotation is not closed")),
                Some('\'') => return Ok(()),
                Some(other) => text.value.push(other),
            }
        }
    }

    /// Reads up to the closing quote; the opening one has been skipped.
    pub(crate) fn double_quoted(&mut self, text: &mut Text) -> Result<(), ReadError> {
        text.quoted = true;
        loop {
            match self.bump() {
                None => return Err(self.error("a quotation is not closed")),
                Some('"') => return Ok(()),
                Some('\\') => match self.peek_raw() {
                    Some(escaped @ ('$' | '`' | '"' | '\\')) => {
                        self.bump_raw();
                        text.value.push(escaped);
                    }
                    _ => text.value.push('\\'),
                },
                Some('`') => self.backquoted(text, true)?,
                Some('$') => self.dollar(text, true)?,
                Some(other) => text.value.push(other),
            }
        }
    }
}

impl Special {
    /// Records an unquoted character; `before` is the one before it, `=` at the start.
    fn look_at(&mut self, character: char, before: char, text: &mut Text, after: Option<char>) {
        match character {
            '*' | '?' => text.literal = false,
            '~' if before == '=' || before == ':' => text.literal = false,
            '[' => self.bracket = true,
            ']' if self.bracket => text.literal = false,
            // `{}`, an argument for find and xargs, expands to itself.
            '{' if after != Some('}') => self.brace = true,
            '}' if self.brace => text.literal = false,
            _ => {}
        }
    }
}
