//! What all records of a file say together.

use std::collections::{HashMap, HashSet};

use crate::record::{CallKey, Named, Record};
use crate::state::{Content, FileId, FileState, State};

/// The content of a file as it was right before a record.
struct Later {
    content: Content,
    size: u64,
    modified: (i64, u32),
    /// The call that may have changed its times since the next older record.
    call: Option<CallKey>,
}

/// Adds the content to records of a mode, of times or of attributes alone, which were made without it.
///
/// The content is that of the next record of the same file, made before the session first changed it. It is left out if
/// size or time show that somebody else has changed the file between the two records.
pub(super) fn complete(entries: &mut [Record]) {
    let mut kept: HashMap<FileId, Later> = HashMap::new();
    for entry in entries.iter_mut().rev() {
        match entry {
            Record::Before { call, was: Named { state: State::File(file), .. }, .. } => {
                let later = kept.get(&file.id).filter(|_| file.content == Content::Unread);
                let is_it = |later: &&Later| {
                    later.size == file.size && (later.modified == file.modified || later.call == Some(*call))
                };
                if let Some(later) = later.filter(is_it) {
                    file.content = later.content.clone();
                }
                let FileState { content, size, modified, .. } = file.clone();
                kept.insert(file.id, Later { content, size, modified, call: Some(*call) });
            }
            Record::Left { call, names } => {
                for file in names.iter().filter_map(|named| named.state.file()) {
                    if let Some(later) = kept.get_mut(&file.id) {
                        let is_it = (later.size, later.modified) == (file.size, file.modified);
                        later.call = is_it.then_some(*call);
                    }
                }
            }
            Record::Before { .. }
            | Record::Moved { .. }
            | Record::Turn { .. }
            | Record::NotMoved { .. }
            | Record::LeftSoFar { .. }
            | Record::Reaches { .. }
            | Record::Ended { .. }
            | Record::Undo { .. }
            | Record::Whole { .. }
            | Record::Undone { .. }
            | Record::NotMade { .. }
            | Record::Opens { .. }
            | Record::Closes { .. } => {}
        }
    }
}

/// The names of one file.
#[derive(Default)]
struct Names {
    /// How many the last call has left, or found.
    all: u32,
    /// How many an interrupted undo may have made.
    wanted: u32,
    /// How many of them the user has made: an undo found more than the call before it had left.
    of_user: u32,
}

/// Returns how many names each file has that the session knows of. What an undo has left, or a redo has given back, includes
/// names that the user had made by then; these are not counted.
pub(super) fn known_links(entries: &[Record]) -> HashMap<FileId, u32> {
    let undoing: HashSet<u64> = entries.iter().filter_map(Record::undo_view).collect();
    let mut all: HashMap<FileId, Names> = HashMap::new();
    let mut found: HashSet<(CallKey, FileId)> = HashSet::new();
    for entry in entries {
        if let Record::Before { call, was, .. } = entry
            && let Some(file) = was.state.file()
            && found.insert((*call, file.id))
        {
            let names = all.entry(file.id).or_insert_with(|| Names { all: file.links, ..Names::default() });
            if undoing.contains(&call.view) {
                names.of_user += file.links.saturating_sub(names.all.max(names.wanted));
            }
        }
        if let Record::Reaches { to: Some(State::File(file)), .. } = entry {
            let names = all.entry(file.id).or_default();
            names.wanted = names.wanted.max(file.links);
        }
        if let Record::Undone { .. } = entry {
            all.values_mut().for_each(|names| names.wanted = 0);
        }
        let Record::Left { call, names: left } = entry else { continue };
        for file in left.iter().filter_map(|named| named.state.file()) {
            let names = all.entry(file.id).or_default();
            let of_user = if undoing.contains(&call.view) { names.of_user } else { 0 };
            *names = Names { all: file.links, wanted: 0, of_user };
        }
    }
    let known = |names: Names| names.all.max(names.wanted).saturating_sub(names.of_user);
    all.into_iter().map(|(id, names)| (id, known(names))).collect()
}
