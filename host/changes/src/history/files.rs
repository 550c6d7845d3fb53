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
            Record::Before { call, was: Named { state: State::File(file), .. } } => {
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

/// Returns how many names each file has that the session knows of: those that its last call has left. A redo gives back
/// what was there before the undo, also the names that the user had made by then; so of what undoing has left, the
/// smallest number counts.
pub(super) fn known_links(entries: &[Record]) -> HashMap<FileId, u32> {
    let mut undoing: HashSet<u64> = HashSet::new();
    let (mut of_calls, mut others) = (HashMap::new(), HashMap::new());
    let mut note = |file: &FileState| {
        others
            .entry(file.id)
            .and_modify(|links: &mut u32| *links = file.links.min(*links))
            .or_insert(file.links);
    };
    for entry in entries {
        if let Record::Undo { call, .. } = entry {
            undoing.insert(call.view);
        }
        if let Record::Before { was, .. } = entry {
            was.state.file().into_iter().for_each(&mut note);
        }
        let Record::Left { call, names } = entry else { continue };
        for file in names.iter().filter_map(|named| named.state.file()) {
            if undoing.contains(&call.view) {
                note(file);
            } else {
                of_calls.insert(file.id, file.links);
            }
        }
    }
    others.extend(of_calls);
    others
}
