//! Operations that a call had recorded, and not carried out, when its program was killed.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::disk;
use crate::history::History;
use crate::opened::{Opened, close_again};
use crate::record::{CallKey, Record};
use crate::state::State;
use crate::store::Store;

/// Finishes what a program was doing when it was killed: a broker, or one that undoes. Returns whether there is a new
/// record. The caller holds the lock on names, so no program does that now.
///
/// What it had opened is closed again. A move that was recorded, and not made, gets a record that it did not happen.
/// Without that, undo would look for the files of a moved directory below the new name, miss them, and report them as
/// changed by somebody else.
///
/// # Errors
/// If a name cannot be looked at, or the store not be written.
pub fn settle(store: &Store, history: &History) -> io::Result<bool> {
    close_again(store, history.entries())?;
    let views: BTreeSet<u64> =
        history.entries().iter().filter_map(Record::call).map(|call| call.view).collect();
    let mut is_settled = false;
    for view in views {
        // Each move of a program is recorded and made before its next record.
        if let Some(Record::Moved { call, from, to, what, .. }) = last_of(history, view)
            && is_only_at(store, (from, to), what)?
        {
            store.append(&[Record::NotMoved { call: *call }])?;
            is_settled = true;
        }
    }
    Ok(is_settled)
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

/// Returns true if this is at its former path, and not at the new one.
fn is_only_at(store: &Store, (from, to): (&Path, &Path), what: &State) -> io::Result<bool> {
    match is_at(store, from, what).and_then(|is_there| Ok(is_there && !is_at(store, to, what)?)) {
        // Where it cannot be looked at, it cannot be moved either.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
        is_only_at => is_only_at,
    }
}

/// Returns true if this is at a path.
fn is_at(store: &Store, path: &Path, what: &State) -> io::Result<bool> {
    let mut opened = Opened::new(store);
    let found = match disk::look_at(path) {
        Err(Errno::ACCESS) => {
            opened.open_the_way(path, &|_, _| true);
            disk::look_at(path)?
        }
        found => found?,
    };
    Ok(match what.id() {
        Some(id) => found.id() == Some(id),
        None => found == *what,
    })
}
