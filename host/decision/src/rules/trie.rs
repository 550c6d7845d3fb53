//! All rule patterns in one tree, so that a lookup costs as much as the path is deep, however many rules there are.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use super::ruling::RuleRef;
use crate::path_text::names;
use crate::pattern::steps::{ComponentPattern, Cover, NameForm, Steps};

#[derive(Debug)]
pub(super) struct Trie {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    names: HashMap<OsString, usize>,
    like: Vec<(NameForm, usize)>,
    /// The node after any number of components.
    anything: Option<usize>,
    /// Whether it is such a node: it stays reached by every further component.
    stays: bool,
    exact: Vec<RuleRef>,
    tree: Vec<RuleRef>,
}

/// The state of the rules after a path: their answers below it depend on nothing else.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Standing {
    reached: Vec<usize>,
    covering: Vec<RuleRef>,
}

impl Default for Trie {
    fn default() -> Self {
        Self { nodes: vec![Node::default()] }
    }
}

impl Trie {
    pub(super) fn insert(&mut self, steps: Steps, rule: RuleRef) {
        let Steps { steps, cover } = steps;
        let end = steps.into_iter().fold(0, |at, step| self.child(at, step));
        if let Some(node) = self.nodes.get_mut(end) {
            match cover {
                Cover::Path => node.exact.push(rule),
                Cover::Tree => node.tree.push(rule),
            }
        }
    }

    /// Calls `found` for every rule whose pattern covers `path`, for some more than once.
    pub(super) fn visit(&self, path: &Path, found: &mut impl FnMut(RuleRef)) {
        for node in self.follow(path, found) {
            self.nodes.get(node).into_iter().flat_map(|node| &node.exact).copied().for_each(&mut *found);
        }
    }

    /// Returns the state of the rules after `directory`.
    pub(super) fn standing(&self, directory: &Path) -> Standing {
        let mut covering = Vec::new();
        let mut reached = self.follow(directory, &mut |rule| covering.push(rule));
        reached.sort_unstable();
        covering.sort_unstable_by_key(|rule| (rule.layer, rule.rule));
        covering.dedup();
        Standing { reached, covering }
    }

    /// Follows a path through all patterns at once; returns the nodes at its end.
    fn follow(&self, path: &Path, found: &mut impl FnMut(RuleRef)) -> Vec<usize> {
        let mut reached = Vec::with_capacity(8);
        self.reach(0, &mut reached, found);
        let mut next = Vec::with_capacity(8);
        for name in names(path) {
            for index in reached.drain(..) {
                let Some(node) = self.nodes.get(index) else { continue };
                if node.stays {
                    self.reach(index, &mut next, found);
                }
                if let Some(child) = node.names.get(name) {
                    self.reach(*child, &mut next, found);
                }
                for (_, child) in node.like.iter().filter(|(form, _)| form.matches(name)) {
                    self.reach(*child, &mut next, found);
                }
            }
            std::mem::swap(&mut reached, &mut next);
            if reached.is_empty() {
                break;
            }
        }
        reached
    }

    fn reach(&self, index: usize, reached: &mut Vec<usize>, found: &mut impl FnMut(RuleRef)) {
        let Some(node) = self.nodes.get(index) else { return };
        if reached.contains(&index) {
            return;
        }
        reached.push(index);
        node.tree.iter().copied().for_each(&mut *found);
        if let Some(anything) = node.anything {
            self.reach(anything, reached, found);
        }
    }

    fn child(&mut self, parent: usize, step: ComponentPattern) -> usize {
        let new = self.nodes.len();
        let Some(node) = self.nodes.get_mut(parent) else { return parent };
        let (child, stays) = match step {
            ComponentPattern::Name(name) => (*node.names.entry(name).or_insert(new), false),
            ComponentPattern::Like(form) => match node.like.iter().find(|(known, _)| *known == form) {
                Some((_, known)) => (*known, false),
                None => {
                    node.like.push((form, new));
                    (new, false)
                }
            },
            // Two in a row equal one.
            ComponentPattern::Anything if node.stays => return parent,
            ComponentPattern::Anything => (*node.anything.get_or_insert(new), true),
        };
        if child == new {
            self.nodes.push(Node { stays, ..Node::default() });
        }
        child
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pattern::FilePattern;

    fn covered(pattern: &FilePattern, path: &Path) -> Option<bool> {
        let mut trie = Trie::default();
        trie.insert(Steps::split(pattern)?, RuleRef { layer: 0, rule: 0 });
        let mut found = false;
        trie.visit(path, &mut |_| found = true);
        Some(found)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Tools and commands use different matchers for the same rules.
        #[test]
        fn the_tree_says_what_the_matcher_says(
            parts in prop::collection::vec("(\\*\\*|[ab*?]{1,3}|\\.git|a)", 1..5),
            rooted in any::<bool>(),
            ending in "(|/|/\\*\\*)",
            path in prop::collection::vec("([ab]{1,3}|\\.git)", 1..6),
        ) {
            let text = format!("{}{}{ending}", if rooted { "/" } else { "" }, parts.join("/"));
            let path = Path::new("/").join(path.join("/"));
            let Ok(pattern) = FilePattern::glob(&text) else { return Ok(()) };
            if let Some(covered) = covered(&pattern, &path) {
                prop_assert_eq!(covered, pattern.matcher().matches(&path), "{} on {:?}", pattern, path);
            }
        }
    }

    #[test]
    fn names_below_a_directory_and_literal_paths() {
        for (pattern, path, expected) in [
            (FilePattern::name("/p", "*.pem").unwrap(), "/p/a/x.pem", true),
            (FilePattern::name("/p", "*.pem").unwrap(), "/p/x.pem/y", false),
            (FilePattern::name("/p", "p").unwrap(), "/p", false),
            (FilePattern::tree("/p").unwrap(), "/p/a/b", true),
            (FilePattern::tree("/p").unwrap(), "/pp", false),
            (FilePattern::exact("/p").unwrap(), "/p/a", false),
            (FilePattern::glob("/a\\[b/**/.x").unwrap(), "/a[b/c/.x/y", true),
        ] {
            assert_eq!(covered(&pattern, Path::new(path)), Some(expected), "{pattern} on {path}");
            assert_eq!(pattern.matcher().matches(Path::new(path)), expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn a_directory_stands_as_its_neighbour_unless_a_pattern_has_begun_in_it() {
        let mut trie = Trie::default();
        let hooks = FilePattern::glob("/p/**/.git/hooks").unwrap();
        trie.insert(Steps::split(&hooks).expect("steps"), RuleRef { layer: 0, rule: 0 });
        let standing = |path: &str| trie.standing(Path::new(path));
        assert_eq!(standing("/p/a/b"), standing("/p/c"));
        assert_ne!(standing("/p/a/.git"), standing("/p/a/git"));
        assert_ne!(standing("/p/a"), standing("/tmp/a"));
    }
}
