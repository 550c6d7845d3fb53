//! Path patterns split into one step per component, so that many of them can be followed at once.
//!
//! A step matches what `globset` matches for the same text; a test compares the two.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::FilePattern;
use crate::path_text::names;

/// A requirement on one component of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ComponentPattern {
    /// This name.
    Name(OsString),
    /// A name that matches this form.
    Like(NameForm),
    /// Any number of components, including none.
    Anything,
}

/// The paths that are covered once all steps are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cover {
    /// The path itself.
    Path,
    /// The path and everything below it.
    Tree,
}

/// A pattern as steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) steps: Vec<ComponentPattern>,
    pub(crate) cover: Cover,
}

/// A wildcard over names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameForm(Vec<Token>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Byte(u8),
    One,
    Many,
}

impl Steps {
    /// Splits a pattern; `None` for patterns with alternatives or classes, which need a matcher of their own.
    pub(crate) fn split(pattern: &FilePattern) -> Option<Self> {
        match pattern {
            FilePattern::Exact(path) => Some(Self { steps: literal(path), cover: Cover::Path }),
            FilePattern::Tree(path) => Some(Self { steps: literal(path), cover: Cover::Tree }),
            FilePattern::Glob(glob) => of_glob(glob.as_str()),
            FilePattern::Name { below, glob } => {
                let form = component(glob.as_str())?;
                let mut steps = literal(below);
                steps.extend([ComponentPattern::Anything, form]);
                (!matches!(steps.last(), Some(ComponentPattern::Anything)))
                    .then_some(Self { steps, cover: Cover::Path })
            }
        }
    }

    /// Returns true if a path below `directory`, or `directory` itself, can be covered.
    pub(crate) fn can_reach_below(&self, directory: &Path) -> bool {
        !self.reached(directory).is_empty()
    }

    /// Returns true if every name that can be covered below `directory` is covered below `other` as well; also if
    /// `directory` itself is covered, which includes its names.
    pub(crate) fn reaches_alike_below(&self, directory: &Path, other: &Path) -> bool {
        let (here, there) = (self.reached(directory), self.reached(other));
        here.contains(&self.steps.len()) || here.iter().all(|position| there.contains(position))
    }

    /// Returns the possible numbers of steps taken at `directory`; all of them once a tree is covered.
    fn reached(&self, directory: &Path) -> Vec<usize> {
        let mut positions = vec![0];
        self.spread(&mut positions);
        for name in names(directory) {
            if self.cover == Cover::Tree && positions.contains(&self.steps.len()) {
                return (0..=self.steps.len()).collect();
            }
            let mut next = Vec::new();
            for position in positions {
                match self.steps.get(position) {
                    Some(ComponentPattern::Anything) => next.push(position),
                    Some(step) if step.takes(name) => next.push(position + 1),
                    Some(_) | None => {}
                }
            }
            self.spread(&mut next);
            positions = next;
        }
        positions
    }

    /// Adds the positions that are reached without a further component.
    fn spread(&self, positions: &mut Vec<usize>) {
        let mut at = 0;
        while let Some(position) = positions.get(at).copied() {
            if matches!(self.steps.get(position), Some(ComponentPattern::Anything))
                && !positions.contains(&(position + 1))
            {
                positions.push(position + 1);
            }
            at += 1;
        }
    }
}

impl ComponentPattern {
    pub(crate) fn takes(&self, name: &OsStr) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Like(form) => form.matches(name),
            Self::Anything => true,
        }
    }
}

impl ComponentPattern {
    fn takes_nothing(&self) -> bool {
        match self {
            Self::Name(_) => false,
            Self::Like(form) => form.0.iter().all(|token| *token == Token::Many),
            Self::Anything => true,
        }
    }
}

fn literal(path: &Path) -> Vec<ComponentPattern> {
    names(path).map(|name| ComponentPattern::Name(name.to_owned())).collect()
}

fn of_glob(text: &str) -> Option<Steps> {
    // An escaped slash looks like a part of one name, but separates two for the kernel.
    if text.contains("\\/") {
        return None;
    }
    let is_below = text.ends_with("/**");
    let trimmed = text.trim_end_matches("/**").trim_end_matches('/');
    let (rooted, rest) = match trimmed.strip_prefix('/') {
        Some(rest) => (true, rest),
        None => (trimmed.starts_with("**"), trimmed),
    };
    let mut steps = if rooted { Vec::new() } else { vec![ComponentPattern::Anything] };
    for part in rest.split('/') {
        steps.push(component(part)?);
    }
    // `globset` lets `*` match the empty text before the first slash, where there is no component.
    let first = steps.iter().find(|step| **step != ComponentPattern::Anything);
    if steps.first() == Some(&ComponentPattern::Anything)
        && first.is_some_and(ComponentPattern::takes_nothing)
    {
        return None;
    }
    let only_anything = steps.iter().all(|step| *step == ComponentPattern::Anything);
    let open_end = matches!(steps.last(), Some(ComponentPattern::Anything));
    if (is_below || open_end) && !only_anything {
        // `a/**` matches paths below `a`, but not `a` itself.
        steps.push(ComponentPattern::Like(NameForm(vec![Token::Many])));
    } else if is_below {
        return None;
    }
    Some(Steps { steps, cover: Cover::Tree })
}

fn component(text: &str) -> Option<ComponentPattern> {
    if text == "**" {
        return Some(ComponentPattern::Anything);
    }
    if text.is_empty() || text.contains('/') {
        return None;
    }
    let mut tokens = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        tokens.push(match byte {
            b'\\' => Token::Byte(bytes.next()?),
            b'[' | b'{' | b'}' => return None,
            b'?' => Token::One,
            // `globset` gives two stars in a row another meaning in some positions.
            b'*' if tokens.last() == Some(&Token::Many) => return None,
            b'*' => Token::Many,
            byte => Token::Byte(byte),
        });
    }
    let plain: Option<Vec<u8>> = tokens
        .iter()
        .map(|token| match token {
            Token::Byte(byte) => Some(*byte),
            Token::One | Token::Many => None,
        })
        .collect();
    Some(match plain {
        Some(name) => ComponentPattern::Name(OsString::from(String::from_utf8(name).ok()?)),
        None => ComponentPattern::Like(NameForm(tokens)),
    })
}

impl NameForm {
    /// Returns true if the whole `name` matches this form.
    pub(crate) fn matches(&self, name: &OsStr) -> bool {
        let (tokens, name) = (&self.0, name.as_encoded_bytes());
        let (mut at, mut here) = (0, 0);
        // Where to continue if the last `*` has to take one more byte.
        let mut star: Option<(usize, usize)> = None;
        while here < name.len() {
            match tokens.get(at) {
                Some(Token::Many) => {
                    star = Some((at + 1, here));
                    at += 1;
                }
                Some(Token::One) => (at, here) = (at + 1, here + 1),
                Some(Token::Byte(byte)) if Some(byte) == name.get(here) => (at, here) = (at + 1, here + 1),
                Some(Token::Byte(_)) | None => match star {
                    Some((after, taken)) => {
                        star = Some((after, taken + 1));
                        (at, here) = (after, taken + 1);
                    }
                    None => return false,
                },
            }
        }
        tokens.get(at..).is_some_and(|rest| rest.iter().all(|token| *token == Token::Many))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(glob: &str, directory: &str) -> bool {
        let pattern = FilePattern::glob(glob).unwrap();
        Steps::split(&pattern).expect("steps").can_reach_below(Path::new(directory))
    }

    #[test]
    fn what_can_still_match_is_known() {
        assert!(below("*.pem", "/tmp"));
        assert!(below("/p/**/.pi/extensions", "/p/sub"));
        assert!(!below("/p/**/.pi/extensions", "/tmp"));
        assert!(below("/tmp/x/*", "/tmp"));
        assert!(below("/tmp", "/tmp/deep"));
    }

    #[test]
    fn alternatives_are_left_to_a_matcher() {
        for glob in ["{a,b}", "[ab]", "a**b", "a\\/b"] {
            assert_eq!(Steps::split(&FilePattern::glob(glob).unwrap()), None, "{glob}");
        }
    }
}
