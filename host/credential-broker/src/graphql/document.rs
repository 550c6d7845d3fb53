//! The fields that the operations of a document ask for (GraphQL, October 2021, 2.2 to 2.8).

use std::collections::{BTreeMap, BTreeSet};

use portcullis_decision::pattern::OperationKind;

use super::tokens::{Token, tokens};

/// The deepest nesting of fragments without a name.
const DEPTH_MAX: usize = 32;

/// A field of an operation, or a fragment that has such fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Selected<'a> {
    Field(&'a str),
    Fragment(&'a str),
}

/// Returns the fields of all operations, with the kind of each operation. A field inside another one is no operation.
pub(super) fn fields(text: &str) -> Result<BTreeSet<(OperationKind, &str)>, String> {
    let mut reader = Reader { tokens: tokens(text)?, at: 0 };
    let mut operations = Vec::new();
    let mut fragments = BTreeMap::new();
    while reader.at < reader.tokens.len() {
        match reader.next() {
            Some(Token::Punctuation(b'{')) => {
                operations.push((OperationKind::Query, reader.selections(DEPTH_MAX)?));
            }
            Some(Token::Name("fragment")) => {
                let (name, selected) = reader.fragment()?;
                if fragments.insert(name, selected).is_some() {
                    return Err("two fragments of its document have one name".to_owned());
                }
            }
            Some(Token::Name(word)) => {
                let kind = OperationKind::parse(word).ok_or_else(unknown)?;
                operations.push((kind, reader.operation()?));
            }
            _ => return Err(unknown()),
        }
    }
    if operations.is_empty() {
        return Err("its document has no operation".to_owned());
    }
    let mut fields = BTreeSet::new();
    // All operations of a kind at once, so that a fragment is looked at once and not for each operation that uses it.
    for (kind, selected) in by_kind(operations) {
        let all = resolved(selected, &fragments)?;
        fields.extend(all.into_iter().map(|field| (kind, field)));
    }
    Ok(fields)
}

fn by_kind(
    operations: Vec<(OperationKind, Vec<Selected<'_>>)>,
) -> BTreeMap<OperationKind, Vec<Selected<'_>>> {
    let mut kinds: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (kind, selected) in operations {
        kinds.entry(kind).or_default().extend(selected);
    }
    kinds
}

/// Puts the fields of fragments in place of their names.
fn resolved<'a>(
    mut open: Vec<Selected<'a>>,
    fragments: &BTreeMap<&'a str, Vec<Selected<'a>>>,
) -> Result<BTreeSet<&'a str>, String> {
    let (mut fields, mut used) = (BTreeSet::new(), BTreeSet::new());
    while let Some(selected) = open.pop() {
        match selected {
            Selected::Field(field) => {
                fields.insert(field);
            }
            Selected::Fragment(name) => {
                let found =
                    fragments.get(name).ok_or("its document uses a fragment that it does not have")?;
                if used.insert(name) {
                    open.extend(found);
                }
            }
        }
    }
    Ok(fields)
}

fn unknown() -> String {
    "its document is not one of operations and fragments".to_owned()
}

struct Reader<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn takes(&mut self, token: Token<'_>) -> bool {
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    fn name(&mut self) -> Result<&'a str, String> {
        match self.next() {
            Some(Token::Name(name)) => Ok(name),
            _ => Err(unknown()),
        }
    }

    /// Reads an operation after its kind.
    fn operation(&mut self) -> Result<Vec<Selected<'a>>, String> {
        if matches!(self.peek(), Some(Token::Name(_))) {
            self.at += 1;
        }
        self.arguments()?;
        self.directives()?;
        self.selection_set(DEPTH_MAX)
    }

    /// Reads a fragment after the word `fragment`: its name and its selections.
    fn fragment(&mut self) -> Result<(&'a str, Vec<Selected<'a>>), String> {
        let name = self.name()?;
        if name == "on" || self.name()? != "on" {
            return Err(unknown());
        }
        self.name()?;
        self.directives()?;
        Ok((name, self.selection_set(DEPTH_MAX)?))
    }

    fn selection_set(&mut self, depth: usize) -> Result<Vec<Selected<'a>>, String> {
        if self.takes(Token::Punctuation(b'{')) { self.selections(depth) } else { Err(unknown()) }
    }

    /// Reads selections after `{`, and the `}` behind them.
    fn selections(&mut self, depth: usize) -> Result<Vec<Selected<'a>>, String> {
        let deeper = depth.checked_sub(1).ok_or("its document nests fragments too deeply")?;
        let mut selected = Vec::new();
        while !self.takes(Token::Punctuation(b'}')) {
            if !self.takes(Token::Spread) {
                selected.push(Selected::Field(self.field()?));
                continue;
            }
            match self.peek() {
                Some(Token::Name(name)) if name != "on" => {
                    self.at += 1;
                    self.directives()?;
                    selected.push(Selected::Fragment(name));
                    continue;
                }
                Some(Token::Name(_)) => {
                    self.at += 1;
                    self.name()?;
                }
                _ => {}
            }
            self.directives()?;
            selected.extend(self.selection_set(deeper)?);
        }
        if selected.is_empty() { Err(unknown()) } else { Ok(selected) }
    }

    /// Reads a field with everything inside it, and returns the name that the server knows, not its alias.
    fn field(&mut self) -> Result<&'a str, String> {
        let mut name = self.name()?;
        if self.takes(Token::Punctuation(b':')) {
            name = self.name()?;
        }
        self.arguments()?;
        self.directives()?;
        if self.takes(Token::Punctuation(b'{')) {
            self.skip_to(b'}')?;
        }
        Ok(name)
    }

    fn directives(&mut self) -> Result<(), String> {
        while self.takes(Token::Punctuation(b'@')) {
            self.name()?;
            self.arguments()?;
        }
        Ok(())
    }

    fn arguments(&mut self) -> Result<(), String> {
        if self.takes(Token::Punctuation(b'(')) { self.skip_to(b')') } else { Ok(()) }
    }

    /// Skips everything up to the bracket that closes one that was read.
    fn skip_to(&mut self, close: u8) -> Result<(), String> {
        let mut awaited = vec![close];
        while let Some(last) = awaited.last().copied() {
            match self.next().ok_or_else(unknown)? {
                Token::Punctuation(b'(') => awaited.push(b')'),
                Token::Punctuation(b'[') => awaited.push(b']'),
                Token::Punctuation(b'{') => awaited.push(b'}'),
                Token::Punctuation(token @ (b')' | b']' | b'}')) => {
                    if token != last {
                        return Err(unknown());
                    }
                    awaited.pop();
                }
                Token::Name(_) | Token::Punctuation(_) | Token::Spread | Token::Value => {}
            }
        }
        Ok(())
    }
}
