//! The history in a journal: its entries, its turns and calls, and the state of each path at the end of its last call.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use crate::paths::{follow, moved};
use crate::record::{CallKey, Record};
use crate::recorder::fails;
use crate::state::State;

/// A journal that was read.
#[derive(Debug)]
pub struct History {
    entries: Vec<Record>,
    /// How many lines are damaged.
    pub damaged: usize,
    /// When the journal was last written.
    pub(crate) written: (i64, u32),
    /// What the last call left, by the present names.
    left: BTreeMap<PathBuf, State>,
    /// What each call left, by the names at its end, and the position of that record.
    left_of: HashMap<CallKey, (usize, BTreeMap<PathBuf, State>)>,
    /// The positions of moves.
    moves: Vec<usize>,
}

/// A group of changes that can be taken back together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// `t1`, `t2` … for turns, `c1`, `c2` … for calls.
    pub name: String,
    /// The client's name, if it has one.
    pub id: Option<String>,
    /// The user's first words, or what the call did.
    pub label: String,
    /// Milliseconds since 1970; 0 if the call did not end.
    pub at: u64,
    /// The position of its first entry.
    pub start: usize,
    /// Whether its changes have been taken back.
    pub undone: bool,
    /// Whether it is a turn, or an undoing.
    pub kind: PointKind,
}

/// The kind of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointKind {
    /// A turn of the user.
    Turn,
    /// A command or a tool's call.
    Call(CallKey),
}

/// A change of one name by a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The name.
    pub path: PathBuf,
    /// The state of the path before the call.
    pub was: State,
    /// The state of the path at the end of the call; `None` if the call did not end.
    pub left: Option<State>,
    /// Where it was before, if it was moved.
    pub from: Option<PathBuf>,
}

impl History {
    /// Builds the history from the entries of a journal, the number of damaged ones, and the time of its last write.
    #[must_use]
    pub fn from_records((entries, damaged): (Vec<Record>, usize), written: (i64, u32)) -> Self {
        let mut left: BTreeMap<PathBuf, State> = BTreeMap::new();
        let mut left_of: HashMap<CallKey, (usize, BTreeMap<PathBuf, State>)> = HashMap::new();
        let mut moves = Vec::new();
        for (position, entry) in entries.iter().enumerate() {
            match entry {
                Record::Moved { call, from, to, exchange, .. } if !fails(&entries, position, *call) => {
                    moved(&mut left, from, to, *exchange);
                    moves.push(position);
                }
                Record::Left { call, names } => {
                    let pairs = || names.iter().map(|named| (named.path.clone(), named.state.clone()));
                    left.extend(pairs());
                    let of = left_of.entry(*call).or_default();
                    of.0 = position;
                    of.1.extend(pairs());
                }
                Record::Moved { .. }
                | Record::Before { .. }
                | Record::Turn { .. }
                | Record::NotMoved { .. }
                | Record::Ended { .. }
                | Record::Undo { .. }
                | Record::Undone { .. } => {}
            }
        }
        Self { entries, damaged, written, left, left_of, moves }
    }

    /// Returns the entries.
    #[must_use]
    pub fn entries(&self) -> &[Record] {
        &self.entries
    }

    /// Returns the state of a path at the end of the last call that changed it.
    pub(crate) fn left(&self, path: &Path) -> Option<&State> {
        self.left.get(path)
    }

    /// Returns the state, at the end of a call, of the path that it recorded at a position; `None` if it did not end.
    pub(crate) fn left_by(&self, call: CallKey, position: usize, path: &Path) -> Option<&State> {
        let (end, names) = self.left_of.get(&call)?;
        let mut name = path.to_owned();
        let first = self.moves.partition_point(|at| *at < position);
        for at in self.moves.iter().skip(first).take_while(|at| *at < end) {
            if let Some(Record::Moved { from, to, exchange, .. }) = self.entries.get(*at) {
                name = follow(&name, from, to, *exchange);
            }
        }
        names.get(&name)
    }

    /// Returns the undoing that was not completed, with the position after its first entry.
    #[must_use]
    pub fn unfinished(&self) -> Option<(CallKey, usize)> {
        let mut open = None;
        for (position, entry) in self.entries.iter().enumerate() {
            match entry {
                Record::Undo { call, .. } => open = Some((*call, position + 1)),
                Record::Undone { call, .. } if open.is_some_and(|(of, _)| of == *call) => open = None,
                Record::Undone { .. }
                | Record::Moved { .. }
                | Record::Before { .. }
                | Record::Turn { .. }
                | Record::NotMoved { .. }
                | Record::Left { .. }
                | Record::Ended { .. } => {}
            }
        }
        open
    }

    /// Returns the turns and calls in their order.
    #[must_use]
    pub fn points(&self) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::new();
        let mut calls: HashMap<CallKey, usize> = HashMap::new();
        let (mut turns, mut undoing) = (0, Vec::new());
        for (start, entry) in self.entries.iter().enumerate() {
            match entry {
                Record::Turn { id, label, at } => {
                    turns += 1;
                    points.push(Point {
                        name: format!("t{turns}"),
                        id: Some(id.clone()),
                        label: label.clone(),
                        at: *at,
                        start,
                        undone: false,
                        kind: PointKind::Turn,
                    });
                }
                Record::Before { call, .. } | Record::Moved { call, .. } => {
                    if !calls.contains_key(call) && !undoing.contains(call) {
                        calls.insert(*call, points.len());
                        let (name, kind) = (format!("c{}", calls.len()), PointKind::Call(*call));
                        let label = "a call that did not end".to_owned();
                        points.push(Point { name, id: None, label, at: 0, start, undone: false, kind });
                    }
                }
                Record::Ended { call, id, label, at } => {
                    if let Some(point) = calls.get(call).and_then(|position| points.get_mut(*position)) {
                        (point.id, point.label, point.at) = (id.clone(), label.clone(), *at);
                    }
                }
                Record::Undo { call, .. } => undoing.push(*call),
                Record::NotMoved { .. } | Record::Left { .. } | Record::Undone { .. } => {}
            }
        }
        for (to, undone) in self.undoings() {
            for point in points.iter_mut().filter(|point| point.start >= to.start && point.start < to.end) {
                point.undone = undone;
            }
        }
        points
    }

    /// Returns the ranges of entries that were taken back, or given back again, in their order.
    fn undoings(&self) -> Vec<(std::ops::Range<usize>, bool)> {
        let mut ranges: Vec<(std::ops::Range<usize>, bool)> = Vec::new();
        for entry in self.entries.iter() {
            let Record::Undone { call, complete: true } = entry else { continue };
            let begun = self.entries.iter().enumerate().find_map(|(position, entry)| match entry {
                Record::Undo { call: of, to, redo, .. } if of == call => Some((position, *to, *redo)),
                Record::Undo { .. }
                | Record::Undone { .. }
                | Record::Moved { .. }
                | Record::Before { .. }
                | Record::Turn { .. }
                | Record::NotMoved { .. }
                | Record::Left { .. }
                | Record::Ended { .. } => None,
            });
            let Some((position, to, redo)) = begun else { continue };
            if redo {
                // What the undoing at `to` took back is there again.
                let Some(Record::Undo { to: first, .. }) = self.entries.get(to) else { continue };
                ranges.push((*first..to, false));
            } else {
                ranges.push((to..position, true));
            }
        }
        ranges
    }

    /// Returns the position of the last undoing that is in force, if nothing has been changed since.
    #[must_use]
    pub fn redoable(&self) -> Option<usize> {
        let mut stack: Vec<(usize, CallKey)> = Vec::new();
        let mut open: Vec<CallKey> = Vec::new();
        for (position, entry) in self.entries.iter().enumerate() {
            match entry {
                Record::Undo { call, redo, to, .. } => {
                    open.push(*call);
                    if *redo {
                        stack.retain(|(at, _)| at < to);
                    } else {
                        stack.push((position, *call));
                    }
                }
                Record::Undone { call, complete: false } => stack.retain(|(_, of)| of != call),
                Record::Before { call, .. } | Record::Moved { call, .. } if !open.contains(call) => {
                    // Other changes came after it. One that was interrupted is put back by a call of its own.
                    if self.unfinished_at(position).is_none() {
                        stack.clear();
                    }
                }
                Record::Before { .. }
                | Record::Moved { .. }
                | Record::Undone { .. }
                | Record::Turn { .. }
                | Record::NotMoved { .. }
                | Record::Left { .. }
                | Record::Ended { .. } => {}
            }
        }
        stack.last().map(|(position, _)| *position)
    }

    /// Returns the undoing that is not complete at a position.
    fn unfinished_at(&self, position: usize) -> Option<CallKey> {
        let mut open = None;
        for entry in self.entries.iter().take(position) {
            match entry {
                Record::Undo { call, .. } => open = Some(*call),
                Record::Undone { .. } => open = None,
                Record::Moved { .. }
                | Record::Before { .. }
                | Record::Turn { .. }
                | Record::NotMoved { .. }
                | Record::Left { .. }
                | Record::Ended { .. } => {}
            }
        }
        open
    }

    /// Returns the start of a turn or call, by its name or the client's id.
    #[must_use]
    pub fn start_of(&self, named: &str) -> Option<usize> {
        let points = self.points();
        let found = points.iter().find(|point| point.name == named || point.id.as_deref() == Some(named));
        found.map(|point| point.start)
    }

    /// Returns the start of the newest turn with changes that are in force, or of the newest such call where no turn is
    /// recorded.
    #[must_use]
    pub fn newest(&self) -> Option<usize> {
        let points = self.points();
        let last =
            points.iter().rposition(|point| matches!(point.kind, PointKind::Call(_)) && !point.undone)?;
        let turn = points.iter().take(last).rev().find(|point| point.kind == PointKind::Turn);
        turn.or_else(|| points.get(last)).map(|point| point.start)
    }

    /// Returns the changes of a call.
    #[must_use]
    pub fn changes(&self, key: CallKey) -> Vec<Change> {
        let mut found: BTreeMap<PathBuf, Change> = BTreeMap::new();
        for (position, entry) in self.entries.iter().enumerate() {
            match entry {
                Record::Before { call, was } if *call == key => {
                    let change =
                        || Change { path: was.path.clone(), was: was.state.clone(), left: None, from: None };
                    found.entry(was.path.clone()).or_insert_with(change);
                }
                Record::Moved { call, from, to, what, exchange }
                    if *call == key && !fails(&self.entries, position, key) =>
                {
                    moved(&mut found, from, to, *exchange);
                    let change =
                        Change { path: to.clone(), was: what.clone(), left: None, from: Some(from.clone()) };
                    found.entry(to.clone()).or_insert(change).from = Some(from.clone());
                }
                Record::Left { call, names } if *call == key => {
                    for named in names {
                        if let Some(change) = found.get_mut(&named.path) {
                            change.left = Some(named.state.clone());
                        }
                    }
                }
                Record::Before { .. }
                | Record::Moved { .. }
                | Record::Left { .. }
                | Record::Turn { .. }
                | Record::NotMoved { .. }
                | Record::Ended { .. }
                | Record::Undo { .. }
                | Record::Undone { .. } => {}
            }
        }
        for (path, change) in &mut found {
            change.path.clone_from(path);
        }
        let is_change = |change: &Change| {
            change.from.is_some() || change.left.as_ref().is_none_or(|left| !left.is_still(&change.was))
        };
        found.into_values().filter(is_change).collect()
    }
}
