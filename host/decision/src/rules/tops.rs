//! Sets of paths, each with everything below it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A set of paths. The cost of a look-up depends on the length of the path, not on the size of the set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tops {
    /// In order.
    paths: Vec<PathBuf>,
    /// The same paths, for look-ups: comparing paths is slow.
    known: HashSet<PathBuf>,
}

impl Tops {
    /// Returns the paths.
    pub fn iter(&self) -> std::slice::Iter<'_, PathBuf> {
        self.paths.iter()
    }

    /// Returns true if this very path is one of them.
    #[must_use]
    pub fn contains(&self, path: &Path) -> bool {
        self.known.contains(path)
    }

    /// Returns the longest of the paths that is, or holds, `path`.
    #[must_use]
    pub fn innermost(&self, path: &Path) -> Option<&Path> {
        path.ancestors().find_map(|above| self.known.get(above)).map(PathBuf::as_path)
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&Path) -> bool) {
        self.paths.retain(|path| keep(path));
        self.known.retain(|path| self.paths.binary_search(path).is_ok());
    }

    pub(super) fn extend(&mut self, more: impl IntoIterator<Item = PathBuf>) {
        self.known.extend(more);
        self.paths = self.known.iter().cloned().collect();
        self.paths.sort_unstable();
    }
}

impl FromIterator<PathBuf> for Tops {
    fn from_iter<I: IntoIterator<Item = PathBuf>>(paths: I) -> Self {
        let mut tops = Self::default();
        tops.extend(paths);
        tops
    }
}

impl<'a> IntoIterator for &'a Tops {
    type Item = &'a PathBuf;
    type IntoIter = std::slice::Iter<'a, PathBuf>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_one_that_holds_a_path() {
        let tops: Tops = ["/a/b-c", "/a", "/a/b/c", "/a/b/c"].map(PathBuf::from).into_iter().collect();
        assert_eq!(tops.iter().count(), 3);
        for (path, expected) in [
            ("/a/b/c/d", Some("/a/b/c")),
            ("/a/b/c", Some("/a/b/c")),
            ("/a/b", Some("/a")),
            ("/a/b-c/x", Some("/a/b-c")),
            ("/a//b/./c/", Some("/a/b/c")),
            ("/ab", None),
            ("/", None),
        ] {
            assert_eq!(tops.innermost(Path::new(path)), expected.map(Path::new), "{path}");
        }
        assert!(tops.contains(Path::new("/a")) && !tops.contains(Path::new("/a/b")));
    }
}
