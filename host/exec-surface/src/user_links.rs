//! Links of the user at sensitive names: their targets are executed as files with those names would be.

use std::path::{Path, PathBuf};

use crate::by_name::{class_by_path, protected_by_path};
use crate::change::{Change, Class, ProtectedName};
use crate::rules::{NEW_DOT_FILES, Rule};
use crate::site::{Site, UserLink};

impl UserLink {
    /// Returns true if the link makes names below its target sensitive: a rule lists its name, and it leads elsewhere
    /// below a root. A dot name that no list contains does not count: what existed before the session is the project's
    /// own.
    #[must_use]
    pub fn matters(&self, site: &Site<'_>) -> bool {
        let Self { name, target } = self;
        // A link to a directory around itself gives that directory no further meaning.
        let leads_on = site.holds(target) && !name.starts_with(target);
        leads_on && class_by_path(name, Change::Symlink, site, &is_named) != Class::Free
    }

    /// Returns the name by which the user's programs know `path`.
    fn name_of(&self, path: &Path) -> Option<PathBuf> {
        let rest = path.strip_prefix(&self.target).ok()?;
        Some(if rest.as_os_str().is_empty() { self.name.clone() } else { self.name.join(rest) })
    }
}

/// Returns true if a link of the user that matters leads to `path`, or to a directory above it.
#[must_use]
pub fn is_linked(path: &Path, site: &Site<'_>) -> bool {
    site.links.iter().any(|link| path.starts_with(&link.target))
}

/// Classifies `change` at `path` by the links that lead there, or to a path below.
pub(crate) fn class(
    path: &Path,
    change: Change,
    site: &Site<'_>,
    holds: &dyn Fn(&'static Rule) -> bool,
) -> Class {
    let holds = |rule: &'static Rule| is_named(rule) && holds(rule);
    site.links.iter().fold(Class::Free, |class, link| {
        let by_link = match link.name_of(path) {
            Some(name) => class_by_path(&name, change, site, &holds),
            None if !link.target.starts_with(path) => Class::Free,
            // A moved directory brings a new file to the target.
            None if change == Change::MoveTree => Class::Walk,
            None if change == Change::Symlink => class_by_path(&link.name, change, site, &holds),
            None => Class::Free,
        };
        class.or(by_link)
    })
}

/// Returns the position of a link's target that a question about `path` is about.
pub(crate) fn protected(path: &Path, site: &Site<'_>) -> Option<ProtectedName> {
    site.links.iter().find_map(|link| {
        let known = protected_by_path(&link.name_of(path)?, site, is_named)?;
        let below = known.name.strip_prefix(&link.name).unwrap_or(Path::new(""));
        let name: PathBuf = link.target.components().chain(below.components()).collect();
        Some(ProtectedName { holder: name.parent()?.to_owned(), name })
    })
}

/// Returns true if a rule applies to names that existed before the session.
fn is_named(rule: &'static Rule) -> bool {
    rule != &NEW_DOT_FILES
}
