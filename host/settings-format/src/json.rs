//! A strict JSON reader that records positions.
//!
//! `serde_json` keeps neither the position of a value nor duplicate keys, and both are needed here: an error names line
//! and column, and a duplicate key is an error, because two readers of the same file could otherwise use different
//! values.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Problem;
use crate::fault::Fault;
use crate::position::Position;

/// Maximum nesting depth, more than any settings file needs. It bounds the recursion below.
pub const MAX_DEPTH: usize = 32;

/// A value, with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Its position.
    pub at: Position,
    /// The byte range in the text.
    pub span: Range<usize>,
    /// The place where the value was written, in a document merged from several files.
    pub home: Option<Arc<Home>>,
}

/// The file in which a value was written, with the JSON pointer.
#[derive(Debug, PartialEq)]
pub struct Home {
    /// The file.
    pub file: PathBuf,
    /// JSON pointer.
    pub pointer: String,
}

/// A JSON value; an object keeps the order of its members.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(serde_json::Number),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// An object.
    Object(Vec<Member>),
}

/// One member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The key.
    pub key: String,
    /// Position of the key.
    pub key_at: Position,
    /// Byte offset of the key.
    pub starts: usize,
    /// The value.
    pub node: Node,
}

impl Node {
    /// Returns the value of the member `key`, or `None` if there is none or this is not an object.
    pub fn member(&self, key: &str) -> Option<&Self> {
        self.members().iter().find(|member| member.key == key).map(|member| &member.node)
    }

    /// Returns the members, or none if this is not an object.
    pub fn members(&self) -> &[Member] {
        if let Value::Object(members) = &self.value { members } else { &[] }
    }

    /// Returns the items, or none if this is not a list.
    pub fn items(&self) -> &[Self] {
        if let Value::List(items) = &self.value { items } else { &[] }
    }

    /// Returns the text, if this is a string.
    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    /// Returns the number, if this is a non-negative integer.
    pub fn number(&self) -> Option<u64> {
        if let Value::Number(number) = &self.value { number.as_u64() } else { None }
    }

    /// Converts the value to `serde_json`.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(value) => serde_json::Value::Number(value.clone()),
            Value::Text(value) => value.clone().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Object(members) => serde_json::Value::Object(
                members.iter().map(|member| (member.key.clone(), member.node.to_json())).collect(),
            ),
        }
    }

    /// Returns the type of the value, in a user's words.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
        }
    }
}

/// Reads a document. Only white space may follow it.
pub fn read(text: &str) -> Result<Node, Fault> {
    let mut reader = Reader {
        rest: text.strip_prefix('\u{feff}').unwrap_or(text),
        length: text.len(),
        at: Position { line: 1, column: 1 },
    };
    reader.skip_space();
    if reader.rest.is_empty() {
        return Err(reader.fault(Problem::Empty));
    }
    let node = reader.value(0)?;
    reader.skip_space();
    if reader.rest.is_empty() { Ok(node) } else { Err(reader.unexpected("the end of the file")) }
}

struct Reader<'a> {
    rest: &'a str,
    length: usize,
    at: Position,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        if depth > MAX_DEPTH {
            return Err(self.fault(Problem::TooDeep { limit: MAX_DEPTH }));
        }
        let (at, start) = (self.at, self.offset());
        let value = match self.peek() {
            Some('{') => self.object(depth)?,
            Some('[') => self.list(depth)?,
            Some('"') => Value::Text(self.text()?),
            Some('-' | '0'..='9') => self.number()?,
            Some('a'..='z' | 'A'..='Z') => self.word()?,
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Node { value, at, span: start..self.offset(), home: None })
    }

    fn object(&mut self, depth: usize) -> Result<Value, Fault> {
        self.bump();
        let mut members: Vec<Member> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        self.skip_space();
        if self.take('}') {
            return Ok(Value::Object(members));
        }
        loop {
            self.skip_space();
            let (key_at, starts) = (self.at, self.offset());
            if self.peek() != Some('"') {
                return Err(self.unexpected("a key in double quotes"));
            }
            let key = self.text()?;
            if !seen.insert(key.clone()) {
                return Err(Fault {
                    at: key_at,
                    pointer: String::new(),
                    problem: Problem::DuplicateKey { key },
                });
            }
            self.skip_space();
            if !self.take(':') {
                return Err(self.unexpected("`:`"));
            }
            self.skip_space();
            let node = self.value(depth + 1)?;
            members.push(Member { key, key_at, starts, node });
            self.skip_space();
            if self.take('}') {
                return Ok(Value::Object(members));
            }
            if !self.take(',') {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, Fault> {
        self.bump();
        let mut items = Vec::new();
        self.skip_space();
        if self.take(']') {
            return Ok(Value::List(items));
        }
        loop {
            self.skip_space();
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if self.take(']') {
                return Ok(Value::List(items));
            }
            if !self.take(',') {
                return Err(self.unexpected("`,` or `]`"));
            }
        }
    }

    /// Finds the end of the string and has `serde_json` decode the escapes.
    fn text(&mut self) -> Result<String, Fault> {
        let (start, at) = (self.rest, self.at);
        self.bump();
        loop {
            match self.peek() {
                None | Some('\n') => {
                    return Err(Fault { at, pointer: String::new(), problem: Problem::OpenText });
                }
                Some('\\') => {
                    self.bump();
                    self.bump();
                }
                Some('"') => {
                    self.bump();
                    break;
                }
                Some(_) => self.bump(),
            }
        }
        let length = start.len().saturating_sub(self.rest.len());
        let quoted = start.get(..length).unwrap_or_default();
        serde_json::from_str(quoted).map_err(|_| Fault {
            at,
            pointer: String::new(),
            problem: Problem::BadText,
        })
    }

    fn number(&mut self) -> Result<Value, Fault> {
        let (start, at) = (self.rest, self.at);
        while matches!(self.peek(), Some('0'..='9' | '+' | '-' | '.' | 'e' | 'E')) {
            self.bump();
        }
        let length = start.len().saturating_sub(self.rest.len());
        let digits = start.get(..length).unwrap_or_default();
        serde_json::from_str(digits).map(Value::Number).map_err(|_| Fault {
            at,
            pointer: String::new(),
            problem: Problem::BadNumber { text: digits.to_owned() },
        })
    }

    fn word(&mut self) -> Result<Value, Fault> {
        let (start, at) = (self.rest, self.at);
        while matches!(self.peek(), Some('a'..='z' | 'A'..='Z' | '0'..='9' | '_')) {
            self.bump();
        }
        let length = start.len().saturating_sub(self.rest.len());
        match start.get(..length).unwrap_or_default() {
            "null" => Ok(Value::Null),
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err(Fault {
                at,
                pointer: String::new(),
                problem: Problem::Unexpected { wanted: "a value", found: start.chars().next() },
            }),
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.bump();
        }
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.bump();
        }
        found
    }

    fn offset(&self) -> usize {
        self.length.saturating_sub(self.rest.len())
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn bump(&mut self) {
        let mut characters = self.rest.chars();
        match characters.next() {
            Some('\n') => {
                self.at = Position { line: self.at.line.saturating_add(1), column: 1 };
            }
            Some(_) => self.at.column = self.at.column.saturating_add(1),
            None => {}
        }
        self.rest = characters.as_str();
    }

    fn unexpected(&self, wanted: &'static str) -> Fault {
        self.fault(Problem::Unexpected { wanted, found: self.peek() })
    }

    fn fault(&self, problem: Problem) -> Fault {
        Fault { at: self.at, pointer: String::new(), problem }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fails(text: &str, line: u32, column: u32, message: &str) {
        let fault = read(text).expect_err(text);
        assert_eq!(
            (fault.at, fault.problem.to_string()),
            (Position { line, column }, message.to_owned()),
            "{text}"
        );
    }

    #[test]
    fn errors_name_line_and_column() {
        fails("", 1, 1, "the file is empty, write `{}` at least or remove it");
        fails(" \n\t", 2, 2, "the file is empty, write `{}` at least or remove it");
        fails("{\n  \"a\": 1,\n  \"a\": 2\n}", 3, 3, "the key `a` is there twice, remove one");
        fails("{\n  \"ä\": nope\n}", 2, 8, "expected a value, found `n`");
        fails("{\"a\": 1,}", 1, 9, "expected a key in double quotes, found `}`");
        fails("[1 2]", 1, 4, "expected `,` or `]`, found `2`");
        fails("{\"a\" 1}", 1, 6, "expected `:`, found `1`");
        fails("{} {}", 1, 4, "expected the end of the file, found `{`");
        fails("// c\n{}", 1, 1, "expected a value, found `/`");
        fails("{\"a", 1, 2, "this text has no closing quote");
        fails("\"\\q\"", 1, 1, "this text has an escape or a character that JSON does not have");
        fails("\"\t\"", 1, 1, "this text has an escape or a character that JSON does not have");
        fails("01", 1, 1, "`01` is no number");
        fails("[", 1, 2, "expected a value, found the end of the file");
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = "[".repeat(100_000);
        fails(&deep, 1, 34, "nested deeper than 32 levels");
        let fits = format!("{}1{}", "[".repeat(32), "]".repeat(32));
        assert!(read(&fits).is_ok());
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(read("\u{feff}{}").map(|node| node.to_json()), Ok(serde_json::json!({})));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,200}") {
            let _outcome = read(&text).is_ok();
        }

        #[test]
        fn agrees_with_serde_json(text in "[\\[\\]{}\",:0-9a-e.\\\\ntruefalsE+-]{0,24}") {
            let ours = read(&text).map(|node| node.to_json());
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            match (ours, theirs) {
                (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs),
                (Err(fault), Ok(_)) => {
                    let duplicate = matches!(fault.problem, Problem::DuplicateKey { .. });
                    prop_assert!(duplicate, "{:?}", fault);
                }
                (Ok(_), Err(error)) => prop_assert!(false, "{}", error),
                (Err(_), Err(_)) => {}
            }
        }
    }
}
