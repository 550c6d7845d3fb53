//! Lists and pipelines.

use crate::found::ReadError;
use crate::scan::Reader;

/// Reserved words that end a list where a command could start.
const CLOSING: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];

impl Reader<'_> {
    /// Reads a whole script.
    pub(crate) fn script(&mut self) -> Result<(), ReadError> {
        self.list()?;
        if self.peek().is_some() {
            return Err(self.error("something stands where a command should"));
        }
        if self.heredocs.is_empty() { Ok(()) } else { Err(self.error("a here-document has no body")) }
    }

    /// Reads commands up to the end of the list; the token that ends it is not skipped.
    pub(crate) fn list(&mut self) -> Result<(), ReadError> {
        loop {
            self.skip_newlines()?;
            if self.at_end_of_list() {
                return Ok(());
            }
            self.and_or()?;
            self.skip_blanks();
            match self.peek() {
                Some(';') if self.sees(";;") || self.sees(";&") => return Ok(()),
                Some(';') => {
                    self.bump();
                    self.joint = ";";
                }
                Some('&') => {
                    self.bump();
                    self.found.features.background = true;
                    self.joint = "&";
                }
                Some('\n') => {
                    self.newline()?;
                    self.joint = ";";
                }
                _ => return Ok(()),
            }
        }
    }

    fn at_end_of_list(&mut self) -> bool {
        match self.peek() {
            None | Some(')') => true,
            Some(';') => self.sees(";;") || self.sees(";&"),
            Some(_) => CLOSING.contains(&self.plain_ahead().as_str()),
        }
    }

    fn and_or(&mut self) -> Result<(), ReadError> {
        loop {
            self.pipeline()?;
            self.skip_blanks();
            self.joint = match () {
                () if self.take("&&") => "&&",
                () if self.take("||") => "||",
                () => return Ok(()),
            };
            self.skip_newlines()?;
        }
    }

    fn pipeline(&mut self) -> Result<(), ReadError> {
        loop {
            self.prefixes();
            self.command()?;
            self.skip_blanks();
            if self.sees("||") || !self.take("|") {
                return Ok(());
            }
            // `|&` also pipes standard error.
            self.take("&");
            self.joint = "|";
            self.skip_newlines()?;
        }
    }

    /// Skips `!` and `time`, which do not change the command that runs.
    fn prefixes(&mut self) {
        loop {
            self.skip_blanks();
            match self.plain_ahead().as_str() {
                "!" => {
                    self.take("!");
                }
                "time" => {
                    self.take("time");
                    self.skip_blanks();
                    for option in ["-p", "--"] {
                        if self.plain_ahead() == option {
                            self.take(option);
                            self.skip_blanks();
                        }
                    }
                }
                _ => return,
            }
        }
    }

    fn command(&mut self) -> Result<(), ReadError> {
        self.skip_blanks();
        if self.compound()? { Ok(()) } else { self.simple() }
    }
}
