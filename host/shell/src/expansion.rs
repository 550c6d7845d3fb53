//! Expansions and substitutions: syntax that begins with `$`, a backquote, `<(` or `>(`.
//!
//! The commands inside are read; the resulting value is unknown.

use crate::found::ReadError;
use crate::scan::Reader;
use crate::word::Text;

impl Reader<'_> {
    /// Reads the part after a `$`.
    pub(crate) fn dollar(&mut self, text: &mut Text, quoted: bool) -> Result<(), ReadError> {
        match self.peek() {
            Some('(') => {
                text.literal = false;
                self.parenthesis()
            }
            Some('{') => {
                text.literal = false;
                self.bump();
                if self.peek().is_none_or(|next| " \t\n|".contains(next)) {
                    return Err(self.error("`${` is followed by a blank or a bar"));
                }
                let start = self.position();
                self.matched('}', quoted)?;
                let inside = self.between(start, self.position());
                self.found.expand(inside.strip_suffix('}').unwrap_or(inside));
                Ok(())
            }
            Some('[') => {
                text.literal = false;
                self.bump();
                let start = self.position();
                self.matched(']', true)?;
                self.found.calculate(self.between(start, self.position()));
                Ok(())
            }
            Some('\'') if !quoted => {
                self.bump();
                text.quoted = true;
                self.ansi_quoted(text)
            }
            Some('"') if !quoted => {
                self.bump();
                // The text is translated with a message catalogue that the environment names.
                text.literal = false;
                self.double_quoted(text)
            }
            Some(next) if next.is_ascii_alphanumeric() || "_@*#?-$!".contains(next) => {
                text.literal = false;
                self.name();
                Ok(())
            }
            _ => {
                text.value.push('$');
                Ok(())
            }
        }
    }

    /// Skips the name of a variable, or the single character of a special one.
    fn name(&mut self) {
        let first = self.bump();
        if !first.is_some_and(|first| first.is_ascii_alphabetic() || first == '_') {
            return;
        }
        while self.peek().is_some_and(|next| next.is_ascii_alphanumeric() || next == '_') {
            self.bump();
        }
    }

    /// Reads `$(commands)` or `$((arithmetic))`; the parenthesis comes next.
    fn parenthesis(&mut self) -> Result<(), ReadError> {
        if self.sees("((") && self.arithmetic()? {
            return Ok(());
        }
        self.bump();
        self.substitution()
    }

    /// Reads the commands of a substitution up to the closing parenthesis.
    fn substitution(&mut self) -> Result<(), ReadError> {
        self.enter()?;
        self.found.features.substitution = true;
        let joint = std::mem::take(&mut self.joint);
        let pending = std::mem::take(&mut self.heredocs);
        self.list()?;
        if !self.heredocs.is_empty() {
            return Err(self.error("a here-document has no body"));
        }
        self.heredocs = pending;
        self.joint = joint;
        self.leave();
        self.expect(")", "a substitution is not closed")
    }

    pub(crate) fn process_substitution(&mut self, text: &mut Text) -> Result<(), ReadError> {
        text.literal = false;
        self.bump();
        self.bump();
        self.substitution()
    }

    /// Reads `((...))`, which comes next. Returns false and reads nothing if it is a parenthesis within a parenthesis.
    pub(crate) fn arithmetic(&mut self) -> Result<bool, ReadError> {
        let start = self.position();
        let (commands, words, features) = (self.found.commands.len(), self.found.words, self.found.features);
        self.bump();
        self.bump();
        self.matched(')', true)?;
        let is_arithmetic = self.take(")");
        if is_arithmetic {
            self.found.calculate(self.between(start, self.position()));
        } else {
            self.go_back(start);
            self.found.commands.truncate(commands);
            self.found.words = words;
            self.found.features = features;
        }
        Ok(is_arithmetic)
    }

    /// Skips text up to the closing character and reads the commands in it.
    ///
    /// `quoted` means that a single quote is not a quote there, or that this is uncertain.
    fn matched(&mut self, close: char, quoted: bool) -> Result<(), ReadError> {
        self.enter()?;
        let open = match close {
            ')' => Some('('),
            ']' => Some('['),
            _ => None,
        };
        let mut unknown = Text::new();
        let mut level = 0_usize;
        loop {
            // Only the commands inside matter; the text is discarded.
            unknown.value.clear();
            match self.bump() {
                None => return Err(self.error("an expansion is not closed")),
                Some(next) if next == close && level == 0 => break,
                Some(next) if next == close => level -= 1,
                Some(next) if Some(next) == open => level += 1,
                Some('\\') => {
                    self.bump_raw();
                }
                Some('\'') if quoted => {
                    return Err(self.error("a single quote stands where shells differ in its meaning"));
                }
                Some('\'') => self.skip_single_quoted()?,
                Some('"') => self.double_quoted(&mut unknown)?,
                Some('`') => self.backquoted(&mut unknown, true)?,
                Some('$') => self.dollar(&mut unknown, quoted)?,
                Some('<' | '>') if !quoted && self.peek() == Some('(') => {
                    self.bump();
                    self.substitution()?;
                }
                Some(_) => {}
            }
        }
        self.leave();
        Ok(())
    }

    fn skip_single_quoted(&mut self) -> Result<(), ReadError> {
        loop {
            match self.bump_raw() {
                None => return Err(self.error("a quotation is not closed")),
                Some('\'') => return Ok(()),
                Some(_) => {}
            }
        }
    }

    /// Reads up to the closing backquote; the opening one has been skipped.
    pub(crate) fn backquoted(&mut self, text: &mut Text, in_quotes: bool) -> Result<(), ReadError> {
        text.literal = false;
        self.found.features.substitution = true;
        let mut script = String::new();
        loop {
            match self.bump_raw() {
                None => return Err(self.error("a backquote is not closed")),
                Some('`') => break,
                Some('\\') => match self.bump_raw() {
                    Some(escaped @ ('$' | '`' | '\\')) => script.push(escaped),
                    Some('"') if in_quotes => script.push('"'),
                    Some(other) => script.extend(['\\', other]),
                    None => return Err(self.error("a backquote is not closed")),
                },
                Some(other) => script.push(other),
            }
        }
        Reader::new(&script, self.depth, self.parent, self.found)?.script()
    }
}
