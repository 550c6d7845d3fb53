//! Compound commands and functions. The commands inside are listed like any others.

use crate::evaluating::is_evaluating;
use crate::found::ReadError;
use crate::scan::{METACHARACTERS, Reader};

impl Reader<'_> {
    /// Reads a compound command or a function definition, if one comes next.
    pub(crate) fn compound(&mut self) -> Result<bool, ReadError> {
        self.enter()?;
        let found = self.compound_within()?;
        self.found.has_compounds |= found;
        self.leave();
        Ok(found)
    }

    fn compound_within(&mut self) -> Result<bool, ReadError> {
        if self.peek() == Some('(') {
            self.parentheses()?;
            self.redirects_of_compound()?;
            return Ok(true);
        }
        let word = self.plain_ahead();
        match word.as_str() {
            "{" => {
                self.take("{");
                self.list()?;
                self.reserved("}", "`{` is not closed")?;
            }
            "if" => self.conditional()?,
            "while" | "until" => {
                self.take(&word);
                self.found.features.loops = true;
                self.list()?;
                self.body_of_loop()?;
            }
            "for" | "select" => self.for_loop(&word)?,
            "case" => self.case()?,
            "[[" => self.condition()?,
            "function" => return self.function_with_keyword().map(|()| true),
            "coproc" => return self.coprocess().map(|()| true),
            "then" | "elif" | "else" | "fi" | "do" | "done" | "esac" | "}" => {
                return Err(self.error("a closing word stands where a command should"));
            }
            _ => return self.function(&word),
        }
        self.redirects_of_compound()?;
        Ok(true)
    }

    fn parentheses(&mut self) -> Result<(), ReadError> {
        if self.sees("((") && self.arithmetic()? {
            return Ok(());
        }
        self.bump();
        self.list()?;
        self.expect(")", "a parenthesis is not closed")
    }

    /// Reads the redirections after a compound command.
    ///
    /// They belong to no simple command, so they are listed as a command of their own.
    fn redirects_of_compound(&mut self) -> Result<(), ReadError> {
        self.skip_blanks();
        if !self.sees_redirect() {
            return Ok(());
        }
        self.joint = "";
        self.redirects_only()
    }

    fn conditional(&mut self) -> Result<(), ReadError> {
        self.take("if");
        loop {
            self.list()?;
            self.reserved("then", "`if` has no `then`")?;
            self.list()?;
            match self.plain_ahead().as_str() {
                "elif" => self.take("elif"),
                "else" => {
                    self.take("else");
                    self.list()?;
                    return self.reserved("fi", "`if` has no `fi`");
                }
                _ => return self.reserved("fi", "`if` has no `fi`"),
            };
        }
    }

    fn body_of_loop(&mut self) -> Result<(), ReadError> {
        self.reserved("do", "a loop has no `do`")?;
        self.list()?;
        self.reserved("done", "a loop has no `done`")
    }

    fn for_loop(&mut self, keyword: &str) -> Result<(), ReadError> {
        self.take(keyword);
        self.found.features.loops = true;
        self.skip_blanks();
        if self.sees("((") {
            if !self.arithmetic()? {
                return Err(self.error("the head of a loop is not closed"));
            }
        } else {
            let name = self.word()?.ok_or_else(|| self.error("a loop has no variable"))?;
            self.found.give(&name.value);
            self.skip_newlines()?;
            if self.plain_ahead() == "in" {
                self.take("in");
                self.words()?;
            }
        }
        self.skip_blanks();
        if self.peek() == Some(';') && !self.sees(";;") {
            self.bump();
        }
        self.skip_newlines()?;
        if self.plain_ahead() == "{" {
            self.take("{");
            self.list()?;
            return self.reserved("}", "`{` is not closed");
        }
        self.body_of_loop()
    }

    /// Reads words up to the end of the line; only the commands in them count.
    fn words(&mut self) -> Result<(), ReadError> {
        loop {
            self.skip_blanks();
            if self.word()?.is_none() {
                return Ok(());
            }
        }
    }

    fn case(&mut self) -> Result<(), ReadError> {
        self.take("case");
        self.skip_blanks();
        self.word()?.ok_or_else(|| self.error("`case` has no word"))?;
        self.skip_newlines()?;
        self.reserved("in", "`case` has no `in`")?;
        loop {
            self.skip_newlines()?;
            if self.plain_ahead() == "esac" {
                return self.reserved("esac", "");
            }
            self.pattern()?;
            self.list()?;
            if !(self.take(";;&") || self.take(";;") || self.take(";&")) {
                return self.reserved("esac", "`case` has no `esac`");
            }
        }
    }

    /// Reads `(a | b)` before the commands of a case.
    fn pattern(&mut self) -> Result<(), ReadError> {
        self.take("(");
        loop {
            self.skip_blanks();
            self.word()?.ok_or_else(|| self.error("a case has no pattern"))?;
            self.skip_blanks();
            if self.take(")") {
                return Ok(());
            }
            self.expect("|", "a pattern is not closed")?;
        }
    }

    /// Reads `[[ ... ]]`. It runs only the substitutions in it, and those in expressions that it evaluates.
    fn condition(&mut self) -> Result<(), ReadError> {
        self.take("[[");
        let start = self.position();
        let mut evaluates = false;
        loop {
            while self.peek().is_some_and(|next| " \t\n".contains(next)) {
                self.bump();
            }
            match self.peek() {
                None | Some(';' | '#') => return Err(self.error("`[[` is not closed")),
                Some(_) if self.plain_ahead() == "]]" => {
                    if evaluates {
                        self.found.calculate(self.between(start, self.position()));
                    }
                    self.take("]]");
                    return Ok(());
                }
                Some('(' | ')' | '|' | '&') => {
                    self.bump();
                }
                Some('<' | '>') if !self.sees("<(") && !self.sees(">(") => {
                    self.bump();
                }
                Some(_) => {
                    evaluates |= self.word()?.is_some_and(|word| is_evaluating(&word.value));
                }
            }
        }
    }

    fn function_with_keyword(&mut self) -> Result<(), ReadError> {
        self.take("function");
        self.skip_blanks();
        self.word()?.ok_or_else(|| self.error("a function has no name"))?;
        self.skip_blanks();
        if self.take("(") {
            self.skip_blanks();
            self.expect(")", "a function has parameters")?;
        }
        self.function_body()
    }

    /// Reads `name() body`, if it comes next.
    fn function(&mut self, name: &str) -> Result<bool, ReadError> {
        let start = self.position();
        // `name=()` is an empty array.
        if name.is_empty() || name.contains('=') {
            return Ok(false);
        }
        self.take(name);
        while self.peek().is_some_and(|next| next == ' ' || next == '\t') {
            self.bump();
        }
        if !self.take("(") {
            self.go_back(start);
            return Ok(false);
        }
        self.skip_blanks();
        if !self.take(")") {
            self.go_back(start);
            return Ok(false);
        }
        self.function_body().map(|()| true)
    }

    fn function_body(&mut self) -> Result<(), ReadError> {
        self.found.features.redefinition = true;
        self.skip_newlines()?;
        self.joint = "";
        if self.compound()? { Ok(()) } else { Err(self.error("a function has no body")) }
    }

    fn coprocess(&mut self) -> Result<(), ReadError> {
        self.take("coproc");
        self.found.features.background = true;
        self.skip_blanks();
        let start = self.position();
        let name = self.plain_ahead();
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_name && !name.is_empty() && !starts_compound(&name) {
            self.take(&name);
            self.skip_blanks();
            if self.peek() == Some('(') || starts_compound(&self.plain_ahead()) {
                return self.compound().map(drop);
            }
            self.go_back(start);
        }
        if self.compound()? { Ok(()) } else { self.simple() }
    }

    /// Skips a reserved word, which must come next as a separate word.
    fn reserved(&mut self, word: &str, what: &'static str) -> Result<(), ReadError> {
        self.skip_blanks();
        if self.plain_ahead() == word && self.take(word) && self.at_metacharacter() {
            return Ok(());
        }
        Err(self.error(what))
    }

    fn at_metacharacter(&mut self) -> bool {
        self.peek().is_none_or(|next| METACHARACTERS.contains(next))
    }
}

fn starts_compound(word: &str) -> bool {
    ["{", "if", "while", "until", "for", "select", "case", "[["].contains(&word)
}
