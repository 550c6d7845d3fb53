//! Names that must stay where they are, because a rule restricts something below them.
//!
//! A restriction is about a path. A command that could move a directory on the way to it would get at the file by
//! another path, or bring another file to this one.

use std::collections::BTreeSet;
use std::path::Path;

use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::{FileRight, FileRule};
use portcullis_decision::{Effect, RuleSet};

use crate::error::CompileError;
use crate::filter::Filter;
use crate::layers::{may_be_written, speaks};
use crate::pattern::{below, covers, covers_another_spelling, itself, text};
use crate::regex::Unprintable;
use crate::regions;

/// The conditions that protect the rules on paths.
pub(crate) struct Pins {
    /// Directories that are neither made nor moved.
    pub(crate) kept: Filter,
    /// Names that patterns restrict wherever commands could move a directory.
    pub(crate) unreadable_elsewhere: Filter,
    pub(crate) unwritable_elsewhere: Filter,
    /// Other spellings of restricted names.
    pub(crate) spellings: Filter,
}

/// Returns the pins of a rule set.
pub(crate) fn pins(rules: &RuleSet) -> Result<Pins, CompileError> {
    let base = rules.base();
    // What is in a region depends on where it begins.
    let mut kept: BTreeSet<&Path> = regions::tops(base).flat_map(Path::ancestors).collect();
    let mut patterns = Vec::new();
    let (mut unreadable, mut unwritable, mut spellings) = (Vec::new(), Vec::new(), Vec::new());
    for layer in rules.layers() {
        for rule in layer.profile.files.iter().filter(|rule| restricts(rule)) {
            let failed = |_| CompileError::of_rule(layer, rule);
            patterns.extend(on_the_way(&rule.pattern).map_err(failed)?);
            kept.extend(top(&rule.pattern).into_iter().flat_map(ancestors));
            if let FilePattern::Name { below, .. } = &rule.pattern {
                kept.insert(below);
            }
            let elsewhere = elsewhere(&rule.pattern).map_err(failed)?;
            if rule.rights.contains(FileRight::Read) {
                unreadable.push(elsewhere.clone());
            }
            unwritable.push(elsewhere);
            spellings.push(covers_another_spelling(&rule.pattern).map_err(failed)?);
        }
    }
    for path in kept.into_iter().filter(|path| *path != Path::new("/")) {
        let literal = text(path).map_err(|_| CompileError::Path { path: path.to_owned() })?;
        patterns.push(Filter::Literal(literal.to_owned()));
    }
    Ok(Pins {
        kept: Filter::any(patterns),
        unreadable_elsewhere: Filter::all([Filter::any(unreadable), may_be_written(rules)?]),
        unwritable_elsewhere: Filter::any(unwritable),
        spellings: Filter::any(spellings),
    })
}

/// Returns true if a rule restricts reading or writing.
fn restricts(rule: &FileRule) -> bool {
    rule.effect != Effect::Allow
        && [FileRight::Read, FileRight::Write].iter().any(|right| speaks(rule, *right))
}

/// Returns the path of a pattern from which on it applies, if it names one.
fn top(pattern: &FilePattern) -> Option<&Path> {
    match pattern {
        FilePattern::Exact(path) | FilePattern::Tree(path) | FilePattern::Name { below: path, .. } => {
            Some(path)
        }
        FilePattern::Glob(_) => None,
    }
}

/// Returns the conditions for the directories that a glob names on the way.
fn on_the_way(pattern: &FilePattern) -> Result<Vec<Filter>, Unprintable> {
    let FilePattern::Glob(glob) = pattern else { return Ok(Vec::new()) };
    let parts = GlobParts::split(glob.as_str()).ok_or(Unprintable)?;
    parts.prefixes().iter().map(|prefix| itself(&FilePattern::glob(prefix)?)).collect()
}

/// Returns the condition that a path has the name that a pattern restricts, outside of the directory in which it does.
fn elsewhere(pattern: &FilePattern) -> Result<Filter, Unprintable> {
    let (anywhere, area) = match pattern {
        FilePattern::Exact(_) | FilePattern::Tree(_) => return Ok(Filter::NEVER),
        FilePattern::Name { below: top, glob } => {
            let anywhere = FilePattern::Name { below: "/".into(), glob: glob.clone() };
            (covers(&anywhere)?, below(top)?)
        }
        FilePattern::Glob(glob) => {
            let parts = GlobParts::split(glob.as_str()).ok_or(Unprintable)?;
            let Some((anywhere, area)) = parts.anywhere() else { return Ok(Filter::NEVER) };
            let area = area.map_or(Ok(Filter::NEVER), |area| covers(&FilePattern::glob(&area)?))?;
            (covers(&FilePattern::glob(&anywhere)?)?, area)
        }
    };
    Ok(Filter::all([anywhere, Filter::not(area)]))
}

/// Returns the directories above a path.
fn ancestors(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors().skip(1).filter(|above| above.is_absolute())
}

/// A glob split at its slashes.
struct GlobParts<'a> {
    is_rooted: bool,
    parts: Vec<&'a str>,
    /// Whether it covers only what is below the last part.
    is_below: bool,
}

impl<'a> GlobParts<'a> {
    /// Splits a glob; `None` if a slash is inside braces or brackets, or escaped.
    fn split(glob: &'a str) -> Option<Self> {
        let mut parts: Vec<&str> = glob.split('/').collect();
        let is_whole = |part: &&str| {
            let count = |wanted: char| part.chars().filter(|character| *character == wanted).count();
            !part.ends_with('\\') && count('{') == count('}') && count('[') == count(']')
        };
        if parts.len() > 1 && !parts.iter().all(is_whole) {
            return None;
        }
        let is_below = glob.ends_with("/**");
        while parts.len() > 1 && parts.last().is_some_and(|part| matches!(*part, "**" | "")) {
            parts.pop();
        }
        let is_rooted = parts.first() == Some(&"");
        parts.retain(|part| !part.is_empty());
        Some(Self { is_rooted, parts, is_below })
    }

    /// Returns the place of the last part that stands for any directories and has a name after it.
    fn last_open(&self) -> Option<usize> {
        let last_name = self.parts.iter().rposition(|part| !is_open(part))?;
        self.parts.iter().take(last_name).rposition(|part| is_open(part))
    }

    /// Returns globs for the directories that are named on the way.
    fn prefixes(&self) -> Vec<String> {
        // The last part is on the way only if what it names is not covered itself.
        let shown = usize::from(!self.is_below);
        let tail = self.last_open().and_then(|open| self.parts.get(open + 1..));
        let top = match tail {
            None => self.parts.len().saturating_sub(shown),
            Some(_) => self.parts.iter().position(|part| is_open(part)).unwrap_or_default(),
        };
        let from_top = (1..=top).filter_map(|length| self.parts.get(..length));
        let from_top =
            from_top.map(|parts| format!("{}{}", if self.is_rooted { "/" } else { "**/" }, parts.join("/")));
        let tail = tail.unwrap_or_default();
        let in_tail = (1..=tail.len().saturating_sub(shown)).filter_map(|length| tail.get(..length));
        let in_tail = in_tail.map(|parts| format!("**/{}", parts.join("/")));
        from_top.chain(in_tail).collect()
    }

    /// Returns the glob for the names at the end anywhere, and one for the area in which the glob itself decides about
    /// them, if there is one; `None` if the glob applies anywhere, or to fixed directories.
    fn anywhere(&self) -> Option<(String, Option<String>)> {
        let open = self.last_open()?;
        let tail = self.parts.get(open + 1..)?.join("/");
        let top = self.parts.get(..self.parts.iter().position(|part| is_open(part))?)?;
        if top.is_empty() {
            return None;
        }
        let root = if self.is_rooted { "/" } else { "**/" };
        // With two open parts, or one for a single directory, the glob decides about a part of the area only.
        let is_whole = open == top.len() && self.parts.get(open) == Some(&"**");
        let area = is_whole.then(|| format!("{root}{}/**", top.join("/")));
        Some((format!("**/{tail}{}", if self.is_below { "/**" } else { "" }), area))
    }
}

/// Returns true if a part stands for any name, or any directories.
fn is_open(part: &str) -> bool {
    part.chars().all(|character| character == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_globs() {
        for (glob, prefixes, anywhere) in [
            ("*.pem", &[][..], None),
            ("**/*.pem", &[], None),
            ("/w/**/*.pem", &["/w"], Some(("**/*.pem", Some("/w/**")))),
            (
                "/w/**/.pi/extensions/**",
                &["/w", "**/.pi", "**/.pi/extensions"],
                Some(("**/.pi/extensions/**", Some("/w/**"))),
            ),
            ("/w/x/**", &["/w", "/w/x"], None),
            ("/w/*/*", &["/w", "/w/*"], None),
            ("/w/**/x/*", &["/w", "**/x"], Some(("**/x/*", Some("/w/**")))),
            ("a/b", &["**/a"], None),
            ("/w/*.pem", &["/w"], None),
            ("/w/*/k", &["/w"], Some(("**/k", None))),
            ("/w/x*/**/y/**/k", &["/w", "/w/x*"], Some(("**/k", None))),
        ] {
            let parts = GlobParts::split(glob).unwrap();
            assert_eq!(parts.prefixes(), prefixes, "{glob}");
            let expected = anywhere
                .map(|(anywhere, area): (&str, Option<&str>)| (anywhere.to_owned(), area.map(str::to_owned)));
            assert_eq!(parts.anywhere(), expected, "{glob}");
        }
        for glob in ["/w/{a/b,c}", "/w/a\\/b"] {
            assert!(GlobParts::split(glob).is_none(), "{glob}");
        }
        assert!(GlobParts::split("{a,b}.pem").is_some());
    }
}
