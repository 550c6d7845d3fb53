//! The tables of names in `data`: one entry per line, fields separated by ` | `, sections in brackets.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::LazyLock;

const EXECUTED: &str = include_str!("../data/executed.txt");
const PROJECTS: &str = include_str!("../data/projects.txt");
const HARMLESS: &str = include_str!("../data/harmless.txt");
const HOME: &str = include_str!("../data/home.txt");
const HARMLESS_AT_HOME: &str = include_str!("../data/home_harmless.txt");

/// A line of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The id in brackets above it; empty in a table without sections.
    pub section: &'static str,
    /// The name, possibly with parent directories.
    pub name: &'static str,
    /// The fields after the name, as written.
    pub rest: &'static str,
}

/// Returns names at any depth of a project that the user's tools execute; the section is the id of the rule.
#[must_use]
pub fn executed() -> &'static [Entry] {
    static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| entries(EXECUTED));
    &ENTRIES
}

/// Returns names that make their directory a project of its own.
#[must_use]
pub fn projects() -> &'static [Entry] {
    static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| entries(PROJECTS));
    &ENTRIES
}

/// Returns dot names that may appear at the root of a project without a question.
#[must_use]
pub fn harmless() -> &'static [Entry] {
    static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| entries(HARMLESS));
    &ENTRIES
}

/// Returns names in a home directory from which programs are started.
#[must_use]
pub fn home() -> &'static [Entry] {
    static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| entries(HOME));
    &ENTRIES
}

/// Returns dot names in a home directory from which no program is started.
#[must_use]
pub fn harmless_at_home() -> &'static [Entry] {
    static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| entries(HARMLESS_AT_HOME));
    &ENTRIES
}

/// Parses a table. Empty lines and lines that begin with `# ` are skipped.
fn entries(table: &'static str) -> Vec<Entry> {
    let mut section = "";
    let mut entries = Vec::new();
    for line in table.lines() {
        if line.is_empty() || line == "#" || line.starts_with("# ") {
            continue;
        }
        if let Some(id) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = id;
            continue;
        }
        let (name, rest) = line.split_once(" | ").unwrap_or((line, ""));
        entries.push(Entry { section, name, rest });
    }
    entries
}

/// Returns true if `name` matches `pattern`: without regard to case, with at most one `*` for any characters.
pub(crate) fn is_like(name: &OsStr, pattern: &str) -> bool {
    let name = name.as_encoded_bytes();
    let Some((before, after)) = pattern.split_once('*') else {
        return name.eq_ignore_ascii_case(pattern.as_bytes());
    };
    let (before, after) = (before.as_bytes(), after.as_bytes());
    let Some(middle) = name.len().checked_sub(after.len()).filter(|middle| *middle >= before.len()) else {
        return false;
    };
    let begins = name.get(..before.len()).is_some_and(|name| name.eq_ignore_ascii_case(before));
    begins && name.get(middle..).is_some_and(|name| name.eq_ignore_ascii_case(after))
}

/// Returns true if the relative `path` matches `pattern`, or is below a match.
pub(crate) fn is_below(path: &Path, pattern: &str) -> bool {
    let mut names = path.iter();
    pattern.split('/').all(|wanted| names.next().is_some_and(|name| is_like(name, wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_all_its_fields_and_stands_once() {
        for (table, fields) in
            [(executed(), 3), (projects(), 1), (harmless(), 1), (home(), 3), (harmless_at_home(), 1)]
        {
            assert!(table.len() > 20);
            for entry in table {
                let rest: Vec<&str> = entry.rest.split(" | ").collect();
                assert_eq!(rest.len(), fields, "{entry:?}");
                assert!(rest.iter().all(|field| !field.trim().is_empty()), "{entry:?}");
                assert!(entry.name.matches('*').count() <= 1 && !entry.name.starts_with('/'), "{entry:?}");
            }
            let mut names: Vec<String> = table.iter().map(|entry| entry.name.to_lowercase()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.len());
        }
    }

    #[test]
    fn patterns() {
        for (name, pattern, expected) in [
            (".Tmp123", ".tmp*", true),
            (".tm", ".tmp*", false),
            ("a.code-workspace", "*.code-workspace", true),
            (".code-workspace", "*.code-workspace", true),
            ("code-workspace", "*.code-workspace", false),
            (".x.swp", ".*.swp", true),
            // The parts before and after the star must not overlap.
            (".swp", ".*.swp", false),
            (".dockerignore", ".*ignore", true),
        ] {
            assert_eq!(is_like(OsStr::new(name), pattern), expected, "{name} {pattern}");
        }
        assert!(
            is_below(Path::new(".yarn/cache/x"), ".yarn/cache")
                && !is_below(Path::new(".yarn"), ".yarn/cache")
        );
        assert!(is_below(Path::new(".changeset/a.md"), ".changeset/*.md"));
    }
}
