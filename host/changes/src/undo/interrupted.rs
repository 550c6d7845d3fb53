//! What an undoing, or a whole call, leaves open when it is killed.

use std::io;
use std::path::Path;

use crate::disk;
use crate::history::History;
use crate::record::{CallKey, Record};
use crate::state::State;
use crate::store::Store;

/// Records that the last move did not happen, if the program was killed between the record and the move. Returns
/// whether it did so.
///
/// Without this, undo would look for the files of a moved directory below the new name, miss them, and report them as
/// changed by somebody else.
pub(super) fn settle_last_move(store: &Store, history: &History, call: CallKey) -> io::Result<bool> {
    match last_of(history, call.view) {
        Some(Record::Moved { call, from, to, what, .. }) if is_at(from, what)? && !is_at(to, what)? => {
            store.append(&[Record::NotMoved { call: *call }])?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Returns a key for the call that puts an interrupted one back. Both have the same view, so that a move of either one
/// is found if that is interrupted as well.
pub(super) fn call_after(store: &Store, history: &History, call: CallKey) -> CallKey {
    let own = store.own_call();
    if own.view == call.view {
        return own;
    }
    // The program that has made the others has ended.
    let of_view = history.entries().iter().filter_map(Record::call).filter(|of| of.view == call.view);
    let last = of_view.map(|of| of.number).max().unwrap_or(call.number);
    CallKey { view: call.view, number: last.saturating_add(1) }
}

fn last_of(history: &History, view: u64) -> Option<&Record> {
    history.entries().iter().rev().find(|entry| entry.call().is_some_and(|of| of.view == view))
}

/// Returns true if this is at a path.
fn is_at(path: &Path, what: &State) -> io::Result<bool> {
    let found = disk::look_at(path)?;
    Ok(match what.id() {
        Some(id) => found.id() == Some(id),
        None => found == *what,
    })
}
