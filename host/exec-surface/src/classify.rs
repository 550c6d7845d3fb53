//! Classifies a change at a path, by the path's names and by the links that lead there.

use std::path::{Path, PathBuf};

use crate::by_name::{class_by_path, protected_by_path};
use crate::change::{Change, Class, ProtectedName};
use crate::rules::Rule;
use crate::site::Site;
use crate::{git_directory, temporary_files, user_links};

/// Classifies `change` at `path`, which is absolute, with links followed except for its last name.
#[must_use]
pub fn class(path: &Path, change: Change, site: &Site<'_>) -> Class {
    class_under(path, change, site, &|_| true)
}

/// As [`class`], by the rules for which `holds` returns true. Where one rule is disabled, another may still apply.
/// `holds` is called for the rules that apply to this change.
#[must_use]
pub fn class_under(
    path: &Path,
    change: Change,
    site: &Site<'_>,
    holds: &dyn Fn(&'static Rule) -> bool,
) -> Class {
    if let Some(class) = temporary_files::class(path, change) {
        return class;
    }
    class_by_path(path, change, site, holds).or(user_links::class(path, change, site, holds))
}

/// Returns the outermost such name on the way to `path`: the subject of a question about `path`.
#[must_use]
pub fn protected_name(path: &Path, site: &Site<'_>) -> Option<ProtectedName> {
    protected_by_path(path, site, |_| true).or_else(|| user_links::protected(path, site))
}

/// Returns the directory that `change` at `path` makes a git directory, whatever else applies to it:
/// [`Class::Completes`] is hidden by stricter classes.
#[must_use]
pub fn completed(path: &Path, change: Change, site: &Site<'_>) -> Option<PathBuf> {
    match git_directory::completing(path, change, site) {
        Class::Completes(directory) => Some(directory),
        Class::Free | Class::Walk | Class::Judged(..) | Class::Asked(_) | Class::Denied(_) => None,
    }
}
