//! Path patterns of rules as conditions.

use std::path::Path;

use portcullis_decision::pattern::{FilePattern, PathExpression};

use crate::filter::Filter;
use crate::regex::{ANYTHING, Case, Form, Unprintable, literal_text, printed};

/// The end of an expression for a path and everything below it.
const AND_BELOW: &str = "(/(/|[^/])*)?$";

/// Returns the condition that `pattern` covers a path.
pub(crate) fn covers(pattern: &FilePattern) -> Result<Filter, Unprintable> {
    match pattern {
        FilePattern::Exact(path) => Ok(Filter::Literal(text(path)?.to_owned())),
        FilePattern::Tree(path) => below(path),
        FilePattern::Glob(_) | FilePattern::Name { .. } => expressions(pattern, Case::Counts),
    }
}

/// Returns the condition that a path matches a glob itself, and is not below a match.
pub(crate) fn itself(pattern: &FilePattern) -> Result<Filter, Unprintable> {
    let whole = Form { within_name: false, case: Case::Counts };
    match pattern.expression() {
        PathExpression::Paths(paths) => {
            let first = paths.first().ok_or(Unprintable)?;
            Ok(printed(first, whole)?.map_or(Filter::NEVER, Filter::Regex))
        }
        PathExpression::Tree { top, .. } => Ok(printed(&top, whole)?.map_or(Filter::NEVER, Filter::Regex)),
        PathExpression::Name { .. } => Err(Unprintable),
    }
}

/// Returns the condition that a path is `top` or below it.
pub(crate) fn below(top: &Path) -> Result<Filter, Unprintable> {
    if top == Path::new("/") { Ok(Filter::ALWAYS) } else { Ok(Filter::Subpath(text(top)?.to_owned())) }
}

/// Returns the condition that `pattern` covers another spelling of a path, in letters of the other case.
pub(crate) fn covers_another_spelling(pattern: &FilePattern) -> Result<Filter, Unprintable> {
    let loose = match pattern {
        FilePattern::Exact(path) => literal(path, "$")?,
        FilePattern::Tree(path) => literal(path, AND_BELOW)?,
        FilePattern::Glob(_) | FilePattern::Name { .. } => expressions(pattern, Case::Ignored)?,
    };
    let exact = match pattern {
        FilePattern::Exact(_) | FilePattern::Tree(_) => covers(pattern)?,
        FilePattern::Glob(_) | FilePattern::Name { .. } => expressions(pattern, Case::Counts)?,
    };
    Ok(if has_letters(pattern) { Filter::all([loose, Filter::not(exact)]) } else { Filter::NEVER })
}

/// Returns the path as text.
pub(crate) fn text(path: &Path) -> Result<&str, Unprintable> {
    path.to_str().ok_or(Unprintable)
}

fn has_letters(pattern: &FilePattern) -> bool {
    pattern.to_string().contains(|character: char| character.is_ascii_alphabetic())
}

fn literal(path: &Path, end: &str) -> Result<Filter, Unprintable> {
    let path = if path == Path::new("/") { "" } else { text(path)? };
    Ok(Filter::Regex(format!("^{}{end}", literal_text(path, Case::Ignored))))
}

fn expressions(pattern: &FilePattern, case: Case) -> Result<Filter, Unprintable> {
    let whole = Form { within_name: false, case };
    match pattern.expression() {
        PathExpression::Paths(paths) => {
            let mut filters = Vec::new();
            for path in paths {
                filters.extend(printed(&path, whole)?.map(Filter::Regex));
            }
            Ok(Filter::any(filters))
        }
        PathExpression::Tree { top, covers_top, .. } => {
            let Some(top) = printed(&top, whole)? else { return Ok(Filter::NEVER) };
            let top = top.strip_suffix('$').ok_or(Unprintable)?;
            let end = if covers_top { AND_BELOW.to_owned() } else { format!("/{ANYTHING}$") };
            Ok(Filter::Regex(format!("{top}{end}")))
        }
        PathExpression::Name { below, name } => {
            let within = Form { within_name: true, case };
            let Some(name) = printed(&name, within)? else { return Ok(Filter::NEVER) };
            let name = name.strip_prefix('^').ok_or(Unprintable)?;
            let above = if below == Path::new("/") { "" } else { text(&below)? };
            Ok(Filter::Regex(format!("^{}/({ANYTHING}/)?{name}", literal_text(above, case))))
        }
    }
}
