//! Links of the user's at names that mean something: what they lead to is executed as the name itself would be.

use std::path::{Path, PathBuf};

use crate::Site;
use crate::class::{Change, Class, ProtectedName, class_by_path, protected_by_path};
use crate::rules::{NEW_DOT_FILES, Rule};

/// A link of the user's, with what it leads to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UserLink {
    /// The name at which the user's programs look.
    pub name: PathBuf,
    /// Where they come to by it, with links followed; it need not be there.
    pub target: PathBuf,
}

impl UserLink {
    /// Whether the link makes names below its target mean something: it stands at a name that a rule speaks of, and leads
    /// to another place below a root. A dot name that no list has does not count: what was there before the session is
    /// the project's own.
    #[must_use]
    pub fn matters(&self, site: &Site<'_>) -> bool {
        let Self { name, target } = self;
        // What leads to a directory around itself gives it no further meaning.
        let leads_on = site.holds(target) && !name.starts_with(target);
        leads_on && class_by_path(name, Change::Symlink, site, &is_named) != Class::Free
    }

    /// The name by which the user's programs know `path`.
    fn name_of(&self, path: &Path) -> Option<PathBuf> {
        let rest = path.strip_prefix(&self.target).ok()?;
        Some(if rest.as_os_str().is_empty() { self.name.clone() } else { self.name.join(rest) })
    }
}

/// Whether a link of the user's that matters leads to `path`, or to a directory around it.
#[must_use]
pub fn is_linked(path: &Path, site: &Site<'_>) -> bool {
    site.links.iter().any(|link| path.starts_with(&link.target))
}

/// Says what `change` at `path` comes to by the links that lead there, or to something below.
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
            // What it brings along stands at the target then.
            None if change == Change::MoveTree => Class::Walk,
            None if change == Change::Symlink => class_by_path(&link.name, change, site, &holds),
            None => Class::Free,
        };
        class.or(by_link)
    })
}

/// The place of a link's target that a question about `path` is about.
pub(crate) fn protected(path: &Path, site: &Site<'_>) -> Option<ProtectedName> {
    site.links.iter().find_map(|link| {
        let known = protected_by_path(&link.name_of(path)?, site, is_named)?;
        let below = known.name.strip_prefix(&link.name).unwrap_or(Path::new(""));
        let name: PathBuf = link.target.components().chain(below.components()).collect();
        Some(ProtectedName { holder: name.parent()?.to_owned(), name })
    })
}

/// Whether a rule speaks of names that were there before the session.
fn is_named(rule: &'static Rule) -> bool {
    rule != &NEW_DOT_FILES
}
