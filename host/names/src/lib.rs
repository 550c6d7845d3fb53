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
//! let site = Site { roots: &roots, exists: &|_| false, is_link: &|_| false };
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
mod known;
mod repository;
mod rules;
mod temporary;

pub mod git;

pub use class::{Change, Class, PACKAGES, class, class_under, completed};
pub use repository::{EXAMINED, is_link_of_git};
pub use rules::{
    AGENT_FILES, Anywhere, CI_FILES, EDITOR_FILES, GIT_ATTRIBUTES, GIT_CONFIG, GIT_HOOKS, GIT_INDEX,
    GIT_POINTERS, GIT_REBASE, HOOK_MANAGERS, PROJECT_AGENT_SETTINGS, RULES, Rule, SHELL_FILES, TOOL_FILES,
    rule,
};

/// What surrounds a path.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// Directories below which names are executed by the user's programs: the workspace and whatever else may be
    /// written, the session's own temporary directory left out. Absolute, links followed.
    pub roots: &'a [PathBuf],
    /// Whether anything has this name, be it a link that leads nowhere.
    pub exists: &'a dyn Fn(&Path) -> bool,
    /// Whether this name is a symbolic link, or may be one.
    pub is_link: &'a dyn Fn(&Path) -> bool,
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

    /// The part of `path` below the deepest root that holds it; the whole path where none does.
    pub(crate) fn relative<'p>(&self, path: &'p Path) -> &'p Path {
        let below = self.roots.iter().filter_map(|root| path.strip_prefix(root).ok());
        below.min_by_key(|below| below.as_os_str().len()).unwrap_or(path)
    }
}

impl std::fmt::Debug for Site<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Site").field("roots", &self.roots).finish_non_exhaustive()
    }
}
