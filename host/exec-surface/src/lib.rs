//! Names that the user's other programs execute, and git's files judged by their content.
//!
//! A command that runs a program in the sandbox does no harm: the sandbox confines it. It does harm by leaving a file
//! behind that the user's git, shell, editor or agent executes later, outside. This crate knows the names of such
//! files.
//!
//! Terms: a [`Rule`] is a group of names with an id by which the user can disable it; [`class`] classifies a [`Change`]
//! at a path; for [`Class::Judged`], [`git::judge`] judges the new content, compared with the previous one. A **git
//! directory** is one called `.git`, one in `worktrees` or `modules` of another, and every directory with the shape of
//! one (`objects` with `refs`, or `HEAD` with `commondir`), whatever its name.
//!
//! This crate must never know how a change is made or who is asked. It does no I/O: paths are absolute with links
//! followed, texts are passed in, and [`Site::exists`] tells which files are beside a path.
//!
//! Limits: git's behaviour is known up to version 2.51; other programs that read git's files may read them differently.
//!
//! ```
//! use std::path::{Path, PathBuf};
//! use portcullis_exec_surface::{Change, Class, Site, class, git};
//!
//! let roots = [PathBuf::from("/project")];
//! let site = Site::of(&roots[0], &roots);
//! let path = Path::new("/project/.git/config");
//! let Class::Judged(rule, content) = class(path, Change::Install, &site) else { panic!() };
//! assert_eq!(rule.id, "host.git-config");
//!
//! let hostile = b"[core]\n\tfsmonitor = ./evil\n";
//! let reason = git::judge(content, path, None, hostile, &site).reason().unwrap();
//! assert_eq!(reason, "`core.fsmonitor` on line 2 names a program that git runs");
//! ```

use std::path::{Path, PathBuf};

mod class;
mod dot_files;
mod known;
mod linked;
mod repository;
mod rules;
mod temporary;

pub mod git;
pub mod table;

pub use class::{Change, Class, PACKAGES, ProtectedName, class, class_under, completed, protected_name};
pub use linked::{UserLink, is_linked};
pub use repository::{EXAMINED, is_link_of_git};
pub use rules::{
    AGENT_FILES, Anywhere, CI_FILES, EDITOR_FILES, GIT_ATTRIBUTES, GIT_CONFIG, GIT_HOOKS, GIT_INDEX,
    GIT_POINTERS, GIT_REBASE, HOME_FILES, HOOK_MANAGERS, NEW_DOT_FILES, PROJECT_AGENT_NAMES,
    PROJECT_AGENT_SETTINGS, RULES, Rule, SHELL_FILES, TOOL_FILES, rule,
};

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
}

impl<'a> Site<'a> {
    /// Returns a site of these roots in which no file exists and no directory is a home.
    #[must_use]
    pub fn of(workspace: &'a Path, roots: &'a [PathBuf]) -> Self {
        let nothing = &|_: &Path| false;
        Self {
            workspace,
            roots,
            homes: &[],
            exists: nothing,
            is_link: nothing,
            was_there: nothing,
            links: &[],
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

impl std::fmt::Debug for Site<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Site").field("roots", &self.roots).finish_non_exhaustive()
    }
}
