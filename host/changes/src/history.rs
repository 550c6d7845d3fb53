//! The history in a journal: its entries, its turns and calls, and the state of each path at the end of its last call.

mod files;
mod left_before;
mod open;
pub(crate) mod points;
mod times;
mod traces;
mod undone;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use files::{complete, known_links};
use left_before::{Known, has_several_names};
use open::Open;
pub(crate) use times::is_of_call;
use times::since_1970;
use traces::{Found, Left, SoFar, Traces, state_in, state_left};

use crate::paths::moved;
use crate::record::{CallKey, Named, Record};
use crate::state::{FileId, FileState, State};
use crate::touched::fails;

/// The seconds within which the commands of a killed session have ended.
const KILLED_WITHIN: i64 = 2;

/// A journal that was read.
#[derive(Debug)]
pub struct History {
    entries: Vec<Record>,
    /// How many lines are damaged.
    pub damaged: usize,
    /// When the journal was last written.
    pub(crate) written: (i64, u32),
    /// The records of each path that calls have changed. Moves rename the keys, so they are the present paths.
    names: BTreeMap<PathBuf, Traces>,
    /// What the last call that ended left of a file, by whichever of its names.
    files_left: HashMap<FileId, Left>,
    /// The last record of a file before a change.
    found: HashMap<FileId, Found>,
    /// What an undo that runs has made of a file, by whichever of its names.
    files: HashMap<FileId, SoFar>,
    /// How many names each file has that the session knows of.
    links: HashMap<FileId, u32>,
    /// The state that earlier calls had left at a path when a call recorded it, by the position of that record.
    left_before: HashMap<usize, Left>,
    /// The position at which each call ended.
    ended: HashMap<CallKey, usize>,
    /// The positions of records of names that an interrupted undo has not changed.
    untouched: HashSet<usize>,
}

/// The state that undo expects at a path now, according to the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected<'a> {
    /// A call left this.
    Left(&'a State),
    /// An undo was about to make the second of the first, and may have stopped at any point.
    Between(&'a State, &'a State),
    /// A later call found the file by another name, which it removed.
    Written(Written<'a>),
    /// A call that did not end may have left anything.
    Anything,
    /// No call left anything there.
    Nothing,
}

/// A file that a call may have written by a name that it removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written<'a> {
    /// What the calls before it have left.
    pub(crate) left: &'a State,
    /// What the call found.
    pub(crate) found: &'a FileState,
    /// When the call ended, in milliseconds since 1970.
    pub(crate) end: u64,
    /// Whether it was an undo, or the commit of a branch.
    pub(crate) is_undo: bool,
}

/// A version of a file: with its size, and when it was last written: seconds and nanoseconds.
pub(crate) type FileVersion = (FileId, u64, (i64, u32));

impl History {
    /// Builds the history from the entries of a journal, the number of damaged ones, and the time of its last write.
    #[must_use]
    pub fn from_records((mut entries, damaged): (Vec<Record>, usize), written: (i64, u32)) -> Self {
        complete(&mut entries);
        let mut names: BTreeMap<PathBuf, Traces> = BTreeMap::new();
        let mut left_before = HashMap::new();
        let mut ended: HashMap<CallKey, usize> = HashMap::new();
        let mut open = Open::default();
        let mut untouched = HashSet::new();
        let mut changing: HashSet<(CallKey, FileId)> = HashSet::new();
        let mut files = HashMap::new();
        let mut files_left: HashMap<FileId, Left> = HashMap::new();
        let mut found: HashMap<FileId, Found> = HashMap::new();
        for (position, entry) in entries.iter().enumerate() {
            open.note(entry, position);
            match entry {
                Record::Before { call, was, .. } => {
                    let traces = names.entry(was.path.clone()).or_default();
                    // By another name, the call itself has changed the file since it was left.
                    let is_first = was.state.file().is_none_or(|file| changing.insert((*call, file.id)));
                    let former = was.state.file().and_then(|file| found.get(&file.id)).copied();
                    let same = former.filter(|former| former.call == *call);
                    let first = same.map_or(position, |former| former.first);
                    let now = Found { first, at: position, call: *call, is_undo: open.has(*call) };
                    found.extend(was.state.file().map(|file| (file.id, now)));
                    let former = former.filter(|former| former.call != *call);
                    let known = Known { entries: &entries, files_left: &files_left, ended: &ended };
                    let left = known.left_before(traces.left, &was.state, former);
                    let is_again = !is_first && !open.has(*call);
                    let of_first = is_again.then(|| edit_found(&entries, &left_before, first, &was.state));
                    let left = left.filter(|_| is_first && !traces.is_open(&ended)).or(of_first.flatten());
                    left_before.extend(left.map(|left| (position, left)));
                    if open.has(*call) {
                        traces.announced = Some(position);
                    } else {
                        traces.note(*call, position, &ended);
                    }
                }
                Record::Moved { call, from, to, what, exchange } if !fails(&entries, position, *call) => {
                    let former = what.id().and_then(|id| found.get(&id)).copied();
                    let former = former.filter(|former| former.call != *call);
                    let known = Known { entries: &entries, files_left: &files_left, ended: &ended };
                    let of_file = known.left_before(None, what, former);
                    let is_changed = what.id().is_some_and(|id| changing.contains(&(*call, id)));
                    let first = what.id().and_then(|id| found.get(&id)).map_or(position, |found| found.first);
                    let of_first = edit_found(&entries, &left_before, first, what);
                    let left = if is_changed { of_first } else { of_file };
                    left_before.extend(left.map(|left| (position, left)));
                    moved(&mut names, from, to, *exchange);
                    let left = |left| Traces { left: Some(left), ..Traces::default() };
                    if !exchange {
                        names.insert(from.clone(), left(Left::Nothing));
                    }
                    // A move does not change the file, so the state that calls left moves along.
                    names.entry(to.clone()).or_insert_with(|| left(of_file.unwrap_or(Left::Moved(position))));
                }
                Record::Left { call, names: left } => {
                    for (number, named) in left.iter().enumerate() {
                        let traces = names.entry(named.path.clone()).or_default();
                        traces.left = Some(Left::Named(position, number));
                        files_left
                            .extend(named.state.file().map(|file| (file.id, Left::Named(position, number))));
                        traces.calls.retain(|(of, _)| of != call);
                        traces.announced = None;
                    }
                }
                Record::Reaches { call, path, to } => {
                    let traces = names.entry(path.clone()).or_default();
                    traces.reach(*call, position, &entries, &ended);
                    // A file that only loses a name does not change.
                    let so_far = traces.so_far.filter(|_| to.as_ref().is_some_and(|to| to.file().is_some()));
                    files.extend(so_far.and_then(|so_far| so_far.file(&entries)).zip(so_far));
                }
                // An undo that was put back leaves each path as the calls before it did.
                Record::Undone { call, complete: false, .. } => {
                    for traces in names.values_mut() {
                        untouched.extend(traces.announced);
                        traces.forget(*call);
                    }
                    files.clear();
                }
                Record::NotMade { call, path } => {
                    if let Some(traces) = names.get_mut(path) {
                        traces.step_is_not_made(*call);
                        untouched.extend(traces.announced);
                    }
                }
                Record::LeftSoFar { left, .. } => {
                    let so_far = SoFar::Left(position);
                    names.entry(left.path.clone()).or_default().step_is_made(so_far);
                    files.extend(left.state.file().map(|file| (file.id, so_far)));
                }
                Record::Ended { call, .. } => {
                    ended.insert(*call, position);
                }
                Record::Moved { .. }
                | Record::Turn { .. }
                | Record::NotMoved { .. }
                | Record::Undo { .. }
                | Record::Whole { .. }
                | Record::Undone { .. }
                | Record::Opens { .. }
                | Record::Closes { .. } => {}
            }
        }
        let links = known_links(&entries);
        untouched.extend(names.values().filter_map(|traces| traces.announced));
        Self {
            entries,
            damaged,
            written,
            names,
            files_left,
            found,
            files,
            links,
            left_before,
            ended,
            untouched,
        }
    }

    /// Returns the entries.
    #[must_use]
    pub fn entries(&self) -> &[Record] {
        &self.entries
    }

    /// Returns what the session left at a path.
    pub(crate) fn expected(&self, path: &Path) -> Expected<'_> {
        let Some(traces) = self.names.get(path) else { return Expected::Nothing };
        if traces.is_open(&self.ended) {
            return traces.so_far.and_then(|so_far| self.so_far(so_far)).unwrap_or(Expected::Anything);
        }
        let by_path = traces.left.and_then(|left| self.state(left));
        let of_file = by_path
            .and_then(|state| self.files_left.get(&state.file()?.id))
            .filter(|other| has_several_names([by_path, self.state(**other)]));
        let left = Left::newer(traces.left, of_file.copied());
        let Some((left, state)) = left.zip(left.and_then(|left| self.state(left))) else {
            return Expected::Nothing;
        };
        if let Some(Found { first, at, call, is_undo }) =
            state.file().and_then(|file| self.found.get(&file.id))
            && left.is_before(*at)
            && let Some(found) = state_in(&self.entries, *first)
            && has_several_names([Some(state), Some(found)])
            && let State::File(found) = found
            && let Some(Record::Ended { at: end, .. }) =
                self.ended.get(call).and_then(|end| self.entries.get(*end))
        {
            return Expected::Written(Written { left: state, found, end: *end, is_undo: *is_undo });
        }
        Expected::Left(state)
    }

    /// Returns how many names a file has that the session knows of. The user may have made others.
    pub(crate) fn known_links(&self, id: FileId) -> Option<u32> {
        self.links.get(&id).copied()
    }

    fn so_far(&self, so_far: SoFar) -> Option<Expected<'_>> {
        let of_file = so_far.file(&self.entries).and_then(|file| self.files.get(&file));
        match of_file.copied().filter(|other| other.at() > so_far.at()).unwrap_or(so_far) {
            SoFar::Left(position) => state_in(&self.entries, position).map(Expected::Left),
            SoFar::Between(earlier, reaches) => {
                let (earlier, to) = state_in(&self.entries, earlier).zip(state_in(&self.entries, reaches))?;
                Some(Expected::Between(earlier, to))
            }
        }
    }

    /// Returns the end of the last call that may have written the present content of a file: seconds and nanoseconds. A
    /// call that found the file with this size and time did not write it.
    pub(crate) fn last_write(&self, now: &FileState) -> Option<(i64, u32)> {
        let wrote = self.changes_of(now.id).filter(|(position, _)| !self.is_as_found(now, *position));
        wrote.map(|(_, call)| self.end_of(call)).max()
    }

    /// Returns when calls, or undos of them, may last have changed a file, including its mode and its number of names.
    pub(crate) fn last_change(&self, id: FileId) -> Option<(i64, u32)> {
        let moves = self.entries.iter().filter_map(|entry| {
            let Record::Moved { call, what, .. } = entry else { return None };
            (what.id() == Some(id)).then(|| self.end_of(*call))
        });
        moves.chain(self.last_change_without_moves(id)).max()
    }

    /// Returns when calls, or undos of them, may last have changed a file, other than by a move.
    pub(crate) fn last_change_without_moves(&self, id: FileId) -> Option<(i64, u32)> {
        let calls = self.entries.iter().filter_map(|entry| {
            let (Record::Before { call, was: named, .. } | Record::LeftSoFar { call, left: named }) = entry
            else {
                return None;
            };
            (named.state.id() == Some(id)).then(|| self.end_of(*call))
        });
        calls.max()
    }

    /// Returns when a call ended: seconds and nanoseconds.
    pub(crate) fn end_of(&self, call: CallKey) -> (i64, u32) {
        match self.ended.get(&call).and_then(|end| self.entries.get(*end)) {
            Some(Record::Ended { at, .. }) => since_1970(*at),
            // A call that did not end may have changed it until the journal ends.
            _ => self.written,
        }
    }

    /// Returns when the last call, undo or commit ended: seconds and nanoseconds. If it has no end, it was killed.
    pub(crate) fn last_end(&self) -> (i64, u32) {
        // These change nothing that calls have left.
        let is_note = |entry: &&Record| {
            matches!(
                entry,
                Record::Turn { .. }
                    | Record::Undone { complete: true, .. }
                    | Record::Opens { .. }
                    | Record::Closes { .. }
            )
        };
        let last = self.entries.iter().rev().find(|entry| !is_note(entry));
        if let Some(Record::Ended { at, .. }) = last { since_1970(*at) } else { self.killed_until() }
    }

    /// Returns until when a call that has no end may have changed something.
    pub(crate) fn killed_until(&self) -> (i64, u32) {
        let (seconds, nanoseconds) = self.written;
        (seconds + KILLED_WITHIN, nanoseconds)
    }

    /// Returns true if a call is a step of an undo, a redo, or of putting one back.
    pub(crate) fn is_of_undo(&self, call: CallKey) -> bool {
        self.entries.iter().filter_map(Record::undo_view).any(|view| view == call.view)
    }

    /// Returns what the last call that may have written the present version of a file, or the last undo, has left of the
    /// file; `None` if that call has removed the name by which it wrote, or did not end.
    pub(crate) fn left_of(&self, now: &FileState) -> Option<&FileState> {
        let (found, changed): (Vec<_>, Vec<_>) =
            self.changes_of(now.id).partition(|(position, _)| self.is_as_found(now, *position));
        let last_change = changed.iter().map(|(position, _)| *position).max();
        let since = self.entries.get(last_change.unwrap_or_default()..).unwrap_or_default();
        since.iter().rev().find_map(|entry| {
            let Record::Left { call, names } = entry else { return None };
            // A call that found this version did not write it.
            let names = if found.iter().any(|(_, of)| of == call) { &[][..] } else { names };
            names.iter().filter_map(|named| named.state.file()).find(|file| file.id == now.id)
        })
    }

    /// Returns true if the record at `position` found a file with the size and the time that it has now.
    fn is_as_found(&self, now: &FileState, position: usize) -> bool {
        let found = state_in(&self.entries, position).and_then(State::file);
        found.is_some_and(|found| (found.size, found.modified) == (now.size, now.modified))
    }

    /// Returns the states in which calls have found or left a file.
    pub(crate) fn states_of(&self, id: FileId) -> impl Iterator<Item = &FileState> {
        let states = self.entries.iter().flat_map(|entry| {
            if let Record::Left { names, .. } = entry {
                return names.as_slice();
            }
            let (Record::Before { was: named, .. } | Record::LeftSoFar { left: named, .. }) = entry else {
                return &[];
            };
            std::slice::from_ref(named)
        });
        states.filter_map(|named| named.state.file()).filter(move |file| file.id == id)
    }

    /// Returns the records of calls that may have changed a file by any of its names: their positions and calls.
    fn changes_of(&self, id: FileId) -> impl Iterator<Item = (usize, CallKey)> {
        let undoing: HashSet<u64> = self.entries.iter().filter_map(Record::undo_view).collect();
        let is_whole = |call: &CallKey| {
            self.entries.iter().any(|entry| matches!(entry, Record::Whole { call: of } if of == call))
        };
        self.entries.iter().enumerate().filter_map(move |(position, entry)| {
            let Record::Before { call, was, .. } = entry else { return None };
            // The commit of a branch writes no file by another name than it records.
            let is_it = was.state.id() == Some(id) && !undoing.contains(&call.view) && !is_whole(call);
            is_it.then_some((position, *call))
        })
    }

    /// Returns true if the record at `position` is of a name that an interrupted undo has not changed.
    pub(crate) fn is_untouched(&self, position: usize) -> bool {
        self.untouched.contains(&position)
    }

    /// Returns true if a path is as the session has left it, as far as that is known.
    pub(crate) fn has_left(&self, path: &Path, found: &State) -> bool {
        match self.expected(path) {
            Expected::Left(left) => found.is_still(left),
            Expected::Between(State::Directory(_), _) | Expected::Between(_, State::Directory(_)) => true,
            Expected::Between(earlier, to) => found.is_still(earlier) || found.is_still(to),
            Expected::Written(Written { found: then, end, .. }) => {
                found.file().is_some_and(|now| is_of_call(now, then, end))
                    || found.is_still(&State::File(then.clone()))
            }
            Expected::Anything => true,
            Expected::Nothing => false,
        }
    }

    /// Returns the paths at which the session may have left a directory without all of these permissions, in their order.
    pub(crate) fn without_permissions(&self, wanted: u32) -> impl Iterator<Item = &Path> {
        self.names.keys().map(PathBuf::as_path).filter(move |path| match self.expected(path) {
            Expected::Left(State::Directory(left)) => left.mode & wanted != wanted,
            Expected::Left(_) | Expected::Written(..) | Expected::Nothing => false,
            Expected::Anything | Expected::Between(..) => true,
        })
    }

    /// Returns the state that earlier calls had left at the path of the record at `position`. `None` if no earlier call
    /// had changed the path, or if one of them was still running: the session itself then made the recorded state.
    pub(crate) fn left_before(&self, position: usize) -> Option<&State> {
        self.left_before.get(&position).and_then(|left| self.state(*left))
    }

    /// Returns the versions of files with several names that calls have found, and that the user or another program had
    /// written after earlier calls.
    pub(crate) fn edits_by_several_names(&self) -> HashSet<FileVersion> {
        let undoing: HashSet<u64> = self.entries.iter().filter_map(Record::undo_view).collect();
        let version = |file: &FileState| (file.id, file.size, file.modified);
        let mut edits = HashSet::new();
        // The files of each call that has not ended, and when the last call with a file ended.
        let mut files: HashMap<CallKey, Vec<FileId>> = HashMap::new();
        let mut ends: HashMap<FileId, (i64, u32)> = HashMap::new();
        for (position, entry) in self.entries.iter().enumerate() {
            match entry {
                Record::Before { call, was: Named { state, .. }, .. }
                | Record::LeftSoFar { call, left: Named { state, .. } }
                | Record::Moved { call, what: state, .. } => {
                    let Some(now) = state.file() else { continue };
                    let left = self.left_before(position).filter(|_| !undoing.contains(&call.view));
                    let is_changed = left.is_some_and(|left| {
                        left.file().map(version) != Some(version(now))
                            && has_several_names([Some(state), Some(left)])
                    });
                    if is_changed && ends.get(&now.id).is_none_or(|end| now.modified > *end) {
                        edits.insert(version(now));
                    }
                    files.entry(*call).or_default().push(now.id);
                }
                Record::Ended { call, at, .. } => {
                    let ended = files.remove(call).unwrap_or_default();
                    ends.extend(ended.into_iter().map(|id| (id, since_1970(*at))));
                }
                Record::Turn { .. }
                | Record::NotMoved { .. }
                | Record::Left { .. }
                | Record::Reaches { .. }
                | Record::Undo { .. }
                | Record::Whole { .. }
                | Record::Undone { .. }
                | Record::NotMade { .. }
                | Record::Opens { .. }
                | Record::Closes { .. } => {}
            }
        }
        edits
    }

    /// Returns the state of the name in the record at `position`.
    pub(crate) fn recorded(&self, position: usize) -> Option<&State> {
        state_in(&self.entries, position)
    }

    fn state(&self, left: Left) -> Option<&State> {
        state_left(&self.entries, left)
    }

    /// Returns the undo or the whole call that was not completed, with the position after its first entry.
    #[must_use]
    pub fn unfinished(&self) -> Option<(CallKey, usize)> {
        let mut open = Open::default();
        for (position, entry) in self.entries.iter().enumerate() {
            open.note(entry, position);
        }
        open.0.map(|(call, start, _)| (call, start))
    }
}

/// Returns what calls had left of a file before a call recorded it at `first`, with an edit of the user, if the call has
/// not changed it since then.
fn edit_found(
    entries: &[Record],
    left_before: &HashMap<usize, Left>,
    first: usize,
    now: &State,
) -> Option<Left> {
    let left = left_before.get(&first).copied()?;
    let content = |state: &State| state.file().map(|file| (file.id, file.size, file.modified));
    let is_same = state_in(entries, first).is_some_and(|first| now.is_still(first));
    (is_same && state_left(entries, left).map(content) != Some(content(now))).then_some(left)
}
