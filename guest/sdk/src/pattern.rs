//! Patterns over paths.

use crate::{FilePattern, FileRights, Glob, GlobError, NamePattern};

impl FilePattern {
    /// Returns the pattern of one path, taken literally.
    pub fn exact(path: impl Into<String>) -> Self {
        Self::Exact(path.into())
    }

    /// Returns the pattern of a directory and everything below it, taken literally.
    pub fn tree(directory: impl Into<String>) -> Self {
        Self::Tree(directory.into())
    }

    /// Returns the pattern of a glob over whole paths.
    pub fn glob(glob: impl Into<String>) -> Self {
        Self::Glob(glob.into())
    }

    /// Returns the pattern of a glob for the last component below a directory.
    pub fn name(below: impl Into<String>, glob: impl Into<String>) -> Self {
        Self::Name(NamePattern { below: below.into(), glob: glob.into() })
    }

    /// Returns true if an absolute canonical path is covered.
    ///
    /// # Errors
    ///
    /// If the pattern contains a malformed glob; the host refuses such a rule.
    pub fn matches(&self, path: &str) -> Result<bool, GlobError> {
        Ok(match self {
            Self::Exact(exact) => components(exact).eq(components(path)),
            Self::Tree(top) => is_within(path, top),
            Self::Glob(glob) => Glob::path(glob)?.matches_path(path),
            Self::Name(NamePattern { below, glob }) => {
                let name = components(path).last().unwrap_or_default();
                let inside = is_within(path, below) && !is_within(below, path);
                Glob::name(glob)?.matches_name(name) && inside
            }
        })
    }
}

impl FileRights {
    /// Reading and writing, the rights of most rules on working directories.
    pub const READ_WRITE: Self = Self::READ.union(Self::WRITE);
}

/// Returns true if a path is a directory or lies below it. Compares components: `/a/bc` does not lie below `/a/b`.
pub(crate) fn is_within(path: &str, directory: &str) -> bool {
    let mut path = components(path);
    !directory.is_empty() && components(directory).all(|component| path.next() == Some(component))
}

fn components(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|component| !component.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &FilePattern, path: &str, expected: bool) {
        assert_eq!(pattern.matches(path).unwrap(), expected, "{pattern:?} on {path}");
    }

    #[test]
    fn by_components() {
        check(&FilePattern::tree("/a/b"), "/a/b", true);
        check(&FilePattern::tree("/a/b"), "/a/b/c", true);
        check(&FilePattern::tree("/a/b"), "/a/bc", false);
        check(&FilePattern::tree("/"), "/anything", true);
        check(&FilePattern::tree(""), "/anything", false);
        check(&FilePattern::exact("/a/b"), "/a/b", true);
        check(&FilePattern::exact("/a/b"), "/a/b/c", false);
        check(&FilePattern::exact("/a/*"), "/a/b", false);
    }

    #[test]
    fn by_name() {
        let keys = FilePattern::name("/w", "*.pem");
        check(&keys, "/w/a.pem", true);
        check(&keys, "/w/deep/er/a.pem", true);
        check(&keys, "/x/a.pem", false);
        check(&keys, "/w/a.pem/inside", false);
        check(&FilePattern::name("/w", "*"), "/w", false);
        assert!(FilePattern::glob("[").matches("/a").is_err());
    }
}
