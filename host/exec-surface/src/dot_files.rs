//! Dot files at the root of a project, and in a home directory.
//!
//! Tools look for their settings in dot files at the root of a project, and shells and desktops in those of a home. No
//! list of them is complete, so an unknown one counts as executed unless it is known to be harmless.

use std::ffi::OsStr;
use std::path::Path;

use crate::change::{Change, Class, ProtectedName, normal, on_whole};
use crate::name_index::is_harmless_name;
use crate::rules::{HOME_FILES, NEW_DOT_FILES, PACKAGES, Rule};
use crate::site::Site;
use crate::table::{self, is_below};

/// Classifies `change` at `path` by the position of dot names in it.
pub(crate) fn class(path: &Path, change: Change, site: &Site<'_>) -> Class {
    match protected(path, site) {
        None => Class::Free,
        Some((rule, _)) if rule == &HOME_FILES => on_whole(rule, change),
        Some((rule, _)) => new_file(rule, path, change, site),
    }
}

/// Classifies a new dot file in a project. A file that existed when the session began is the project's own, and so is
/// one that replaces it.
fn new_file(rule: &'static Rule, path: &Path, change: Change, site: &Site<'_>) -> Class {
    match change {
        Change::Write | Change::Install if (site.exists)(path) || (site.was_there)(path) => Class::Free,
        // A hard link to an existing file gives no more than the file itself.
        Change::Link => Class::Free,
        Change::MakeDirectory
        | Change::Write
        | Change::Install
        | Change::Symlink
        | Change::MoveTree
        | Change::Special
        | Change::Remove
        | Change::MoveAway
        | Change::Metadata => on_whole(rule, change),
    }
}

/// Returns the outermost relevant dot name on the way to `path`, with its rule.
pub(crate) fn protected(path: &Path, site: &Site<'_>) -> Option<(&'static Rule, ProtectedName)> {
    let root = site.root(path)?;
    let mut holder = root.to_owned();
    for name in path.strip_prefix(root).ok()?.components().filter_map(normal) {
        let below = path.strip_prefix(&holder).unwrap_or(path);
        let found = |rule, length| {
            let name = below.iter().take(length).fold(holder.clone(), |path, name| path.join(name));
            Some((rule, ProtectedName { holder: holder.clone(), name }))
        };
        if site.homes.contains(&holder) {
            if is_dot(name) {
                return if is_any(below, table::harmless_at_home()) { None } else { found(&HOME_FILES, 1) };
            }
            if let Some(entry) = table::home().iter().find(|entry| is_below(below, entry.name)) {
                return found(&HOME_FILES, entry.name.split('/').count());
            }
        }
        if name == PACKAGES {
            return None;
        }
        if is_dot(name) {
            if is_any(below, table::harmless()) {
                return None;
            }
            if holder == site.workspace || is_project(&holder, site) {
                return found(&NEW_DOT_FILES, 1);
            }
        }
        holder.push(name);
    }
    None
}

/// Returns true if a rule of this module could apply to `path`, by its names alone.
pub(crate) fn may_matter(path: &Path, site: &Site<'_>) -> bool {
    let is_unknown_dot = |name: &OsStr| is_dot(name) && !is_harmless_name(name);
    path.iter().any(is_unknown_dot) || site.homes.iter().any(|home| path.starts_with(home))
}

/// Returns true if tools take `directory` for the root of a project.
fn is_project(directory: &Path, site: &Site<'_>) -> bool {
    table::projects().iter().any(|entry| (site.exists)(&directory.join(entry.name)))
}

fn is_dot(name: &OsStr) -> bool {
    name.as_encoded_bytes().first() == Some(&b'.')
}

fn is_any(below: &Path, table: &[table::Entry]) -> bool {
    table.iter().any(|entry| is_below(below, entry.name))
}
