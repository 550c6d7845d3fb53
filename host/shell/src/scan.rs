//! The cursor in a script, with the functions that all parts of the parser share.

use crate::found::{DEPTH_MAX, Findings, ReadError, SCRIPT_MAX};

/// A parser for one script; nested scripts get readers of their own.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    pub(crate) depth: usize,
    /// The command that contains the current position.
    pub(crate) parent: Option<u32>,
    /// The operator between the previous command and the next.
    pub(crate) joint: &'static str,
    /// Here-documents whose bodies start after the next newline.
    pub(crate) heredocs: Vec<Heredoc>,
    pub(crate) found: &'a mut Findings,
}

/// A here-document whose body has not been reached yet.
#[derive(Debug)]
pub(crate) struct Heredoc {
    pub(crate) delimiter: String,
    /// True if the body is not expanded.
    pub(crate) quoted: bool,
    /// True for `<<-`, which removes tabs at the start of lines.
    pub(crate) strip_tabs: bool,
    /// The index of the command, and of its redirection, that the body belongs to.
    pub(crate) owner: (u32, usize),
}

/// Characters that end an unquoted word.
pub(crate) const METACHARACTERS: &str = " \t\n;&|<>()";

impl<'a> Reader<'a> {
    pub(crate) fn new(
        text: &'a str,
        depth: usize,
        parent: Option<u32>,
        found: &'a mut Findings,
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

    /// Enters one level of nesting; every recursion calls this.
    pub(crate) fn enter(&mut self) -> Result<(), ReadError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(ReadError::Size { what: "50 levels of nesting" }) } else { Ok(()) }
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Returns the next character, without joining lines.
    pub(crate) fn peek_raw(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    pub(crate) fn bump_raw(&mut self) -> Option<char> {
        let next = self.peek_raw()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Returns the next character; a backslash before a newline joins lines.
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

    /// Skips `wanted` if it comes next.
    pub(crate) fn take(&mut self, wanted: &str) -> bool {
        let start = self.at;
        let same = wanted.chars().all(|character| self.bump() == Some(character));
        if !same {
            self.at = start;
        }
        same
    }

    /// Returns true if `wanted` comes next.
    pub(crate) fn sees(&mut self, wanted: &str) -> bool {
        let start = self.at;
        let same = self.take(wanted);
        self.at = start;
        same
    }

    /// Skips `wanted`, which must come next.
    pub(crate) fn expect(&mut self, wanted: &str, what: &'static str) -> Result<(), ReadError> {
        if self.take(wanted) { Ok(()) } else { Err(self.error(what)) }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn go_back(&mut self, position: usize) {
        self.at = position;
    }

    /// Returns the text between two positions.
    pub(crate) fn between(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// Returns the rest of the text, unchanged.
    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips spaces, tabs and a comment.
    pub(crate) fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|next| next == ' ' || next == '\t') {
            self.bump_raw();
        }
        // A comment begins only at the start of a word; callers are always there.
        if self.peek() == Some('#') {
            while self.peek_raw().is_some_and(|next| next != '\n') {
                self.bump_raw();
            }
        }
    }

    /// Skips blanks and newlines, and reads here-documents on the way.
    pub(crate) fn skip_newlines(&mut self) -> Result<(), ReadError> {
        loop {
            self.skip_blanks();
            if self.peek() != Some('\n') {
                return Ok(());
            }
            self.newline()?;
        }
    }

    /// Skips one newline, and reads the bodies of here-documents that follow it.
    pub(crate) fn newline(&mut self) -> Result<(), ReadError> {
        self.bump();
        let pending = std::mem::take(&mut self.heredocs);
        pending.into_iter().try_for_each(|heredoc| self.body(&heredoc))
    }

    /// Returns the plain text up to the next metacharacter, without skipping it.
    ///
    /// The text is empty if the word contains a quote or an expansion. Reserved words are recognized by it.
    pub(crate) fn plain_ahead(&mut self) -> String {
        let start = self.at;
        let mut plain = String::new();
        while let Some(next) = self.peek() {
            if METACHARACTERS.contains(next) {
                break;
            }
            if "'\"\\$`".contains(next) {
                // The word is longer than its plain part, so it is not a reserved word.
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
