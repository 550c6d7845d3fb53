//! Names within git directories.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::change::{Change, Class, normal};
use crate::git::{Content, is_reference};
use crate::rules::{GIT_ATTRIBUTES, GIT_CONFIG, GIT_HOOKS, GIT_INDEX, GIT_POINTERS, GIT_REBASE, Rule};
use crate::site::Site;

/// Names in a git directory that matter by their content, or for what is below them. For all others only links and
/// special files matter.
pub const EXAMINED: [&str; 13] = [
    "MERGE_RR",
    "branches",
    "config",
    "config.worktree",
    "hooks",
    "index",
    "info",
    "modules",
    "rebase-apply",
    "rebase-merge",
    "remotes",
    "sequencer",
    "worktrees",
];

/// The prefix of files from which a split index takes entries.
pub(crate) const SHARED_INDEX: &str = "sharedindex.";

/// Names that matter to git at the end of a path.
pub(crate) const LAST_NAMES: [&str; 8] =
    [".git", ".gitmodules", "alternates", "HEAD", "commondir", "git-rebase-todo", "objects", "refs"];

/// Classifies `change` at `path` by its meaning to git.
pub(crate) fn class(
    path: &Path,
    change: Change,
    site: &Site<'_>,
    holds: &dyn Fn(&'static Rule) -> bool,
) -> Class {
    let mut class = by_last_name(path, change).under(holds);
    let names: Vec<&OsStr> = path.components().filter_map(normal).collect();
    let mut directory = PathBuf::from("/");
    for (index, name) in names.iter().enumerate() {
        // `directory` is what contains `name`; the rest of the path is relative to it.
        let inside = names.get(index..).unwrap_or_default();
        if is_interesting(name) && is_git_directory(&directory, site) {
            class = class.or(within(inside, change).under(holds));
        }
        directory.push(name);
    }
    class.or(elsewhere(&names, change, site).under(holds)).or(completing(path, change, site).under(holds))
}

/// Classifies links and special files in a git directory: git writes through a link, and blocks on a pipe. Through a
/// link the user's git would write branch names or messages of an attacker to a file of the user.
fn elsewhere(names: &[&OsStr], change: Change, site: &Site<'_>) -> Class {
    let class = match change {
        Change::Symlink => Class::Asked(&GIT_POINTERS),
        Change::Special => Class::Denied(&GIT_POINTERS),
        Change::MoveTree => Class::Walk,
        Change::MakeDirectory
        | Change::Write
        | Change::Install
        | Change::Remove
        | Change::MoveAway
        | Change::Link
        | Change::Metadata => return Class::Free,
    };
    let mut directory = PathBuf::from("/");
    let holders = names.split_last().map(|(_, holders)| holders).unwrap_or_default();
    let is_inside = holders.iter().any(|name| {
        directory.push(name);
        is_git_directory(&directory, site)
    });
    if is_inside { class } else { Class::Free }
}

/// Classifies by names with the same meaning everywhere.
fn by_last_name(path: &Path, change: Change) -> Class {
    let Some(name) = path.file_name() else { return Class::Free };
    let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
    if is(".git") {
        if change == Change::MoveTree {
            return Class::Walk;
        }
        return judged(&GIT_POINTERS, Content::GitFile, change);
    }
    let holders = [path.parent(), path.parent().and_then(Path::parent)].map(|holder| holder?.file_name());
    if is("alternates") && holders.map(|name| name.unwrap_or_default()) == ["info", "objects"].map(OsStr::new)
    {
        return judged(&GIT_POINTERS, Content::Alternates, change);
    }
    if is("commondir") {
        return judged(&GIT_POINTERS, Content::CommonDirectory, change);
    }
    if is(".gitmodules") {
        return judged(&GIT_CONFIG, Content::Modules, change);
    }
    if is("git-rebase-todo") {
        return judged(&GIT_REBASE, Content::RebaseTodo, change);
    }
    Class::Free
}

/// Returns true for a link that git creates itself: its test for support of links, which leads to a name beside it that
/// git never creates; and the old form of `HEAD`, which leads to a branch.
#[must_use]
pub fn is_link_of_git(path: &Path, target: &[u8]) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let is_probe =
        name.len() == 7 && name.first() == Some(&b't') && name.iter().all(u8::is_ascii_alphanumeric);
    let is_branch = || {
        let target = std::str::from_utf8(target).unwrap_or_default();
        target.starts_with("refs/heads/") && is_reference(target)
    };
    is_probe && target == b"testing" || name == b"HEAD" && is_branch()
}

/// Returns true for names that matter at the top of a git directory.
fn is_interesting(name: &OsStr) -> bool {
    EXAMINED.iter().any(|known| name.eq_ignore_ascii_case(known)) || is_shared_index(name)
}

/// Returns true if a split index may take entries from a file with this name.
pub(crate) fn is_shared_index(name: &OsStr) -> bool {
    let beginning = name.as_encoded_bytes().get(..SHARED_INDEX.len());
    beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(SHARED_INDEX.as_bytes()))
}

/// Returns true if git may take `directory` for a repository: by its name or its shape.
fn is_git_directory(directory: &Path, site: &Site<'_>) -> bool {
    let is_named = directory.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
    is_named || has_shape(directory, None, site)
}

/// Returns true if `directory` has what git looks for, if `assumed` existed. Git requires `HEAD` in the directory where
/// it begins, but not in the one that `commondir` leads to, which has the settings and hooks.
fn has_shape(directory: &Path, assumed: Option<&OsStr>, site: &Site<'_>) -> bool {
    let has = |name: &str| {
        assumed.is_some_and(|assumed| assumed.eq_ignore_ascii_case(name))
            || (site.exists)(&directory.join(name))
    };
    has("objects") && has("refs") || has("HEAD") && has("commondir")
}

/// Classifies a change at `inside`, relative to a git directory.
fn within(inside: &[&OsStr], change: Change) -> Class {
    let [first, rest @ ..] = inside else { return Class::Free };
    let is = |wanted: &str| first.eq_ignore_ascii_case(wanted);
    match rest {
        _ if is("hooks") => hooks(rest, change),
        [] if is("config") || is("config.worktree") => judged(&GIT_CONFIG, Content::Config, change),
        [] if is("index") || is_shared_index(first) => judged(&GIT_INDEX, Content::Index, change),
        [] if is("MERGE_RR") => judged(&GIT_INDEX, Content::Conflicts, change),
        [name] if is("rebase-merge") || is("rebase-apply") => stopped(name, change),
        [name] if is("sequencer") && name.eq_ignore_ascii_case("opts") => {
            judged(&GIT_REBASE, Content::SequencerOptions, change)
        }
        [name] if is("info") && name.eq_ignore_ascii_case("attributes") => {
            judged(&GIT_ATTRIBUTES, Content::Attributes, change)
        }
        // Git's old descriptions of remotes, each in a file; current versions do not write there.
        [_, ..] if is("remotes") || is("branches") => asked(&GIT_CONFIG, change),
        [] | [_] if is_container(first) => container(change),
        [_, name] if is("worktrees") && name.eq_ignore_ascii_case("gitdir") => {
            judged(&GIT_POINTERS, Content::WayBack, change)
        }
        [_, below @ ..] if is("worktrees") => within(below, change),
        // The repositories in `modules` have the shape of one; only directories between them are left here.
        _ if is("modules") => container(change),
        _ => Class::Free,
    }
}

/// Classifies names of an interrupted operation, which git later passes on as options of programs.
fn stopped(name: &OsStr, change: Change) -> Class {
    let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
    if is("strategy") {
        judged(&GIT_REBASE, Content::Strategy, change)
    } else if is("strategy_opts") {
        judged(&GIT_REBASE, Content::StrategyOptions, change)
    } else if is("apply-opt") {
        judged(&GIT_REBASE, Content::ApplyOptions, change)
    } else {
        container(change)
    }
}

fn asked(rule: &'static Rule, change: Change) -> Class {
    match change {
        Change::Remove | Change::MoveAway | Change::Metadata => Class::Free,
        Change::MakeDirectory
        | Change::Write
        | Change::Install
        | Change::Symlink
        | Change::MoveTree
        | Change::Special
        | Change::Link => Class::Asked(rule),
    }
}

fn hooks(inside: &[&OsStr], change: Change) -> Class {
    let is_sample = |name: &OsStr| name.as_encoded_bytes().ends_with(b".sample");
    match (inside, change) {
        ([name], _) if is_sample(name) => Class::Free,
        ([], Change::MakeDirectory | Change::Remove | Change::Metadata) => Class::Free,
        _ => Class::Denied(&GIT_HOOKS),
    }
}

/// Directories in a git directory whose content has a meaning of its own.
fn is_container(name: &OsStr) -> bool {
    ["branches", "info", "modules", "rebase-apply", "rebase-merge", "remotes", "sequencer", "worktrees"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
}

/// Classifies a change of such a directory: as a link its content would be elsewhere, unjudged.
fn container(change: Change) -> Class {
    match change {
        Change::Symlink | Change::Special => Class::Asked(&GIT_POINTERS),
        Change::MoveTree => Class::Walk,
        Change::MakeDirectory
        | Change::Write
        | Change::Install
        | Change::Remove
        | Change::MoveAway
        | Change::Link
        | Change::Metadata => Class::Free,
    }
}

/// Classifies `path` as [`Class::Completes`] if it is the part that makes its directory a repository.
pub(crate) fn completing(path: &Path, change: Change, site: &Site<'_>) -> Class {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return Class::Free };
    let is_part = ["HEAD", "objects", "refs", "commondir"].iter().any(|part| name.eq_ignore_ascii_case(part));
    if !change.is_new_name() || !is_part || is_git_directory(directory, site) {
        return Class::Free;
    }
    if !has_shape(directory, Some(name), site) {
        return Class::Free;
    }
    if matches!(change, Change::Symlink | Change::Special) {
        Class::Denied(&GIT_POINTERS)
    } else {
        Class::Completes(directory.to_owned())
    }
}

fn judged(rule: &'static Rule, content: Content, change: Change) -> Class {
    match change {
        Change::Write | Change::Install => Class::Judged(rule, content),
        Change::Symlink | Change::Special | Change::MoveTree => Class::Asked(rule),
        // Through a hard link it could be written unjudged.
        Change::Link => Class::Denied(rule),
        // A directory is not one of these files, and a missing file has no effect.
        Change::MakeDirectory | Change::Remove | Change::MoveAway | Change::Metadata => Class::Free,
    }
}
