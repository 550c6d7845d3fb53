//! Finds names by a glob, as fd does.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use globset::GlobBuilder;
use portcullis_decision::pattern::check_glob_size;
use portcullis_decision::request::PathKind;
use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::FileError;
use crate::search::{FindQuery, Flow, FoundName, SearchEnd, SearchError, SearchGuard};
use crate::system::located::Located;
use crate::system::read::require_ordinary;
use crate::system::walk::{Visitor, Walk, WalkedName};

/// Passes each name below `located` that matches the query to `tell`.
pub(crate) fn names(
    walk: Walk<'_>,
    located: &Located,
    query: &FindQuery,
    tell: &mut dyn FnMut(&FoundName<'_>) -> Flow,
) -> Result<SearchEnd, SearchError> {
    let not_a_directory = || FileError::NotADirectory { path: located.text.clone() };
    let start = located.file().filter(|_| located.kind == PathKind::Directory).ok_or_else(not_a_directory)?;
    require_ordinary(located, start)?;
    let regex = regex(&anywhere(&query.glob))?;
    let named = query.glob.contains('/').then_some(query.named.as_path());
    let mut finder = Finder { regex, named, guard: walk.guard, tell };
    walk.run(located, start, &mut finder)
}

struct Finder<'a> {
    regex: Regex,
    /// The prefix of whole paths; `None` if only the last name is matched.
    named: Option<&'a Path>,
    guard: &'a dyn SearchGuard,
    tell: &'a mut dyn FnMut(&FoundName<'_>) -> Flow,
}

impl Visitor for Finder<'_> {
    fn wants(&self, _path: &Path, _is_directory: bool) -> Option<bool> {
        None
    }

    fn visit(&mut self, step: &WalkedName<'_>, _end: &mut SearchEnd) -> Result<Flow, SearchError> {
        let whole: PathBuf;
        let text = match self.named {
            Some(named) => {
                whole = named.join(step.relative);
                whole.as_os_str()
            }
            None => step.name,
        };
        if !self.regex.is_match(text.as_bytes()) || !self.guard.may_show(step.path, step.kind) {
            return Ok(Flow::Continue);
        }
        Ok((self.tell)(&FoundName { relative: step.relative, kind: step.kind }))
    }
}

/// Makes a glob with a slash match below any directory, unless it starts with `/` or `**/`.
fn anywhere(glob: &str) -> Cow<'_, str> {
    if glob.contains('/') && !glob.starts_with('/') && !glob.starts_with("**/") {
        Cow::Owned(format!("**/{glob}"))
    } else {
        Cow::Borrowed(glob)
    }
}

/// Compiles a glob. It is case-sensitive only if it contains an upper-case letter.
fn regex(glob: &str) -> Result<Regex, SearchError> {
    check_glob_size(glob).map_err(|error| SearchError::Glob(error.to_string()))?;
    let glob = GlobBuilder::new(glob).literal_separator(true).build();
    let glob = glob.map_err(|error| SearchError::Glob(error.to_string()))?;
    let pattern = glob.regex();
    let parsed = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern);
    let has_upper_case = parsed.is_ok_and(|hir| has_upper_case(&hir));
    Regex::builder()
        .syntax(
            syntax::Config::new().case_insensitive(!has_upper_case).dot_matches_new_line(true).utf8(false),
        )
        .configure(Config::new().utf8_empty(false))
        .build(pattern)
        .map_err(|error| SearchError::Glob(error.to_string()))
}

fn has_upper_case(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => text.chars().any(char::is_uppercase),
            Err(_) => literal.0.iter().any(|byte| char::from(*byte).is_uppercase()),
        },
        HirKind::Class(Class::Unicode(class)) => {
            class.iter().any(|range| range.start().is_uppercase() || range.end().is_uppercase())
        }
        HirKind::Class(Class::Bytes(class)) => class
            .iter()
            .any(|range| char::from(range.start()).is_uppercase() || char::from(range.end()).is_uppercase()),
        HirKind::Capture(capture) => has_upper_case(&capture.sub),
        HirKind::Repetition(repetition) => has_upper_case(&repetition.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(has_upper_case),
        HirKind::Empty | HirKind::Look(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(glob: &str, name: &str, expected: bool) {
        let regex = regex(glob).expect("a glob");
        assert_eq!(regex.is_match(name.as_bytes()), expected, "{glob} {name}");
    }

    #[test]
    fn globs_match_as_fd_has_them() {
        check("*.ts", "a.ts", true);
        check("*.ts", "A.TS", true);
        check("*.Ts", "a.ts", false);
        check("*.{a,b}", "x.b", true);
        check("**/src/*.ts", "/w/src/a.ts", true);
        check("**/src/*.ts", "/w/src/b/a.ts", false);
        check("a*", "a\nb", true);
        check("[a-z]?", "k1", true);
        check("", "x", false);
    }

    /// The glob parser recurses: without the size check this overflows the stack and ends the host.
    #[test]
    fn a_glob_that_is_nested_without_end_is_refused() {
        let error = regex(&"{".repeat(1_000_000)).expect_err("too long").to_string();
        assert!(error.contains("1000000 bytes is too long"), "{error}");
        let nested = format!("{}a{}", "{".repeat(200), "}".repeat(200));
        let error = regex(&nested).expect_err("too deep").to_string();
        assert!(error.contains("nested deeper than 16"), "{error}");
    }

    #[test]
    fn a_glob_that_makes_no_sense_is_named() {
        let error = regex("[a").expect_err("no glob").to_string();
        assert_eq!(error, "error parsing glob '[a': unclosed character class; missing ']'");
    }
}
