//! Names of git references, and patterns over them.

use super::http::segments_match;

/// The longest name, in bytes; git's own limit is that of a path.
const NAME_MAX: usize = 1024;

/// The name of a reference, in the form that git takes (git-check-ref-format(1)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefName(Vec<String>);

/// A pattern over names of references, such as `refs/heads/agent/*`.
///
/// `*` and `?` stand for characters of one part, and the part `**` stands for any number of parts.
///
/// ```
/// use portcullis_decision::pattern::{RefName, RefPattern};
/// let pattern = RefPattern::parse("refs/heads/agent/*").unwrap();
/// assert!(pattern.matches(&RefName::parse("refs/heads/agent/fix").unwrap()));
/// assert!(!pattern.matches(&RefName::parse("refs/heads/main").unwrap()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefPattern(Vec<String>);

impl RefName {
    /// Parses a name; `None` if git does not take it, or if it is not below `refs/`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let forbidden = ['~', '^', ':', '?', '*', '[', '\\', ' '];
        let is_bad_part = |part: &str| {
            part.is_empty() || part.starts_with('.') || part.ends_with(".lock") || part.ends_with('.')
        };
        let is_one = text.len() <= NAME_MAX
            && text.starts_with("refs/")
            && !text.contains("..")
            && !text.contains("@{")
            && !text.contains(forbidden)
            && !text.chars().any(char::is_control)
            && !text.split('/').any(is_bad_part);
        is_one.then(|| Self(text.split('/').map(str::to_owned).collect()))
    }
}

impl std::fmt::Display for RefName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0.join("/"))
    }
}

impl RefPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// When the text has another form; the error says what is wrong.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let concrete = text.replace(['*', '?'], "a");
        if RefName::parse(&concrete).is_none() {
            return Err("write the full name, such as `refs/heads/agent/*`");
        }
        Ok(Self(text.split('/').map(str::to_owned).collect()))
    }

    /// Returns true if the pattern covers a name.
    #[must_use]
    pub fn matches(&self, name: &RefName) -> bool {
        segments_match(&self.0, &name.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_part_by_part() {
        for (pattern, name, expected) in [
            ("refs/heads/agent/*", "refs/heads/agent/a", true),
            ("refs/heads/agent/*", "refs/heads/agent/a/b", false),
            ("refs/heads/agent/**", "refs/heads/agent/a/b", true),
            ("refs/heads/agent/*", "refs/heads/agents/a", false),
            ("refs/heads/agent-*", "refs/heads/agent-1", true),
            ("refs/heads/main", "refs/heads/main", true),
            ("refs/heads/main", "refs/heads/Main", false),
            ("refs/heads/*", "refs/tags/a", false),
        ] {
            let pattern = RefPattern::parse(pattern).unwrap();
            assert_eq!(pattern.matches(&RefName::parse(name).unwrap()), expected, "{pattern:?} {name}");
        }
    }

    #[test]
    fn names_that_git_refuses_are_none() {
        for text in [
            "HEAD",
            "main",
            "refs/",
            "refs//a",
            "refs/heads/../main",
            "refs/heads/a..b",
            "refs/heads/.a",
            "refs/heads/a.lock",
            "refs/heads/a.",
            "refs/heads/a/",
            "refs/heads/a b",
            "refs/heads/a\n",
            "refs/heads/a@{1}",
            "refs/heads/a\\b",
            "refs/heads/a:b",
        ] {
            assert_eq!(RefName::parse(text), None, "{text:?}");
        }
        for text in ["heads/a", "*", "refs/heads/a b"] {
            assert!(RefPattern::parse(text).is_err(), "{text}");
        }
    }
}
