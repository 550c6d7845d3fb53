//! A model of how macOS reads a profile, written from its text alone: the last statement that speaks about an operation
//! and a path counts.
//!
//! It fails on every form and every expression that it does not know.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use std::collections::HashMap;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

/// A profile as read.
#[derive(Debug)]
pub struct Evaluator {
    statements: Vec<Statement>,
}

#[derive(Debug)]
struct Statement {
    allows: bool,
    operations: Vec<String>,
    /// Conditions of which one must hold; none for a statement about everything.
    conditions: Vec<Condition>,
}

#[derive(Debug)]
enum Condition {
    Literal(String),
    Subpath(String),
    Regex(Regex),
    Any(Vec<Condition>),
    All(Vec<Condition>),
    Not(Box<Condition>),
    /// A condition on something other than a path; `(target same-sandbox)`.
    Other(String),
}

/// An expression of the text.
#[derive(Debug, Clone, PartialEq)]
enum Form {
    Word(String),
    Text(String),
    List(Vec<Form>),
}

impl Evaluator {
    /// Reads a profile.
    ///
    /// # Panics
    ///
    /// If it has anything that the model does not know.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut known = HashMap::new();
        let mut forms = forms(text).into_iter();
        assert_eq!(forms.next(), Some(list(&["version", "1"])));
        assert_eq!(forms.next(), Some(list(&["deny", "default"])));
        let statements = forms.map(|form| Statement::read(form, &mut known)).collect();
        Self { statements }
    }

    /// Returns true if a file operation on a path is allowed.
    #[must_use]
    pub fn allows(&self, operation: &str, path: &str) -> bool {
        let speaks = |statement: &&Statement| {
            statement.operations.iter().any(|own| covers(own, operation))
                && (statement.conditions.is_empty() || statement.conditions.iter().any(|one| one.holds(path)))
        };
        self.statements.iter().rev().find(speaks).is_some_and(|statement| statement.allows)
    }

    /// Returns the conditions, as text, under which an operation that is not about files is allowed.
    ///
    /// # Panics
    ///
    /// If a statement about it has a condition on paths, or denies.
    #[must_use]
    pub fn others(&self, operation: &str) -> Vec<String> {
        let speaking =
            self.statements.iter().filter(|one| one.operations.iter().any(|own| covers(own, operation)));
        let texts = speaking.flat_map(|statement| {
            assert!(statement.allows);
            statement.conditions.iter().map(|condition| match condition {
                Condition::Other(text) => text.clone(),
                _ => panic!("a path for {operation}"),
            })
        });
        texts.collect()
    }
}

fn covers(own: &str, operation: &str) -> bool {
    own.strip_suffix('*').map_or(own == operation, |start| operation.starts_with(start))
}

impl Statement {
    fn read(form: Form, known: &mut HashMap<String, Regex>) -> Self {
        let Form::List(parts) = form else { panic!("a statement is a list") };
        let allows = match &parts[0] {
            Form::Word(word) if word == "allow" => true,
            Form::Word(word) if word == "deny" => false,
            other => panic!("no effect: {other:?}"),
        };
        let mut operations = Vec::new();
        let mut conditions = Vec::new();
        for part in &parts[1..] {
            match part {
                Form::Word(word) if conditions.is_empty() => operations.push(word.clone()),
                Form::List(_) => conditions.push(Condition::read(part, known)),
                other => panic!("unexpected {other:?}"),
            }
        }
        assert!(!operations.is_empty());
        Self { allows, operations, conditions }
    }
}

impl Condition {
    fn read(form: &Form, known: &mut HashMap<String, Regex>) -> Self {
        let Form::List(parts) = form else { panic!("a condition is a list: {form:?}") };
        let Form::Word(name) = &parts[0] else { panic!("a condition has a name: {form:?}") };
        let mut inner = || parts[1..].iter().map(|part| Self::read(part, known)).collect::<Vec<_>>();
        match (name.as_str(), &parts[1..]) {
            ("literal", [Form::Text(path)]) => Self::Literal(path.clone()),
            ("subpath", [Form::Text(path)]) => Self::Subpath(path.clone()),
            ("regex", [Form::Text(text)]) => {
                let regex = known.entry(text.clone()).or_insert_with(|| regex(text));
                Self::Regex(regex.clone())
            }
            ("require-any", [_, _, ..]) => Self::Any(inner()),
            ("require-all", [_, _, ..]) => Self::All(inner()),
            ("require-not", [_]) => Self::Not(Box::new(inner().pop().unwrap())),
            ("target" | "global-name" | "remote", _) => Self::Other(format!("{form:?}")),
            _ => panic!("unknown condition {form:?}"),
        }
    }

    fn holds(&self, path: &str) -> bool {
        match self {
            Self::Literal(own) => own == path,
            Self::Subpath(own) => {
                own == "/"
                    || path
                        .strip_prefix(own.as_str())
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            Self::Regex(regex) => regex.is_match(path),
            Self::Any(parts) => parts.iter().any(|part| part.holds(path)),
            Self::All(parts) => parts.iter().all(|part| part.holds(path)),
            Self::Not(inner) => !inner.holds(path),
            Self::Other(_) => false,
        }
    }
}

/// Compiles an expression over bytes, after checking that it has only what all dialects read alike.
fn regex(text: &str) -> Regex {
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\\' => {
                let escaped = rest.next().unwrap();
                assert!("\\.^$*+?()[]{}|".contains(escaped), "`\\{escaped}` in {text}");
            }
            '[' => {
                if rest.peek() == Some(&'^') {
                    rest.next();
                }
                let inside: String = rest.by_ref().take_while(|character| *character != ']').collect();
                assert!(
                    !inside.is_empty() && !inside.contains(['[', '\\', '-', '^', ':']),
                    "[{inside}] in {text}"
                );
            }
            '.' | '{' | '}' | ']' => panic!("`{character}` in {text}"),
            '(' => assert!(!matches!(rest.peek(), Some('?' | '*' | '+' | '|' | ')')), "group in {text}"),
            '*' | '+' | '?' => assert!(!matches!(rest.peek(), Some('?' | '*' | '+')), "double in {text}"),
            _ => {}
        }
    }
    assert!(text.ends_with('$'), "it has no end: {text}");
    assert!(text.starts_with('^') || text.starts_with('/'), "it has no beginning: {text}");
    Regex::builder().syntax(syntax::Config::new().unicode(false).utf8(false)).build(text).unwrap()
}

fn list(words: &[&str]) -> Form {
    Form::List(words.iter().map(|word| Form::Word((*word).to_owned())).collect())
}

/// Splits a text into expressions.
fn forms(text: &str) -> Vec<Form> {
    let mut open: Vec<Vec<Form>> = vec![Vec::new()];
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            ';' => while rest.next_if(|next| *next != '\n').is_some() {},
            '(' => open.push(Vec::new()),
            ')' => {
                let done = open.pop().unwrap();
                open.last_mut().expect("balanced").push(Form::List(done));
            }
            '"' => open.last_mut().unwrap().push(Form::Text(string(&mut rest))),
            blank if blank.is_whitespace() => {}
            first => {
                let mut word = String::from(first);
                while let Some(next) = rest.next_if(|next| !next.is_whitespace() && !"()\";".contains(*next))
                {
                    word.push(next);
                }
                open.last_mut().unwrap().push(Form::Word(word));
            }
        }
    }
    assert_eq!(open.len(), 1, "every parenthesis is closed");
    open.pop().unwrap()
}

/// Reads a string after its first quotation mark.
fn string(rest: &mut impl Iterator<Item = char>) -> String {
    let mut text = String::new();
    loop {
        match rest.next().expect("it ends") {
            '"' => return text,
            '\\' => text.push(match rest.next().unwrap() {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                character @ ('"' | '\\') => character,
                other => panic!("`\\{other}` in a string"),
            }),
            character => text.push(character),
        }
    }
}

#[test]
fn the_last_statement_counts() {
    let profile = Evaluator::read(
        "(version 1)(deny default) ; a comment )\n(allow file-read* (subpath \"/a\"))\n\
         (deny file-read-data (require-all (regex \"^/a/(/|[^/])*$\") (require-not (literal \"/a/b\"))))",
    );
    for (operation, path, expected) in [
        ("file-read-data", "/a", true),
        ("file-read-data", "/a/b", true),
        ("file-read-data", "/a/c", false),
        ("file-read-metadata", "/a/c", true),
        ("file-read-data", "/ab", false),
        ("file-write-data", "/a", false),
    ] {
        assert_eq!(profile.allows(operation, path), expected, "{operation} {path}");
    }
}
