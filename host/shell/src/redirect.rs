//! Redirections.

use portcullis_decision::request::Redirect;

use crate::found::ReadError;
use crate::scan::{Heredoc, Reader};

/// The redirection operators; longer ones come first.
const OPERATORS: [&str; 12] = ["&>>", "&>", "<<<", "<<-", "<<", "<&", "<>", "<", ">>", ">&", ">|", ">"];

impl Reader<'_> {
    /// Reads one redirection; returns `None` if there is none.
    ///
    /// `owner` is the index of its command and the number of redirections before it.
    pub(crate) fn redirect(&mut self, owner: (u32, usize)) -> Result<Option<Redirect>, ReadError> {
        let start = self.position();
        let fd = self.descriptor();
        if self.sees("<(") || self.sees(">(") {
            if fd.is_some() {
                return Err(self.error("a number stands before a process substitution"));
            }
            self.go_back(start);
            return Ok(None);
        }
        let Some(operator) = OPERATORS.into_iter().find(|operator| self.take(operator)) else {
            self.go_back(start);
            return Ok(None);
        };
        self.skip_blanks();
        let delimiter = self.position();
        let target = self.word()?.ok_or_else(|| self.error("a redirection has no target"))?;
        if operator == "<<" || operator == "<<-" {
            self.found.features.heredoc = true;
            // Bash does not expand the delimiter; an apparent expansion in it is plain text.
            if self.between(delimiter, self.position()).contains(['$', '`', '(']) {
                return Err(self.error("the end of a here-document is named by an expansion"));
            }
            self.heredocs.push(Heredoc {
                delimiter: target.value.clone(),
                quoted: target.quoted,
                strip_tabs: operator == "<<-",
                owner,
            });
        }
        if operator == "<<<" {
            self.found.features.heredoc = true;
        }
        Ok(Some(Redirect { operator: operator.to_owned(), fd, target: target.into_word(), path: None }))
    }

    /// Returns true if a redirection comes next.
    pub(crate) fn sees_redirect(&mut self) -> bool {
        let start = self.position();
        self.descriptor();
        let substitution = self.sees("<(") || self.sees(">(");
        let sees = !substitution && OPERATORS.into_iter().any(|operator| self.sees(operator));
        self.go_back(start);
        sees
    }

    /// Reads the `2` of `2>` if it comes next; skips the `{name}` of `{name}>`.
    fn descriptor(&mut self) -> Option<u32> {
        let start = self.position();
        let plain = self.plain_ahead();
        let is_number = !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_digit());
        let named = plain.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let is_named = named.is_some_and(|name| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_[]".contains(&byte))
        });
        if is_number || is_named {
            plain.chars().for_each(|_| {
                self.bump();
            });
            if matches!(self.peek(), Some('<' | '>')) {
                return is_number.then(|| plain.parse().unwrap_or(u32::MAX));
            }
        }
        self.go_back(start);
        None
    }
}
