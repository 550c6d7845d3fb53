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
//! let site = Site::without_files(&roots[0], &roots);
//! let path = Path::new("/project/.git/config");
//! let Class::Judged(rule, content) = class(path, Change::Install, &site) else { panic!() };
//! assert_eq!(rule.id, "host.git-config");
//!
//! let hostile = b"[core]\n\tfsmonitor = ./evil\n";
//! let reason = git::judge(content, path, None, hostile, &site).reason().unwrap();
//! assert_eq!(reason, "`core.fsmonitor` on line 2 names a program that git runs");
//! ```

mod by_name;
mod change;
mod classify;
mod dot_files;
mod git_directory;
mod name_index;
mod other_vcs;
mod rules;
mod site;
mod temporary_files;
mod user_links;

pub mod git;
pub mod table;

pub use change::{Change, Class, ProtectedName};
pub use classify::{class, class_under, completed, protected_name};
pub use git_directory::{EXAMINED, is_link_of_git};
pub use rules::{
    AGENT_FILES, CI_FILES, EDITOR_FILES, GIT_ATTRIBUTES, GIT_CONFIG, GIT_HOOKS, GIT_INDEX, GIT_POINTERS,
    GIT_REBASE, HOME_FILES, HOOK_MANAGERS, NEW_DOT_FILES, PACKAGES, PROJECT_AGENT_NAMES,
    PROJECT_AGENT_SETTINGS, RULES, Rule, SHELL_FILES, TOOL_FILES, Treatment, rule,
};
pub use site::{Site, UserLink};
pub use user_links::is_linked;
