//! What a call has changed, from its records.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;

use crate::paths::moved;
use crate::record::{CallKey, Record};
use crate::state::{FileId, Lost, State};

/// The names that a call has changed, as they are called at its end, with their first states. Files that it only moved
/// are not among them: what is known of them moves with them.
#[derive(Default)]
pub(crate) struct Touched<'a> {
    pub(crate) names: BTreeMap<OsString, &'a State>,
    pub(crate) has_moved: bool,
    pub(crate) lost: Vec<(PathBuf, Lost)>,
}

/// Returns what a call has changed, according to these records.
pub(crate) fn touched(records: &[Record], call: CallKey) -> Touched<'_> {
    let mut all = Touched::default();
    for (position, record) in records.iter().enumerate() {
        match record {
            Record::Before { call: of, was, .. } if *of == call => {
                all.names.entry(was.path.as_os_str().to_owned()).or_insert(&was.state);
                all.lost.extend(was.state.lost().map(|why| (was.path.clone(), why)));
            }
            Record::Moved { call: of, from, to, exchange, .. } if *of == call => {
                if fails(records, position, call) {
                    continue;
                }
                moved(&mut all.names, from, to, *exchange);
                all.has_moved = true;
            }
            Record::Moved { call: of, from, to, exchange, .. } => {
                if !fails(records, position, *of) {
                    moved(&mut all.names, from, to, *exchange);
                }
            }
            Record::Before { .. }
            | Record::Turn { .. }
            | Record::NotMoved { .. }
            | Record::Left { .. }
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
    all
}

/// The state of each name right after the last step of an undo, or of a commit, that changed it. Moves rename the keys. The
/// user may have changed the file again before the undo ended.
#[derive(Default)]
pub(crate) struct LeftBySteps {
    pub(crate) names: BTreeMap<PathBuf, State>,
    /// The names at which a step was not made.
    pub(crate) not_made: HashSet<PathBuf>,
}

/// Returns what the steps of an undo have left, according to these records.
pub(crate) fn left_by_steps(records: &[Record], call: CallKey) -> LeftBySteps {
    let LeftBySteps { mut names, mut not_made } = LeftBySteps::default();
    // What earlier steps have left at a name that a step is about to change.
    let mut before: HashMap<PathBuf, State> = HashMap::new();
    // A step at one name of a file changes what its other names lead to.
    let mut files: HashMap<FileId, State> = HashMap::new();
    for (position, record) in records.iter().enumerate() {
        match record {
            Record::LeftSoFar { call: of, left } if *of == call => {
                files.extend(left.state.file().map(|file| (file.id, left.state.clone())));
                names.insert(left.path.clone(), left.state.clone());
            }
            // A directory has no such record after its step.
            Record::Reaches { call: of, path, .. } if *of == call => {
                before.extend(names.remove_entry(path));
            }
            Record::NotMade { call: of, path } if *of == call => {
                names.extend(before.remove_entry(path));
                not_made.insert(path.clone());
            }
            Record::Moved { call: of, from, to, exchange, .. } if !fails(records, position, *of) => {
                moved(&mut names, from, to, *exchange);
            }
            Record::Moved { .. }
            | Record::Before { .. }
            | Record::Turn { .. }
            | Record::NotMoved { .. }
            | Record::Left { .. }
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
    for state in names.values_mut() {
        if let Some(newest) = state.file().and_then(|file| files.get(&file.id)) {
            *state = newest.clone();
        }
    }
    LeftBySteps { names, not_made }
}

/// Returns true if the move at `position` is said not to have happened.
pub(crate) fn fails(records: &[Record], position: usize, call: CallKey) -> bool {
    let later = records.iter().skip(position + 1);
    let next = later.filter(|record| match record {
        Record::Moved { call: of, .. } | Record::NotMoved { call: of } => *of == call,
        Record::Before { .. }
        | Record::Turn { .. }
        | Record::Left { .. }
        | Record::LeftSoFar { .. }
        | Record::Reaches { .. }
        | Record::Ended { .. }
        | Record::Undo { .. }
        | Record::Whole { .. }
        | Record::Undone { .. }
        | Record::NotMade { .. }
        | Record::Opens { .. }
        | Record::Closes { .. } => false,
    });
    matches!(next.into_iter().next(), Some(Record::NotMoved { .. }))
}
