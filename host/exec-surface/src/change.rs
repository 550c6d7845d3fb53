//! A change at a path, and its class.

use std::ffi::OsStr;
use std::path::{Component, PathBuf};

use crate::git::Content;
use crate::rules::{Rule, Treatment};

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
    /// [`Treatment::Asked`].
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

/// A name that a rule under [`Treatment::Asked`] protects, as paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedName {
    /// The directory that contains the name: the project, for `.github/workflows`.
    pub holder: PathBuf,
    /// The whole name.
    pub name: PathBuf,
}

/// Classifies a change of a name that a rule lists.
pub(crate) fn on_whole(rule: &'static Rule, change: Change) -> Class {
    match (rule.anywhere, change) {
        (Treatment::Denied, Change::Metadata) | (Treatment::Judged, _) => Class::Free,
        (Treatment::Denied, _) => Class::Denied(rule),
        // A directory, or a missing file, is not executed.
        (Treatment::Asked, Change::MakeDirectory | Change::Remove | Change::MoveAway | Change::Metadata) => {
            Class::Free
        }
        (Treatment::Asked, _) => Class::Asked(rule),
    }
}

/// Returns the name of a component; `None` for the root and for `.` and `..`.
pub(crate) fn normal(component: Component<'_>) -> Option<&OsStr> {
    match component {
        Component::Normal(name) => Some(name),
        Component::RootDir | Component::Prefix(_) | Component::CurDir | Component::ParentDir => None,
    }
}
