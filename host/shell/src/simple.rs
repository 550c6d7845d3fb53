//! Simple commands: assignments, words, redirections.

use portcullis_decision::request::{SimpleCommand, Word};

use crate::found::{ReadError, nothing};
use crate::scan::Reader;
use crate::word::Text;
use crate::wrapper;

impl Reader<'_> {
    /// Reads a simple command.
    pub(crate) fn simple(&mut self) -> Result<(), ReadError> {
        self.read_simple(Parts::All)
    }

    /// Reads the redirections after a compound command.
    pub(crate) fn redirects_only(&mut self) -> Result<(), ReadError> {
        self.read_simple(Parts::Redirects)
    }

    fn read_simple(&mut self, parts: Parts) -> Result<(), ReadError> {
        let index = self.found.reserve(self.parent, self.joint.to_owned())?;
        let outer = self.parent.replace(index);
        let mut command = nothing();
        loop {
            self.skip_blanks();
            if let Some(redirect) = self.redirect((index, command.redirects.len()))? {
                self.found.count_word()?;
                command.redirects.push(redirect);
                continue;
            }
            if parts == Parts::Redirects || !self.word_of(&mut command)? {
                break;
            }
        }
        self.parent = outer;
        if command.argv.is_empty() && command.assignments.is_empty() && command.redirects.is_empty() {
            return Err(self.error("a command is missing"));
        }
        self.note(&command);
        self.found.fill(index, command);
        wrapper::resolve(self.found, index, self.depth)
    }

    /// Reads one word or assignment; returns false if there is none.
    fn word_of(&mut self, command: &mut SimpleCommand) -> Result<bool, ReadError> {
        let start = self.position();
        let plain = self.plain_up_to_equals()?;
        if let Some(name) = plain {
            self.found.count_word()?;
            if self.peek() == Some('(') {
                self.array()?;
                let word = Word { value: self.between(start, self.position()).to_owned(), literal: false };
                if command.argv.is_empty() {
                    command.assignments.push((name, word));
                } else {
                    command.argv.push(word);
                }
                return Ok(true);
            }
            if command.argv.is_empty() {
                let mut value = Text::new();
                self.word_into(&mut value)?;
                command.assignments.push((name, value.into_word()));
                return Ok(true);
            }
            // It is an ordinary argument.
            self.go_back(start);
        }
        let Some(word) = self.word()? else { return Ok(false) };
        command.argv.push(word.into_word());
        Ok(true)
    }

    /// Skips `NAME=`, `NAME+=` or `NAME[n]=` if it comes next, and returns the name.
    fn plain_up_to_equals(&mut self) -> Result<Option<String>, ReadError> {
        let start = self.position();
        let mut name = String::new();
        while let Some(next) = self.peek() {
            let fits = next == '_' || next.is_ascii_alphabetic() || !name.is_empty() && next.is_ascii_digit();
            if !fits {
                break;
            }
            name.push(next);
            self.bump();
        }
        if !name.is_empty() && self.peek() == Some('[') {
            self.subscript()?;
        }
        self.take("+");
        if name.is_empty() || !self.take("=") {
            self.go_back(start);
            return Ok(None);
        }
        Ok(Some(name))
    }

    /// Reads `[n]` after a name.
    ///
    /// Bash reads blanks, quotes and comments in it as text where an assignment is allowed, and differently elsewhere.
    fn subscript(&mut self) -> Result<(), ReadError> {
        self.bump();
        let start = self.position();
        while let Some(next) = self.peek() {
            match next {
                ']' => {
                    self.found.calculate(self.between(start, self.position()));
                    self.bump();
                    return Ok(());
                }
                _ if next.is_ascii_alphanumeric() || "_-+@*".contains(next) => {
                    self.bump();
                }
                '$' => {
                    self.bump();
                    if !self.peek().is_some_and(|next| next.is_ascii_alphanumeric() || next == '_') {
                        break;
                    }
                }
                _ => break,
            }
        }
        Err(self.error("a bracket behind a name holds something else than a plain subscript"))
    }

    /// Reads `(a b c)` after `NAME=`.
    fn array(&mut self) -> Result<(), ReadError> {
        self.bump();
        loop {
            self.skip_newlines()?;
            if self.take(")") {
                return Ok(());
            }
            if self.peek() == Some('[') {
                self.subscript()?;
            }
            self.word()?.ok_or_else(|| self.error("an array is not closed"))?;
        }
    }

    /// Records how a command affects later ones.
    fn note(&mut self, command: &SimpleCommand) {
        for (name, value) in &command.assignments {
            self.found.assign(name, value);
        }
    }
}

/// The parts that are read of a simple command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parts {
    All,
    Redirects,
}
