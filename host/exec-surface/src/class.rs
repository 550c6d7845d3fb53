//! Classifies a change at a path, by the path's names and by the files beside it.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use crate::Site;
use crate::git::Content;
use crate::known::{has_known_name, is_known};
use crate::rules::{Anywhere, RULES, Rule, TOOL_FILES};
use crate::table::is_like;
use crate::{dot_files, linked, repository, temporary};

/// The directory in which names under [`Anywhere::Asked`] are free: packages contain such files by the hundred, and the
/// user does not work in there.
pub const PACKAGES: &str = "node_modules";

/// Directories of version control systems other than git.
const SYSTEMS: [&str; 6] = [".bzr", ".hg", ".jj", ".pijul", ".sl", ".svn"];

/// The kind of a change at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// A directory is created.
    MakeDirectory,
    /// A file is created or opened for writing; its content is not known yet.
    Write,
    /// A complete file gets this name, by rename(2) or link(2) from another, or is replaced as a whole.
    Install,
    /// A symbolic link is created.
    Symlink,
    /// A directory, with everything below it, gets this name.
    MoveTree,
    /// A device, pipe or socket is created.
    Special,
    /// The file, link or empty directory is removed.
    Remove,
    /// The file gets another name: it is the source of rename(2).
    MoveAway,
    /// The file gets a hard link, through which it could be written: it is the source of link(2).
    Link,
    /// Mode, owner, times or extended attributes are changed.
    Metadata,
}

impl Change {
    /// Returns true if the change creates a file or directory with this name.
    pub(crate) fn is_new_name(self) -> bool {
        match self {
            Self::MakeDirectory
            | Self::Write
            | Self::Install
            | Self::Symlink
            | Self::MoveTree
            | Self::Special => true,
            Self::Remove | Self::MoveAway | Self::Link | Self::Metadata => false,
        }
    }
}

/// The class of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// No rule applies.
    Free,
    /// Every file below must be classified under its new name, with [`Change::Install`]: the new name may matter.
    Walk,
    /// It makes this directory a git directory. The content of the directory must be classified first, as if it were
    /// one already, and judged files must be replaced by copies, because a process may hold the old ones open.
    Completes(PathBuf),
    /// The content decides, see [`crate::git::judge`].
    Judged(&'static Rule, Content),
    /// The user is asked; it is free in a directory that the running command itself made, if the rule is
    /// [`Anywhere::Asked`].
    Asked(&'static Rule),
    /// It is refused.
    Denied(&'static Rule),
}

impl Class {
    fn strength(&self) -> u8 {
        match self {
            Self::Free => 0,
            Self::Walk => 1,
            Self::Completes(_) => 2,
            Self::Judged(..) => 3,
            Self::Asked(_) => 4,
            Self::Denied(_) => 5,
        }
    }

    /// Returns this class if its rule `holds`, else [`Class::Free`].
    pub(crate) fn under(self, holds: &dyn Fn(&'static Rule) -> bool) -> Self {
        match self {
            Self::Judged(rule, _) | Self::Asked(rule) | Self::Denied(rule) if !holds(rule) => Self::Free,
            Self::Free
            | Self::Walk
            | Self::Completes(_)
            | Self::Judged(..)
            | Self::Asked(_)
            | Self::Denied(_) => self,
        }
    }

    /// Returns the stricter of the two.
    pub(crate) fn or(self, other: Self) -> Self {
        if other.strength() > self.strength() { other } else { self }
    }
}

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
    if let Some(class) = temporary::class(path, change) {
        return class;
    }
    class_by_path(path, change, site, holds).or(linked::class(path, change, site, holds))
}

/// As [`class_under`], by the path itself and not by links that lead there.
pub(crate) fn class_by_path(
    path: &Path,
    change: Change,
    site: &Site<'_>,
    holds: &dyn Fn(&'static Rule) -> bool,
) -> Class {
    // Links and special files matter by their position, whatever their name.
    let is_odd = matches!(change, Change::Symlink | Change::Special | Change::MoveTree);
    let may_be_a_dot_file = dot_files::may_matter(path, site);
    if !is_odd && !may_be_a_dot_file && !has_known_name(path) {
        return Class::Free;
    }
    let relative = site.relative(path);
    let class = by_name(relative, change, holds)
        .or(other_systems(path, change).under(holds))
        .or(repository::class(path, change, site, holds));
    // If a rule lists this very name, only that rule asks, and disabling it suffices.
    if may_be_a_dot_file && named(relative, |_| true).is_none() {
        class.or(dot_files::class(path, change, site).under(holds))
    } else {
        class
    }
}

/// A name that a rule under [`Anywhere::Asked`] protects, as paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedName {
    /// The directory that contains the name: the project, for `.github/workflows`.
    pub holder: PathBuf,
    /// The whole name.
    pub name: PathBuf,
}

/// Returns the outermost such name on the way to `path`: the subject of a question about `path`.
#[must_use]
pub fn protected_name(path: &Path, site: &Site<'_>) -> Option<ProtectedName> {
    protected_by_path(path, site, |_| true).or_else(|| linked::protected(path, site))
}

/// As [`protected_name`], by the path itself, and only by the rules for which `is_meant` returns true.
pub(crate) fn protected_by_path(
    path: &Path,
    site: &Site<'_>,
    is_meant: impl Fn(&'static Rule) -> bool,
) -> Option<ProtectedName> {
    let relative = site.relative(path);
    let Some((start, end)) = named(relative, |rule| rule.anywhere == Anywhere::Asked && is_meant(rule))
    else {
        return dot_files::protected(path, site).filter(|(rule, _)| is_meant(rule)).map(|(_, name)| name);
    };
    let root = path.ancestors().nth(relative.components().filter_map(normal).count())?;
    let first = |count: usize| {
        root.join(relative.iter().filter(|name| *name != "/").take(count).collect::<PathBuf>())
    };
    Some(ProtectedName { holder: first(start), name: first(end) })
}

/// Returns the range of components of `path` that the outermost pattern of the rules in question matches.
fn named(path: &Path, is_meant: impl Fn(&'static Rule) -> bool) -> Option<(usize, usize)> {
    let names: Vec<&OsStr> = path.components().filter_map(normal).collect();
    let starts = starts(&names);
    if starts.is_empty() {
        return None;
    }
    let rules = RULES.iter().filter(|rule| is_meant(rule));
    let found = rules.flat_map(|rule| {
        let within = reach(rule, &names);
        let stands = |pattern: &&'static str| match matches(&names, &starts, within, pattern) {
            Match::Whole(start, end) => Some((start, end)),
            Match::Beginning | Match::None => None,
        };
        rule.names().iter().filter_map(stands).min()
    });
    found.min()
}

/// Returns the directory that `change` at `path` makes a git directory, whatever else applies to it:
/// [`Class::Completes`] is hidden by stricter classes.
#[must_use]
pub fn completed(path: &Path, change: Change, site: &Site<'_>) -> Option<PathBuf> {
    match repository::completing(path, change, site) {
        Class::Completes(directory) => Some(directory),
        Class::Free | Class::Walk | Class::Judged(..) | Class::Asked(_) | Class::Denied(_) => None,
    }
}

/// Classifies by the rules with lists of names.
fn by_name(path: &Path, change: Change, holds: &dyn Fn(&'static Rule) -> bool) -> Class {
    let names: Vec<&OsStr> = path.components().filter_map(normal).collect();
    let starts = starts(&names);
    let mut class = Class::Free;
    if starts.is_empty() {
        return class;
    }
    for rule in RULES {
        let within = reach(rule, &names);
        for pattern in rule.names() {
            let own = match matches(&names, &starts, within, pattern) {
                Match::Whole(..) => on_whole(rule, change),
                // `mv x .github` brings `x/workflows` with it.
                Match::Beginning if matches!(change, Change::MoveTree) => Class::Walk,
                Match::Beginning if matches!(change, Change::Symlink) => on_whole(rule, change),
                Match::Beginning | Match::None => Class::Free,
            };
            class = class.or(own.under(holds));
        }
    }
    class
}

/// Returns the positions of names with which a pattern can begin.
fn starts(names: &[&OsStr]) -> Vec<usize> {
    (0..names.len()).filter(|start| names.get(*start).is_some_and(|name| is_known(name))).collect()
}

/// Returns the position before which a pattern of `rule` must begin.
fn reach(rule: &Rule, names: &[&OsStr]) -> usize {
    let packages = names.iter().position(|name| *name == PACKAGES).unwrap_or(names.len());
    if rule.anywhere == Anywhere::Asked { packages } else { names.len() }
}

/// Classifies changes in directories of other version control systems, which protect their own links as git does.
/// Mercurial's locks are dangling links, and it creates others to test for support of links.
fn other_systems(path: &Path, change: Change) -> Class {
    let is_system = |name: &OsStr| SYSTEMS.iter().any(|known| name.eq_ignore_ascii_case(known));
    let is_inside = || path.iter().rev().skip(1).any(is_system);
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    // As a file it leads to the repository, whose settings then apply.
    let is_pointer = || {
        let holder = path.parent().and_then(Path::file_name).unwrap_or_default();
        name.eq_ignore_ascii_case(b"repo") && holder.eq_ignore_ascii_case(".jj")
    };
    let is_own = || name == b"lock" || name == b"wlock" || name.starts_with(b"checklink");
    let class = if change == Change::Symlink && !is_own() {
        Class::Asked(&TOOL_FILES)
    } else if change == Change::Special {
        Class::Denied(&TOOL_FILES)
    } else if change == Change::MoveTree {
        Class::Walk
    } else if matches!(change, Change::Write | Change::Install) && is_pointer() {
        Class::Asked(&TOOL_FILES)
    } else {
        return Class::Free;
    };
    if is_inside() { class } else { Class::Free }
}

/// Classifies a change of a name that a rule lists.
pub(crate) fn on_whole(rule: &'static Rule, change: Change) -> Class {
    match (rule.anywhere, change) {
        (Anywhere::Denied, Change::Metadata) | (Anywhere::Judged, _) => Class::Free,
        (Anywhere::Denied, _) => Class::Denied(rule),
        // A directory, or a missing file, is not executed.
        (Anywhere::Asked, Change::MakeDirectory | Change::Remove | Change::MoveAway | Change::Metadata) => {
            Class::Free
        }
        (Anywhere::Asked, _) => Class::Asked(rule),
    }
}

enum Match {
    None,
    /// The path ends with the beginning of the pattern.
    Beginning,
    /// The path contains the pattern in this range of names, and perhaps more below it.
    Whole(usize, usize),
}

/// Finds a pattern that begins before the name number `within`.
fn matches(names: &[&OsStr], starts: &[usize], within: usize, pattern: &str) -> Match {
    let wanted = || pattern.split('/');
    let length = wanted().count();
    for start in starts.iter().filter(|start| **start < within) {
        let Some(rest) = names.get(*start..) else { break };
        let is_same = rest.iter().zip(wanted()).all(|(name, wanted)| is_like(name, wanted));
        if is_same {
            return if rest.len() >= length {
                Match::Whole(*start, start + length)
            } else {
                Match::Beginning
            };
        }
    }
    Match::None
}

pub(crate) fn normal(component: Component<'_>) -> Option<&OsStr> {
    match component {
        Component::Normal(name) => Some(name),
        Component::RootDir | Component::Prefix(_) | Component::CurDir | Component::ParentDir => None,
    }
}
