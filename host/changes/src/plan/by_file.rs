//! What the records say of each file, whatever its names.

use std::collections::HashMap;
use std::path::Path;

use super::version::{Pending, Recorded};
use crate::history::History;
use crate::paths::is_temporary;
use crate::record::Record;
use crate::state::{FileId, Lost};

/// The states that were recorded for each file with several names, with these.
pub(super) type ByFile<'p, 'a> = HashMap<FileId, Vec<(&'p Path, Recorded<'a>)>>;

/// Returns the states of files with several names among those of names.
pub(super) fn by_file<'p, 'a>(names: &'p Pending<'a>) -> ByFile<'p, 'a> {
    let mut found = ByFile::new();
    for (path, states) in names.iter().filter(|(path, _)| !is_temporary(path)) {
        for recorded in states {
            let Some(file) = recorded.was.file().filter(|file| file.links > 1) else { continue };
            found.entry(file.id).or_default().push((path.as_path(), *recorded));
        }
    }
    found
}

/// Returns the files with contents that calls have found from `start` on and could not keep, with the reasons and names.
pub(super) fn not_kept(history: &History, start: usize) -> HashMap<FileId, (Lost, &Path)> {
    let entries = history.entries().get(start..).unwrap_or_default();
    let states = entries.iter().filter_map(|entry| {
        let Record::Before { was, .. } = entry else { return None };
        Some((was.state.id()?, (was.state.lost()?, was.path.as_path())))
    });
    states.collect()
}
