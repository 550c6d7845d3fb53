//! What a call has changed, from its records.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::paths::moved;
use crate::record::{CallKey, Record};
use crate::state::{Lost, State};

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
            Record::Before { call: of, was } if *of == call => {
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
