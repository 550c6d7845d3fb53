//! Here-documents. Their bodies start after the line that names them.

use portcullis_decision::request::Word;

use crate::found::ReadError;
use crate::scan::{Heredoc, Reader};
use crate::word::Text;

impl Reader<'_> {
    /// Reads the body, which comes next, and stores it as the target of its redirection.
    pub(crate) fn body(&mut self, heredoc: &Heredoc) -> Result<(), ReadError> {
        let mut body = String::new();
        loop {
            if self.rest().is_empty() {
                return Err(self.error("a here-document is not closed"));
            }
            let line = self.logical_line(heredoc);
            let line = if heredoc.strip_tabs { line.trim_start_matches('\t') } else { line.as_str() };
            if line == heredoc.delimiter {
                break;
            }
            body.push_str(line);
            body.push('\n');
        }
        let (command, redirect) = heredoc.owner;
        let text = if heredoc.quoted {
            Text { value: body, literal: true, quoted: true }
        } else {
            Reader::new(&body, self.depth, Some(command), self.found)?.expanding_body()?
        };
        let owner = self.found.commands.get_mut(command as usize);
        if let Some(place) = owner.and_then(|owner| owner.redirects.get_mut(redirect)) {
            place.target = Word { value: text.value, literal: text.literal };
        }
        crate::wrapper::resolve_fed(self.found, command, self.depth)
    }

    /// Reads one line, without its newline. In a body that is expanded, a backslash joins lines.
    fn logical_line(&mut self, heredoc: &Heredoc) -> String {
        let mut line = String::new();
        loop {
            let rest = self.rest();
            let end = rest.find('\n').unwrap_or(rest.len());
            line.push_str(rest.get(..end).unwrap_or_default());
            self.go_back(self.position() + (end + 1).min(rest.len()));
            let backslashes = line.len() - line.trim_end_matches('\\').len();
            if heredoc.quoted || backslashes.is_multiple_of(2) || self.rest().is_empty() {
                return line;
            }
            line.pop();
        }
    }

    /// Reads a body in which variables and commands are expanded.
    fn expanding_body(&mut self) -> Result<Text, ReadError> {
        let mut text = Text::new();
        while let Some(next) = self.bump() {
            match next {
                '\\' => match self.peek_raw() {
                    Some(escaped @ ('$' | '`' | '\\')) => {
                        self.bump_raw();
                        text.value.push(escaped);
                    }
                    _ => text.value.push('\\'),
                },
                '`' => self.backquoted(&mut text, false)?,
                '$' => self.dollar(&mut text, true)?,
                other => text.value.push(other),
            }
        }
        Ok(text)
    }
}
