//! Classifies a change at a path by the path's own names and by the files beside it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::change::{Change, Class, ProtectedName, normal, on_whole};
use crate::name_index::{has_known_name, is_known};
use crate::rules::{PACKAGES, RULES, Rule, Treatment};
use crate::site::Site;
use crate::table::is_like;
use crate::{dot_files, git_directory, other_vcs};

/// As [`class_under`](crate::class_under), by the path itself and not by links that lead there.
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
        .or(other_vcs::class(path, change).under(holds))
        .or(git_directory::class(path, change, site, holds));
    // If a rule lists this very name, only that rule asks, and disabling it suffices.
    if may_be_a_dot_file && named(relative, |_| true).is_none() {
        class.or(dot_files::class(path, change, site).under(holds))
    } else {
        class
    }
}

/// As [`protected_name`](crate::protected_name), by the path itself, and only by the rules for which `is_meant` returns true.
pub(crate) fn protected_by_path(
    path: &Path,
    site: &Site<'_>,
    is_meant: impl Fn(&'static Rule) -> bool,
) -> Option<ProtectedName> {
    let relative = site.relative(path);
    let Some((start, end)) = named(relative, |rule| rule.anywhere == Treatment::Asked && is_meant(rule))
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
    if rule.anywhere == Treatment::Asked { packages } else { names.len() }
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
