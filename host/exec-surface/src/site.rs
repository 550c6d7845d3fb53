//! The surroundings of a path: the facts about the project and the user's files that a classification needs.

use std::path::{Path, PathBuf};

/// The surroundings of a path.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// The project. Some names in it matter by their position in the project, whichever parts of it are roots.
    pub workspace: &'a Path,
    /// Directories below which the user's programs execute names: the workspace and all other writable places, except
    /// the session's own temporary directory. Absolute, links followed.
    pub roots: &'a [PathBuf],
    /// The user's home directories; names in them are executed at each login. Absolute, links followed.
    pub homes: &'a [PathBuf],
    /// Returns true if the path exists, even as a dangling link.
    pub exists: &'a dyn Fn(&Path) -> bool,
    /// Returns true if the path is a symbolic link, or may be one.
    pub is_link: &'a dyn Fn(&Path) -> bool,
    /// Returns true if a file that no longer exists had this name when the session began, as far as known.
    pub was_there: &'a dyn Fn(&Path) -> bool,
    /// Links of the user that matter, see [`UserLink::matters`].
    pub links: &'a [UserLink],
    /// Returns true if the path is a repository of the user outside the roots, all of which commands can read.
    pub is_shown_repository: &'a dyn Fn(&Path) -> bool,
}

impl<'a> Site<'a> {
    /// Returns a site of these roots in which no file exists and no directory is a home.
    #[must_use]
    pub fn without_files(workspace: &'a Path, roots: &'a [PathBuf]) -> Self {
        let nothing = &|_: &Path| false;
        Self {
            workspace,
            roots,
            homes: &[],
            exists: nothing,
            is_link: nothing,
            was_there: nothing,
            links: &[],
            is_shown_repository: nothing,
        }
    }
}

impl Site<'_> {
    /// Returns true if `path` is below a root.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }

    /// Returns true if `path` is below a root, and no name on the way from there is a link, which could lead out
    /// again.
    pub(crate) fn holds_straight(&self, path: &Path) -> bool {
        let mut below = path.ancestors().take_while(|above| !self.roots.iter().any(|root| root == above));
        self.holds(path) && !below.any(self.is_link)
    }

    /// Returns true for the workspace and the directories above it, if commands cannot put a link in their place.
    pub(crate) fn is_fixed(&self, path: &Path) -> bool {
        self.workspace.starts_with(path)
            && !self.roots.iter().any(|root| path != root && path.starts_with(root))
    }

    /// Returns the directory from which the names in `path` count: the workspace, or outside of it the outermost root.
    /// A root within another one, or within the workspace, gets no meaning from the names above it.
    pub(crate) fn root(&self, path: &Path) -> Option<&Path> {
        if path.starts_with(self.workspace) {
            return Some(self.workspace);
        }
        let roots = self.roots.iter().filter(|root| path.starts_with(root));
        roots.min_by_key(|root| root.as_os_str().len()).map(PathBuf::as_path)
    }

    /// Returns the part of `path` below [`Site::root`]; the whole path if there is no root.
    pub(crate) fn relative<'p>(&self, path: &'p Path) -> &'p Path {
        self.root(path).and_then(|root| path.strip_prefix(root).ok()).unwrap_or(path)
    }
}

/// A link of the user, with its target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UserLink {
    /// The name that the user's programs use.
    pub name: PathBuf,
    /// The path that it leads to, with links followed; it need not exist.
    pub target: PathBuf,
}

impl std::fmt::Debug for Site<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Site").field("roots", &self.roots).finish_non_exhaustive()
    }
}
