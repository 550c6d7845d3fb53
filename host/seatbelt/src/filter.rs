//! Conditions on paths, and their text in a profile.

use std::fmt::Write as _;
use std::path::Path;

/// A condition on a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Filter {
    /// Exactly this path.
    Literal(String),
    /// This path and everything below it.
    Subpath(String),
    /// A path that matches this expression.
    Regex(String),
    /// At least one of these; never, if there is none.
    Any(Vec<Self>),
    /// All of these; always, if there is none.
    All(Vec<Self>),
    /// Not this.
    Not(Box<Self>),
}

impl Filter {
    /// The condition that no path meets.
    pub(crate) const NEVER: Self = Self::Any(Vec::new());
    /// The condition that every path meets.
    pub(crate) const ALWAYS: Self = Self::All(Vec::new());

    /// Returns the condition that at least one of `filters` holds.
    pub(crate) fn any(filters: impl IntoIterator<Item = Self>) -> Self {
        let mut parts = Vec::new();
        for filter in filters {
            if filter == Self::ALWAYS {
                return filter;
            }
            if let Self::Any(inner) = filter { parts.extend(inner) } else { parts.push(filter) }
        }
        Self::single(parts, Self::Any)
    }

    /// Returns the condition that all `filters` hold.
    pub(crate) fn all(filters: impl IntoIterator<Item = Self>) -> Self {
        let mut parts = Vec::new();
        for filter in filters {
            if filter == Self::NEVER {
                return filter;
            }
            if let Self::All(inner) = filter { parts.extend(inner) } else { parts.push(filter) }
        }
        Self::single(parts, Self::All)
    }

    /// Returns the opposite condition.
    pub(crate) fn not(filter: Self) -> Self {
        if filter == Self::NEVER {
            Self::ALWAYS
        } else if filter == Self::ALWAYS {
            Self::NEVER
        } else if let Self::Not(inner) = filter {
            *inner
        } else {
            Self::Not(Box::new(filter))
        }
    }

    /// Returns the conditions of which one must hold.
    pub(crate) fn parts(&self) -> &[Self] {
        if let Self::Any(parts) = self { parts } else { std::slice::from_ref(self) }
    }

    /// Returns true if no path meets both conditions, as far as their paths alone tell.
    pub(crate) fn is_apart_from(&self, other: &Self) -> bool {
        let top = |filter: &Self| match filter {
            Self::Literal(path) | Self::Subpath(path) => Some(path.clone()),
            Self::Regex(_) | Self::Any(_) | Self::All(_) | Self::Not(_) => None,
        };
        let (Some(one), Some(other)) = (top(self), top(other)) else { return false };
        !Path::new(&one).starts_with(&other) && !Path::new(&other).starts_with(&one)
    }

    fn single(mut parts: Vec<Self>, joined: fn(Vec<Self>) -> Self) -> Self {
        match parts.pop() {
            Some(only) if parts.is_empty() => only,
            Some(last) => {
                parts.push(last);
                joined(parts)
            }
            None => joined(parts),
        }
    }

    /// Writes the condition in lines that are indented by `depth` steps.
    pub(crate) fn write(&self, text: &mut String, depth: usize) {
        let indent = "  ".repeat(depth);
        let (name, parts) = match self {
            Self::Literal(path) => return line(text, &indent, "literal", path),
            Self::Subpath(path) => return line(text, &indent, "subpath", path),
            Self::Regex(expression) => return line(text, &indent, "regex", expression),
            // There is no form for always and never.
            Self::All(parts) if parts.is_empty() => return line(text, &indent, "subpath", "/"),
            Self::Any(parts) if parts.is_empty() => {
                return Self::not(Self::Subpath("/".to_owned())).write(text, depth);
            }
            Self::Any(parts) => ("require-any", parts.as_slice()),
            Self::All(parts) => ("require-all", parts.as_slice()),
            Self::Not(inner) => ("require-not", std::slice::from_ref(&**inner)),
        };
        text.push_str(&indent);
        text.push('(');
        text.push_str(name);
        text.push('\n');
        parts.iter().for_each(|part| part.write(text, depth + 1));
        // The last line ends with a line feed, before which the parenthesis goes.
        text.truncate(text.trim_end_matches('\n').len());
        text.push_str(")\n");
    }
}

fn line(text: &mut String, indent: &str, name: &str, value: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{indent}({name} {})", quoted(value));
}

/// Returns a string of the profile's language.
///
/// Its reader knows `\\`, `\"`, `\n`, `\r` and `\t`; every other byte stands for itself.
pub(crate) fn quoted(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_of_a_path_ends_its_string() {
        assert_eq!(quoted("/a b"), "\"/a b\"");
        assert_eq!(quoted("/\"\\\n\r\t;()#é"), "\"/\\\"\\\\\\n\\r\\t;()#é\"");
    }

    #[test]
    fn conditions_that_always_or_never_hold_go() {
        let path = || Filter::Literal("/a".to_owned());
        assert_eq!(Filter::any([Filter::NEVER, path()]), path());
        assert_eq!(Filter::any([Filter::ALWAYS, path()]), Filter::ALWAYS);
        assert_eq!(Filter::all([Filter::ALWAYS, path()]), path());
        assert_eq!(Filter::all([Filter::NEVER, path()]), Filter::NEVER);
        assert_eq!(Filter::not(Filter::not(path())), path());
        assert_eq!(Filter::not(Filter::NEVER), Filter::ALWAYS);
    }
}
