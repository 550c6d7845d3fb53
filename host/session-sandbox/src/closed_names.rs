//! The directories of closed regions whose names commands see. A program gets `EACCES` there instead of `ENOENT`, so a
//! closed directory does not look like a missing one.
//!
//! These are the neighbours of visible directories: beside the project, and in the home. Files are not among them:
//! programs look for settings in every directory above the project. They fail if there is a `package.json` that they
//! cannot open, and continue if there is none. For the same reason names that begin with a dot stay missing.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use portcullis_decision::profile::FileRight;
use portcullis_decision::{Caller, Effect, RuleSet};
use portcullis_sandbox::{Access, OwnPlace, PathAccess};

/// The rule of the base on closed regions.
pub const CLOSED: &str = "base.closed";
/// Maximum number of these directories. Further ones are missing, like files.
const MOST: usize = 128;
/// Maximum number of entries to look at in one directory.
const MOST_ENTRIES: usize = 4096;

/// Returns the closed directories beside visible ones, in order; none if reading is an allow-list, which hides names,
/// too. `places` and `own` are the paths that the sandbox shows and hides.
pub fn closed_names(rules: &RuleSet, places: &[PathAccess], own: &[OwnPlace]) -> Vec<PathBuf> {
    let closed = &rules.base().closed;
    if closed.iter().any(|region| region == Path::new("/")) {
        return Vec::new();
    }
    let home = rules.base().own.home.as_ref();
    let is_shown = |place: &&PathAccess| matches!(place.access, Access::ReadOnly | Access::ReadWrite);
    let shown = places.iter().filter(is_shown).map(|place| place.path.as_path());
    let shown = shown.chain(own.iter().map(|place| place.path.as_path()));
    let region_of = |path: &Path| {
        let holds = |region: &&PathBuf| region.is_absolute() && path.starts_with(region);
        closed.iter().filter(holds).min_by_key(|region| region.components().count())
    };
    let mut ways: BTreeSet<&Path> = home.iter().map(|home| home.path.as_path()).collect();
    for path in shown {
        if let Some(region) = region_of(path) {
            ways.extend(path.ancestors().skip(1).take_while(|way| way.starts_with(region)));
        }
    }
    let known = places.iter().map(|place| place.path.as_path());
    let known: HashSet<&Path> =
        known.chain(own.iter().map(|place| place.path.as_path())).chain(ways.iter().copied()).collect();
    let is_closed = |path: &Path| {
        let answer = rules.answer(path, FileRight::Read, Caller::Command);
        answer.effect == Effect::Ask
            && answer.rule == CLOSED
            && !known.contains(path)
            && home.is_none_or(|home| !home.is_state(path))
    };
    let mut names: Vec<PathBuf> =
        ways.iter().flat_map(|way| directories(way)).filter(|path| is_closed(path)).collect();
    names.sort_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    names.truncate(MOST);
    names
}

/// Returns the directories in a directory, without those whose names begin with a dot, and without links.
fn directories(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let entries = entries.flatten().take(MOST_ENTRIES);
    let wanted = entries.filter(|entry| {
        !entry.file_name().as_encoded_bytes().starts_with(b".")
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    wanted.map(|entry| directory.join(entry.file_name())).collect()
}
