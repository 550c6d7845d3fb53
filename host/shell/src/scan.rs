//! The cursor in a script, and what all readers share.

use crate::heredoc::Heredoc;
use crate::{DEPTH_MAX, Found, ReadError, SCRIPT_MAX};

/// Reads one script; scripts within it are read by readers of their own.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    pub(crate) depth: usize,
    /// The command that holds what is read now.
    pub(crate) parent: Option<u32>,
    /// How the next command follows the one before.
    pub(crate) joint: &'static str,
    /// Here-documents whose bodies start after the next newline.
    pub(crate) heredocs: Vec<Heredoc>,
    pub(crate) found: &'a mut Found,
}

/// Characters that end an unquoted word.
pub(crate) const METACHARACTERS: &str = " \t\n;&|<>()";

impl<'a> Reader<'a> {
    pub(crate) fn new(
        text: &'a str,
        depth: usize,
        parent: Option<u32>,
        found: &'a mut Found,
    ) -> Result<Self, ReadError> {
        found.bytes += text.len();
        if found.bytes > SCRIPT_MAX {
            return Err(ReadError::Size { what: "128 KiB" });
        }
        if text.contains('\0') {
            return Err(ReadError::Syntax { at: 0, what: "it holds a NUL character" });
        }
        let mut reader = Self { text, at: 0, depth, parent, joint: "", heredocs: Vec::new(), found };
        reader.enter()?;
        Ok(reader)
    }

    /// Goes one level deeper; every recursion passes here.
    pub(crate) fn enter(&mut self) -> Result<(), ReadError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(ReadError::Size { what: "50 levels of nesting" }) } else { Ok(()) }
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// The next character, whatever it is.
    pub(crate) fn peek_raw(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    pub(crate) fn bump_raw(&mut self) -> Option<char> {
        let next = self.peek_raw()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// The next character; a backslash before a newline joins lines.
    pub(crate) fn peek(&mut self) -> Option<char> {
        while self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\\n")) {
            self.at += 2;
        }
        self.peek_raw()
    }

    pub(crate) fn bump(&mut self) -> Option<char> {
        self.peek();
        self.bump_raw()
    }

    /// Passes over `wanted` if it comes next.
    pub(crate) fn take(&mut self, wanted: &str) -> bool {
        let start = self.at;
        let same = wanted.chars().all(|character| self.bump() == Some(character));
        if !same {
            self.at = start;
        }
        same
    }

    /// Whether `wanted` comes next.
    pub(crate) fn sees(&mut self, wanted: &str) -> bool {
        let start = self.at;
        let same = self.take(wanted);
        self.at = start;
        same
    }

    /// Passes over `wanted`, which must come next.
    pub(crate) fn expect(&mut self, wanted: &str, what: &'static str) -> Result<(), ReadError> {
        if self.take(wanted) { Ok(()) } else { Err(self.error(what)) }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn go_back(&mut self, position: usize) {
        self.at = position;
    }

    /// The text between two positions.
    pub(crate) fn between(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// What is left, as it stands.
    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Passes over spaces, tabs and a comment.
    pub(crate) fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|next| next == ' ' || next == '\t') {
            self.bump_raw();
        }
        // At the start of a word only, which is where this is called.
        if self.peek() == Some('#') {
            while self.peek_raw().is_some_and(|next| next != '\n') {
                self.bump_raw();
            }
        }
    }

    /// Passes over blanks and newlines; here-documents are read on the way.
    pub(crate) fn skip_newlines(&mut self) -> Result<(), ReadError> {
        loop {
            self.skip_blanks();
            if self.peek() != Some('\n') {
                return Ok(());
            }
            self.newline()?;
        }
    }

    /// Passes over one newline and the bodies of here-documents that follow it.
    pub(crate) fn newline(&mut self) -> Result<(), ReadError> {
        self.bump();
        let pending = std::mem::take(&mut self.heredocs);
        pending.into_iter().try_for_each(|heredoc| self.body(&heredoc))
    }

    /// The plain text up to the next metacharacter, quote or expansion, without
    /// passing over it; the ground on which reserved words are told.
    pub(crate) fn plain_ahead(&mut self) -> String {
        let start = self.at;
        let mut plain = String::new();
        while let Some(next) = self.peek() {
            if METACHARACTERS.contains(next) {
                break;
            }
            if "'\"\\$`".contains(next) {
                // Part of a longer word, which is no reserved one.
                plain.clear();
                break;
            }
            plain.push(next);
            self.bump_raw();
        }
        self.at = start;
        plain
    }

    pub(crate) fn error(&self, what: &'static str) -> ReadError {
        ReadError::Syntax { at: self.at, what }
    }
}
