//! Literal path rules by component, so that a look-up costs as much as the path is deep.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::RuleRef;
use crate::path_text::names;

#[derive(Debug)]
pub(super) struct Trie {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    children: HashMap<OsString, usize>,
    exact: Vec<RuleRef>,
    tree: Vec<RuleRef>,
}

impl Default for Trie {
    fn default() -> Self {
        Self { nodes: vec![Node::default()] }
    }
}

impl Trie {
    pub(super) fn insert_exact(&mut self, path: &Path, rule: RuleRef) {
        if let Some(node) = self.node(path) {
            node.exact.push(rule);
        }
    }

    pub(super) fn insert_tree(&mut self, path: &Path, rule: RuleRef) {
        if let Some(node) = self.node(path) {
            node.tree.push(rule);
        }
    }

    /// Calls `found` for every rule whose literal pattern covers `path`.
    pub(super) fn visit(&self, path: &Path, found: &mut impl FnMut(RuleRef)) {
        let mut node = self.nodes.first();
        let mut rest = names(path);
        while let Some(here) = node {
            here.tree.iter().copied().for_each(&mut *found);
            let Some(name) = rest.next() else {
                here.exact.iter().copied().for_each(&mut *found);
                return;
            };
            node = here.children.get(name).and_then(|index| self.nodes.get(*index));
        }
    }

    fn node(&mut self, path: &Path) -> Option<&mut Node> {
        let mut at = 0;
        for name in names(path) {
            at = self.child(at, name)?;
        }
        self.nodes.get_mut(at)
    }

    fn child(&mut self, parent: usize, name: &OsStr) -> Option<usize> {
        let next = self.nodes.len();
        let node = self.nodes.get_mut(parent)?;
        if let Some(known) = node.children.get(name) {
            return Some(*known);
        }
        node.children.insert(name.to_owned(), next);
        self.nodes.push(Node::default());
        Some(next)
    }
}
