//! Standard output: aligned columns, colours on terminals, JSON, times.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::Context as _;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::streams;
use portcullis_text::{escape, escape_json, escape_message, escape_subject, is_unsafe};
use serde_json::Value;

/// Rows are not wrapped on a terminal that is narrower than this.
const NARROWEST: usize = 30;
/// The width of output that does not go to a terminal.
const PIPED: usize = 80;
/// The additional indentation of the continuation of a row.
const HANGING: usize = 4;

/// A colour, by meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tint {
    /// No colour.
    Plain,
    /// Allowed, or done.
    Good,
    /// A person must decide.
    Open,
    /// Denied, or failed.
    Bad,
    /// Of less importance.
    Faint,
}

impl Tint {
    /// Returns the colour of an effect, a policy's verdict, or an outcome.
    #[must_use]
    pub fn for_word(word: &str) -> Self {
        match word {
            "allow" | "done" | "exit 0" => Self::Good,
            "ask" => Self::Open,
            "deny" | "failed" => Self::Bad,
            "abstain" => Self::Faint,
            _ => Self::Plain,
        }
    }

    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Good => Some("32"),
            Self::Open => Some("33"),
            Self::Bad => Some("31"),
            Self::Faint => Some("2"),
        }
    }
}

/// A text of a table, escaped.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    tint: Tint,
}

impl Cell {
    /// Returns the number of characters.
    #[must_use]
    pub fn width(&self) -> usize {
        self.text.chars().count()
    }
}

/// Makes a cell, shortened if long.
#[must_use]
pub fn cell(text: &str) -> Cell {
    Cell { text: escape(text), tint: Tint::Plain }
}

/// Makes a coloured cell for a line of a question, with the length limit of questions.
#[must_use]
pub fn whole(text: &str, tint: Tint) -> Cell {
    Cell { text: escape_subject(text).0, tint }
}

/// Makes a coloured cell.
#[must_use]
pub fn tinted(text: &str, tint: Tint) -> Cell {
    Cell { text: escape(text), tint }
}

/// Buffered text for standard output.
#[derive(Debug)]
pub struct Page {
    text: String,
    colours: bool,
    /// The width at which rows are wrapped.
    columns: Option<usize>,
    /// Whether a word that is longer than a line is broken. A file or a pipe gets whole paths.
    breaks_words: bool,
}

impl Page {
    /// Creates a page. It has colours on a terminal, unless NO_COLOR is set.
    #[must_use]
    pub fn new(around: &ProcessEnv) -> Self {
        let says = |name: &str, test: fn(&str) -> bool| {
            around.variables.iter().any(|(known, value)| known == name && test(value))
        };
        let plain = says("NO_COLOR", |value| !value.is_empty()) || says("TERM", |value| value == "dumb");
        let out = streams::output();
        let is_terminal = out.is_terminal();
        let size = rustix::termios::tcgetwinsize(&out).ok().filter(|_| is_terminal);
        let columns = match is_terminal {
            true => size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns >= NARROWEST),
            false => Some(columns_of(around).unwrap_or(PIPED)),
        };
        Self { text: String::new(), colours: is_terminal && !plain, columns, breaks_words: is_terminal }
    }

    /// Creates a page for a log: in a file or a pipe, each row is one line, whatever its length.
    #[must_use]
    pub fn of_lines(around: &ProcessEnv) -> Self {
        let page = Self::new(around);
        let columns = page.columns.filter(|_| page.breaks_words);
        Self { columns, ..page }
    }

    /// Adds one or more lines; unsafe characters are escaped.
    pub fn line(&mut self, line: &str) {
        self.text.push_str(&escape_message(line));
        self.text.push('\n');
    }

    /// Adds a sentence that wraps like a row; unsafe characters are escaped.
    pub fn sentence(&mut self, indent: &str, text: &str) {
        let text = escape_message(text).into_owned();
        self.row(indent, &[Cell { text, tint: Tint::Plain }], &[]);
    }

    /// Adds rows, with each column as wide as its widest text.
    pub fn table(&mut self, indent: &str, rows: &[Vec<Cell>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| rows.iter().filter_map(|row| row.get(column)).map(Cell::width).max().unwrap_or(0))
            .collect();
        for row in rows {
            self.row(indent, row, &widths);
        }
    }

    /// Adds a row with columns of given widths; a longer text takes the space it needs.
    ///
    /// A row that is too long goes on below, indented, so that no cell begins a line.
    pub fn row(&mut self, indent: &str, row: &[Cell], widths: &[usize]) {
        let indent = escape_message(indent).into_owned();
        let hanging = indent.chars().count() + HANGING;
        let (mut line, mut column) = (indent.clone(), indent.chars().count());
        for (place, cell) in row.iter().enumerate() {
            let over = self.columns.filter(|columns| column + cell.width() > *columns);
            let mut parts = match over {
                None => vec![cell.text.clone()],
                Some(columns) => wrapped(
                    &cell.text,
                    columns.saturating_sub(column),
                    columns.saturating_sub(hanging).max(1),
                    self.breaks_words,
                ),
            }
            .into_iter();
            if let Some(first) = parts.next() {
                column += first.chars().count();
                self.paint(&mut line, cell.tint, &first);
            }
            for part in parts {
                self.text.push_str(line.trim_end());
                self.text.push('\n');
                line = " ".repeat(hanging);
                column = hanging + part.chars().count();
                self.paint(&mut line, cell.tint, &part);
            }
            let is_last = place + 1 == row.len();
            if !is_last {
                let gap = widths.get(place).copied().unwrap_or(0).saturating_sub(cell.width()) + 2;
                line.push_str(&" ".repeat(gap));
                column += gap;
            }
        }
        // Do not escape again: the colour codes are ours, and the texts of cells are escaped.
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn paint(&self, line: &mut String, tint: Tint, text: &str) {
        match tint.code().filter(|_| self.colours && !text.is_empty()) {
            Some(code) => line.push_str(&format!("\x1b[{code}m{text}\x1b[0m")),
            None => line.push_str(text),
        }
    }

    /// Adds a JSON document on one line.
    pub fn json(&mut self, value: &Value) {
        self.line(&escape_json(&value.to_string()));
    }

    /// Adds a JSON document on several lines.
    pub fn pretty_json(&mut self, value: &Value) {
        self.line(&escape_json(&format!("{value:#}")));
    }

    /// Prints the buffered text. A closed output is not an error and is returned as such.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn print(&mut self) -> anyhow::Result<Reader> {
        let mut out = streams::output().lock();
        let printed = out.write_all(self.text.as_bytes()).and_then(|()| out.flush());
        self.text.clear();
        match printed {
            Ok(()) => Ok(Reader::There),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
            Err(error) => Err(error.into()),
        }
    }
}

/// Prints a text for other programs, unchanged.
///
/// # Errors
/// If the text would act on a terminal, since no escape means the same to all programs; if the output cannot be written.
pub fn print_document(text: &str) -> anyhow::Result<()> {
    if text.chars().any(|character| !matches!(character, '\n' | '\t') && is_unsafe(character)) {
        anyhow::bail!("the text holds characters that act on a terminal; write it to a file");
    }
    let mut out = streams::output().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("printing")
}

/// Whether the output is still open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// It is open.
    There,
    /// It is closed: nobody reads on.
    Gone,
}

/// Returns the width in the variable COLUMNS, as other programs take it.
fn columns_of(around: &ProcessEnv) -> Option<usize> {
    let (_, value) = around.variables.iter().find(|(name, _)| name == "COLUMNS")?;
    value.parse().ok().filter(|columns| *columns >= NARROWEST)
}

/// Breaks a text into a part of at most `first` characters and others of at most `rest`, at spaces where there are any.
///
/// The first part is empty if no word fits. A word that is longer than a line is broken, or has a line of its own.
fn wrapped(text: &str, first: usize, rest: usize, breaks_words: bool) -> Vec<String> {
    let mut parts = Vec::new();
    let (mut left, mut room): (Vec<char>, usize) = (text.chars().collect(), first);
    while left.len() > room {
        let space = left.get(..=room).and_then(|head| head.iter().rposition(|letter| *letter == ' '));
        let end = match space {
            Some(space) => space,
            None if parts.is_empty() && first < rest => 0,
            None if breaks_words => room,
            None => match left.iter().position(|letter| *letter == ' ') {
                Some(end) => end,
                None => break,
            },
        };
        parts.push(left.drain(..end).collect());
        let blanks = left.iter().take_while(|letter| **letter == ' ').count();
        left.drain(..blanks);
        room = rest;
    }
    parts.push(left.into_iter().collect());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(colours: bool) -> Page {
        Page { text: String::new(), colours, columns: None, breaks_words: true }
    }

    #[test]
    fn rows_fit_the_terminal() {
        let mut one = page(false);
        one.columns = Some(40);
        let long =
            "run git commit -m 'a message of several words' and-a-word-that-is-wider-than-the-whole-terminal";
        one.row("", &[cell("5 min ago"), cell("deny"), cell(long), cell("[a.rule]")], &[10, 5]);
        let lines: Vec<&str> = one.text.lines().collect();
        assert!(lines.len() > 3 && lines.iter().all(|line| line.chars().count() <= 40), "{lines:#?}");
        assert!(lines.iter().skip(1).all(|line| line.starts_with("    ")), "{lines:#?}");
        let joined: String = one.text.split_whitespace().collect();
        assert_eq!(joined, format!("5minagodeny{}[a.rule]", long.replace(' ', "")));
        let mut log = page(false);
        log.row("", &[cell("5 min ago"), cell(long)], &[10]);
        assert_eq!(log.text.lines().count(), 1, "a row of a log is one line");
    }

    #[test]
    fn piped_rows_are_wrapped_between_words_only() {
        let mut piped = page(false);
        (piped.columns, piped.breaks_words) = (Some(20), false);
        let path = "/home/ann/.pi/agent/sandbox/default.json:3";
        piped.row("", &[cell("a.field"), cell("two words"), cell(path), cell("and more")], &[7]);
        assert_eq!(piped.text, format!("a.field  two words\n    {path}\n    and more\n"));
    }

    #[test]
    fn columns_are_aligned_and_nothing_acts() {
        let rows = [
            vec![cell("ü"), tinted("deny", Tint::Bad), cell("x")],
            vec![cell("long"), tinted("ask", Tint::Open), cell("\u{1b}[2J\u{202e}")],
        ];
        let mut plain = page(false);
        plain.table("  ", &rows);
        assert_eq!(plain.text, "  ü     deny  x\n  long  ask   \\u{1b}[2J\\u{202e}\n");
        let mut coloured = page(true);
        coloured.table("", &rows);
        assert!(coloured.text.contains("\u{1b}[31mdeny\u{1b}[0m  x"));
        assert!(!coloured.text.contains("\u{1b}[2J"));
    }

    #[test]
    fn lines_are_escaped_and_json_keeps_its_meaning() {
        let mut one = page(true);
        one.line("a \u{1b}]0;x\u{7} \u{202e}\nb");
        assert_eq!(one.text, "a \\u{1b}]0;x\\u{7} \\u{202e}\nb\n");
        let value = serde_json::json!({ "a\u{202e}": "ü \u{7f}\u{9b}\n\u{e0041} 日" });
        let mut one = page(false);
        one.json(&value);
        assert!(one.text.trim_end().chars().all(|character| !is_unsafe(character)));
        assert_eq!(serde_json::from_str::<Value>(&one.text).unwrap(), value);
    }
}
