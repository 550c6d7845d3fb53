//! The entries of `projects.json`, which are keyed by directory.

use std::path::{Path, PathBuf};

use portcullis_settings_format::error::shown;
use portcullis_settings_format::fault::invalid;
use portcullis_settings_format::json::{Member, Node, Value};
use portcullis_settings_format::{ConfigError, Fault, Problem};

use crate::disk::{Disk, follow};
use crate::places::{Places, canonical};

/// Returns the entry with the longest path that contains the workspace.
///
/// A key whose path reaches the workspace through a link inside a project is an error: the agent of that project may
/// have made the link. Neither using the entry nor skipping it is safe, since each could loosen the user's settings. A
/// key through a link inside the workspace itself is skipped: it names a subdirectory, wherever the link leads at the
/// moment.
pub(crate) fn entry_that_holds<'a>(
    document: &'a Node,
    file: &Path,
    places: &Places,
    disk: &dyn Disk,
) -> Result<Option<&'a Member>, ConfigError> {
    closest_entry(document, file, places, disk, None)
}

/// Returns the entry of the closest directory above the one that `key` names.
///
/// Only entries whose path contains the workspace count.
pub(crate) fn entry_above<'a>(
    document: &'a Node,
    file: &Path,
    places: &Places,
    disk: &dyn Disk,
    key: &str,
) -> Result<Option<&'a Member>, ConfigError> {
    let below = canonical(Path::new(key), disk)?;
    closest_entry(document, file, places, disk, Some(&below))
}

fn closest_entry<'a>(
    document: &'a Node,
    file: &Path,
    places: &Places,
    disk: &dyn Disk,
    below: Option<&Path>,
) -> Result<Option<&'a Member>, ConfigError> {
    let Value::Object(members) = &document.value else {
        let fault =
            portcullis_settings_format::check::wrong_type(document, "the whole file", "an object".to_owned());
        return Err(invalid(file, fault));
    };
    let workspace = places.canonical_workspace(disk)?;
    let homes = places.canonical_homes(disk)?;
    let fault = |member: &Member, problem| invalid(file, key_fault(member, problem));
    let mut best: Option<(Key, &Member)> = None;
    for member in members {
        let key = project_key(member, disk).map_err(|problem| fault(member, problem))?;
        let is_above = |path: &Path| path.starts_with(&key.path) && path != key.path;
        if below.is_some_and(|path| !is_above(path)) {
            continue;
        }
        if !workspace.starts_with(&key.path) || key.links.iter().any(|link| is_in(link, &workspace, places)) {
            continue;
        }
        match &best {
            Some((known, _)) if known.path == key.path => match (known.doubt(&homes), key.doubt(&homes)) {
                (None, None) => {
                    let other = best.map(|(_, other)| other.key.as_str()).unwrap_or_default();
                    return Err(fault(member, same_directory(member, other)));
                }
                (Some(_), None) => best = Some((key, member)),
                (_, Some(_)) => {}
            },
            Some((known, _)) if known.path.starts_with(&key.path) => {}
            _ => best = Some((key, member)),
        }
    }
    let Some((key, member)) = best else { return Ok(None) };
    match key.doubt(&homes) {
        None => Ok(Some(member)),
        Some(link) => {
            let reason = format!(
                "it leads here through the link `{}`, which an agent may have made; write `{}` in its place if that \
                 is meant, or remove the link",
                shown(&link.to_string_lossy()),
                shown(&key.path.to_string_lossy())
            );
            Err(fault(member, Problem::BadValue { field: member.key.clone(), reason }))
        }
    }
}

/// Returns true if a link lies inside the workspace and is not on the path by which the session entered it.
fn is_in(link: &Path, workspace: &Path, places: &Places) -> bool {
    link.starts_with(workspace) && !places.workspace.starts_with(link)
}

/// The directory that a key of `projects.json` names.
#[derive(Debug)]
pub(crate) struct Key {
    /// The canonical path.
    pub(crate) path: PathBuf,
    /// Links on the path.
    pub(crate) links: Vec<PathBuf>,
}

impl Key {
    /// Returns the first link on the path that an agent could have made.
    ///
    /// Links directly in a home directory or in a directory above one are trusted, since no project that an agent would
    /// work in lies there.
    fn doubt(&self, homes: &[PathBuf]) -> Option<&Path> {
        let is_doubtful = |link: &&PathBuf| {
            link.parent().is_none_or(|around| !homes.iter().any(|home| home.starts_with(around)))
        };
        self.links.iter().find(is_doubtful).map(PathBuf::as_path)
    }
}

pub(crate) fn same_directory(member: &Member, other: &str) -> Problem {
    let reason = format!("it is the same directory as `{}`", shown(other));
    Problem::BadValue { field: member.key.clone(), reason }
}

/// Reads a key of `projects.json`.
///
/// A key that is not an absolute path is an error: it would never match, and the user would rely on rules without
/// effect.
pub(crate) fn project_key(member: &Member, disk: &dyn Disk) -> Result<Key, Problem> {
    let bad = |reason: String| Problem::BadValue { field: member.key.clone(), reason };
    let path = Path::new(&member.key);
    if !path.is_absolute() {
        return Err(bad("a project is named by its absolute path".to_owned()));
    }
    let followed = follow(path, disk).map_err(|error| bad(error.to_string()))?;
    Ok(Key { path: followed.canonical, links: followed.links.into_iter().map(|link| link.at).collect() })
}

pub(crate) fn key_fault(member: &Member, problem: Problem) -> Fault {
    Fault { at: member.key_at, pointer: portcullis_settings_format::pointer::step("", &member.key), problem }
}
