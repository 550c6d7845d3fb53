//! A value of a settings document, with its pointer and its file.

use std::collections::BTreeMap;
use std::path::Path;

use crate::check::bad_value;
use crate::entry::{Entry, Origin};
use crate::error::Problem;
use crate::fault::Fault;
use crate::json::{Member, Node, Value};
use crate::pointer::step;

/// An optional value, with its pointer and its file.
pub(crate) struct DocumentValue<'a> {
    /// The value; `None` if the document has none here.
    pub(crate) node: Option<&'a Node>,
    /// Its JSON pointer.
    pub(crate) pointer: String,
    /// The file that contains it.
    pub(crate) file: &'a Path,
}

impl<'a> DocumentValue<'a> {
    pub(crate) fn top(node: &'a Node, file: &'a Path) -> Self {
        Self { node: Some(node), pointer: String::new(), file }
    }

    pub(crate) fn child(&self, key: &str) -> Self {
        self.inside(key, self.node.and_then(|node| node.member(key)))
    }

    /// Returns a value inside this one. It can come from another file.
    fn inside(&self, key: &str, node: Option<&'a Node>) -> Self {
        match node.and_then(|node| node.home.as_ref()) {
            Some(home) => DocumentValue { node, pointer: home.pointer.clone(), file: &home.file },
            None => DocumentValue { node, pointer: step(&self.pointer, key), file: self.file },
        }
    }

    pub(crate) fn items(&self) -> Vec<Self> {
        let items = self.node.map(Node::items).unwrap_or_default();
        let place = |(index, node): (usize, &'a Node)| self.inside(&index.to_string(), Some(node));
        items.iter().enumerate().map(place).collect()
    }

    pub(crate) fn flag(&self, default: bool) -> bool {
        match self.node.map(|node| &node.value) {
            Some(Value::Bool(flag)) => *flag,
            _ => default,
        }
    }

    pub(crate) fn text(&self) -> Option<&'a str> {
        self.node.and_then(Node::text)
    }

    pub(crate) fn number(&self) -> Option<u32> {
        self.node.and_then(Node::number).and_then(|number| u32::try_from(number).ok())
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.items().iter().filter_map(DocumentValue::text).map(str::to_owned).collect()
    }

    pub(crate) fn text_map(&self) -> BTreeMap<String, String> {
        let members = self.node.map(Node::members).unwrap_or_default();
        let pair = |member: &Member| Some((member.key.clone(), member.node.text()?.to_owned()));
        members.iter().filter_map(pair).collect()
    }

    pub(crate) fn entry<T>(&self, value: T, text: &str) -> Entry<T> {
        Entry { value, text: text.to_owned(), origin: self.origin() }
    }

    pub(crate) fn origin(&self) -> Origin {
        let at = self.node.map(|node| node.at).unwrap_or_default();
        Origin { file: self.file.to_owned(), pointer: self.pointer.clone(), at }
    }

    /// Returns a fault for a value that passed the check but cannot be decoded. Such values are never skipped silently.
    pub(crate) fn fault(&self, reason: impl Into<String>) -> Fault {
        match self.node {
            Some(node) => bad_value(node, &self.pointer, reason),
            None => Fault {
                at: crate::position::Position::default(),
                pointer: self.pointer.clone(),
                problem: Problem::MissingKey { key: self.pointer.clone(), hint: "" },
            },
        }
    }
}
