//! What a change at a path comes to, by its name and what lies beside it.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use crate::Site;
use crate::git::Content;
use crate::known::{has_known_name, is_known};
use crate::rules::{Anywhere, RULES, Rule, TOOL_FILES};
use crate::table::is_like;
use crate::{dot_files, linked, repository, temporary};

/// The directory in which names under [`Anywhere::Asked`] are free: packages bring such files along by the hundred, and
/// nobody works in there.
pub const PACKAGES: &str = "node_modules";

/// Directories of systems for versions other than git.
const SYSTEMS: [&str; 6] = [".bzr", ".hg", ".jj", ".pijul", ".sl", ".svn"];

/// What is done at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// A directory is made.
    MakeDirectory,
    /// A file is created or opened for writing; its content is not known yet.
    Write,
    /// A file that is complete gets this name, by rename(2) or link(2) from another, or is replaced as a whole.
    Install,
    /// A symbolic link is made.
    Symlink,
    /// A directory, with all below it, gets this name.
    MoveTree,
    /// A device, pipe or socket is made.
    Special,
    /// The file, link or empty directory is removed.
    Remove,
    /// What is there gets another name: it is the source of rename(2).
    MoveAway,
    /// The file gets a second name, through which it could be written: it is the source of link(2).
    Link,
    /// Mode, owner, times or extended attributes are changed.
    Metadata,
}

impl Change {
    /// Whether something has the name afterwards that did not have it before.
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

/// What a change comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// These rules have nothing to say.
    Free,
    /// Every file below has to be classed under its new name, with [`Change::Install`]: it means something else
    /// there.
    Walk,
    /// It makes this directory a git directory. What lies in it has to be classed first, as if it were one already,
    /// and judged files have to be replaced by copies: somebody may hold the old ones open.
    Completes(PathBuf),
    /// The content decides, see [`crate::git::judge`].
    Judged(&'static Rule, Content),
    /// The user must say; it is free in a directory that the running command itself made, if the rule is
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

    /// This, if its rule holds.
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

    /// The stricter of the two.
    pub(crate) fn or(self, other: Self) -> Self {
        if other.strength() > self.strength() { other } else { self }
    }
}

/// Says what `change` at `path` comes to. `path` is absolute, with links followed but for its last name.
#[must_use]
pub fn class(path: &Path, change: Change, site: &Site<'_>) -> Class {
    class_under(path, change, site, &|_| true)
}

/// As [`class`], by the rules alone that `holds` says yes to: what one rule leaves free, another may still be about.
/// `holds` is called for rules that speak of this change.
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
    // Links and special files matter by where they lie, whatever their name.
    let is_odd = matches!(change, Change::Symlink | Change::Special | Change::MoveTree);
    let may_be_a_dot_file = dot_files::may_matter(path, site);
    if !is_odd && !may_be_a_dot_file && !has_known_name(path) {
        return Class::Free;
    }
    let relative = site.relative(path);
    let class = by_name(relative, change, holds)
        .or(other_systems(path, change).under(holds))
        .or(repository::class(path, change, site, holds));
    // Where a rule has the very name, the user is asked under that rule alone, and only it can be lifted.
    if may_be_a_dot_file && named(relative, |_| true).is_none() {
        class.or(dot_files::class(path, change, site).under(holds))
    } else {
        class
    }
}

/// A name that a rule under [`Anywhere::Asked`] is about, as paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedName {
    /// The directory in which the name begins: the project, for `.github/workflows`.
    pub holder: PathBuf,
    /// The whole name.
    pub name: PathBuf,
}

/// Returns the outermost such name on the way to `path`: what a question about `path` is about.
#[must_use]
pub fn protected_name(path: &Path, site: &Site<'_>) -> Option<ProtectedName> {
    protected_by_path(path, site, |_| true).or_else(|| linked::protected(path, site))
}

/// As [`protected_name`], by the path itself, and by rules alone that `is_meant` says yes to.
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

/// From which to which name of `path` the outermost pattern stands of a rule that `is_meant` says yes to.
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

/// The directory that `change` at `path` makes a git directory, whatever else it comes to: see [`Class::Completes`],
/// which says no more than this where nothing stricter does.
#[must_use]
pub fn completed(path: &Path, change: Change, site: &Site<'_>) -> Option<PathBuf> {
    match repository::completing(path, change, site) {
        Class::Completes(directory) => Some(directory),
        Class::Free | Class::Walk | Class::Judged(..) | Class::Asked(_) | Class::Denied(_) => None,
    }
}

/// By the rules that have names.
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

/// Where the names stand with which a pattern can begin.
fn starts(names: &[&OsStr]) -> Vec<usize> {
    (0..names.len()).filter(|start| names.get(*start).is_some_and(|name| is_known(name))).collect()
}

/// Before which name a pattern of `rule` has to begin.
fn reach(rule: &Rule, names: &[&OsStr]) -> usize {
    let packages = names.iter().position(|name| *name == PACKAGES).unwrap_or(names.len());
    if rule.anywhere == Anywhere::Asked { packages } else { names.len() }
}

/// What other systems for versions write to lies in their own directories, as with git. Mercurial's locks are links that
/// lead nowhere, and by others it finds out whether there are links.
fn other_systems(path: &Path, change: Change) -> Class {
    let is_system = |name: &OsStr| SYSTEMS.iter().any(|known| name.eq_ignore_ascii_case(known));
    let is_inside = || path.iter().rev().skip(1).any(is_system);
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    // As a file it leads to the repository, whose settings are taken then.
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

/// What holds for a name that a rule is about.
pub(crate) fn on_whole(rule: &'static Rule, change: Change) -> Class {
    match (rule.anywhere, change) {
        (Anywhere::Denied, Change::Metadata) | (Anywhere::Judged, _) => Class::Free,
        (Anywhere::Denied, _) => Class::Denied(rule),
        // A directory, or nothing at all, is not executed.
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
    /// The path holds the pattern, from the first of these names to before the second, and perhaps more below it.
    Whole(usize, usize),
}

/// Looks for a pattern that begins before the name number `within`.
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
