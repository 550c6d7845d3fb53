//! Names that the user's other programs execute, and git's files judged by their content.
//!
//! A command in the sandbox can do no harm by running a program: the sandbox holds it. It does harm by leaving
//! something behind that the user's git, shell, editor or agent runs later, outside. This crate knows those names.
//!
//! Terms: a [`Rule`] is a group of names with an id that the user can lift; [`class`] says what a [`Change`] at a
//! path comes to; where that is [`Class::Judged`], [`git::judge`] looks at the content, compared with what stood
//! there before. A **git directory** is one called `.git`, one in `worktrees` or `modules` of another, and every
//! directory that has the shape of one (`objects` with `refs`, or `HEAD` with `commondir`), whatever its name.
//!
//! This crate must never know how a change is made or who is asked. It does no I/O: paths are absolute with links
//! followed, texts are handed in, and what lies beside a path is asked through [`Site::exists`].
//!
//! Limits: what git runs is known up to version 2.51; other programs that read git's files may read them otherwise.
//!
//! ```
//! use std::path::{Path, PathBuf};
//! use portcullis_names::{Change, Class, Site, class, git};
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

/// What surrounds a path.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// The project. Names in it mean something by their place in the project, whichever parts of it are roots.
    pub workspace: &'a Path,
    /// Directories below which names are executed by the user's programs: the workspace and whatever else may be
    /// written, the session's own temporary directory left out. Absolute, links followed.
    pub roots: &'a [PathBuf],
    /// The user's home directories; names in them are executed at each log-in. Absolute, links followed.
    pub homes: &'a [PathBuf],
    /// Whether anything has this name, be it a link that leads nowhere.
    pub exists: &'a dyn Fn(&Path) -> bool,
    /// Whether this name is a symbolic link, or may be one.
    pub is_link: &'a dyn Fn(&Path) -> bool,
    /// Whether a file that is gone by now had this name when the session began, as far as that is known.
    pub was_there: &'a dyn Fn(&Path) -> bool,
    /// Links of the user's that matter, see [`UserLink::matters`].
    pub links: &'a [UserLink],
}

impl<'a> Site<'a> {
    /// Returns a site of these roots, in which nothing is there and no directory is a home.
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
    /// Whether `path` lies below a root.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }

    /// Whether `path` lies below a root, and nothing on its way from there is a link, which could lead out again.
    pub(crate) fn holds_straight(&self, path: &Path) -> bool {
        let mut below = path.ancestors().take_while(|above| !self.roots.iter().any(|root| root == above));
        self.holds(path) && !below.any(self.is_link)
    }

    /// The directory from which the names in `path` count: the workspace, or outside of it the outermost root. A root
    /// within another one, or within the workspace, takes no meaning from the names above it.
    pub(crate) fn root(&self, path: &Path) -> Option<&Path> {
        if path.starts_with(self.workspace) {
            return Some(self.workspace);
        }
        let roots = self.roots.iter().filter(|root| path.starts_with(root));
        roots.min_by_key(|root| root.as_os_str().len()).map(PathBuf::as_path)
    }

    /// The part of `path` below [`Site::root`]; the whole path where there is none.
    pub(crate) fn relative<'p>(&self, path: &'p Path) -> &'p Path {
        self.root(path).and_then(|root| path.strip_prefix(root).ok()).unwrap_or(path)
    }
}

impl std::fmt::Debug for Site<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Site").field("roots", &self.roots).finish_non_exhaustive()
    }
}
