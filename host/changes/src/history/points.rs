//! The turns and calls of a history, what has become of them, and their changes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use super::History;
use crate::paths::moved;
use crate::record::{CallKey, Record};
use crate::state::State;
use crate::touched::fails;

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
    /// The position from which on the changes of its call belong to a later point, because it was taken back while it
    /// ran; the largest number if there is none.
    pub end: usize,
    /// Whether its changes have been taken back.
    pub undone: bool,
    /// Whether only some of them have, and the rest can be when the user has seen to it.
    pub undone_partly: bool,
    /// Whether it is a turn, or an undo.
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
    /// Returns the turns and calls in their order.
    #[must_use]
    pub fn points(&self) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::new();
        // The points of each call: several if it was taken back while it ran.
        let mut calls: HashMap<CallKey, Vec<usize>> = HashMap::new();
        let mut taken_back: HashSet<CallKey> = HashSet::new();
        let (mut turns, mut numbered) = (0, 0);
        // The views of undos, and of the calls that put interrupted ones back.
        let mut undoing: HashSet<u64> = HashSet::new();
        let mut whole: Option<(CallKey, usize)> = None;
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
                        end: usize::MAX,
                        undone: false,
                        undone_partly: false,
                        kind: PointKind::Turn,
                    });
                }
                Record::Before { call, .. } | Record::Moved { call, .. } => {
                    let is_new = !calls.contains_key(call) || taken_back.remove(call);
                    if is_new && !undoing.contains(&call.view) {
                        let of_call = calls.entry(*call).or_default();
                        if let Some(before) = of_call.last().and_then(|position| points.get_mut(*position)) {
                            before.end = start;
                        }
                        of_call.push(points.len());
                        numbered += 1;
                        let (name, kind) = (format!("c{numbered}"), PointKind::Call(*call));
                        let label = "a call that did not end".to_owned();
                        let (end, undone, undone_partly) = (usize::MAX, false, false);
                        points.push(Point {
                            name,
                            id: None,
                            label,
                            at: 0,
                            start,
                            end,
                            undone,
                            undone_partly,
                            kind,
                        });
                    }
                }
                Record::Ended { call, id, label, at } => {
                    for position in calls.get(call).into_iter().flatten() {
                        if let Some(point) = points.get_mut(*position) {
                            (point.id, point.label, point.at) = (id.clone(), label.clone(), *at);
                        }
                    }
                }
                Record::Undo { call, to, .. } => {
                    undoing.insert(call.view);
                    let is_later = |positions: &Vec<usize>| {
                        let last = positions.last().and_then(|position| points.get(*position));
                        last.is_some_and(|point| point.start >= *to)
                    };
                    let of_calls = calls.iter().filter(|(_, positions)| is_later(positions));
                    taken_back.extend(of_calls.map(|(call, _)| *call));
                }
                Record::Whole { call } => whole = Some((*call, points.len())),
                Record::Undone { call, complete: false, .. } => {
                    if let Some((_, before)) = whole.filter(|(of, _)| of == call) {
                        // Neither it nor the calls that took it back have an effect.
                        points.truncate(before);
                        calls.retain(|_, positions| positions.first().is_some_and(|first| *first < before));
                    }
                }
                Record::NotMoved { .. }
                | Record::Left { .. }
                | Record::LeftSoFar { .. }
                | Record::Reaches { .. }
                | Record::Undone { .. }
                | Record::NotMade { .. }
                | Record::Opens { .. }
                | Record::Closes { .. } => {}
            }
        }
        self.mark_undone(&mut points);
        points
    }

    /// Returns where the first call begins from `start` on that is not undone; `None` if all are. Undoing a call again
    /// would take back what the user has changed since it was undone.
    #[must_use]
    pub fn in_force_since(&self, start: usize) -> Option<usize> {
        let is_in_force =
            |point: &Point| point.start >= start && !point.undone && matches!(point.kind, PointKind::Call(_));
        self.points().into_iter().find(is_in_force).map(|point| point.start)
    }

    /// Returns the position of the last undo that is in force, if nothing has been changed since.
    #[must_use]
    pub fn redoable(&self) -> Option<usize> {
        let mut stack: Vec<(usize, CallKey)> = Vec::new();
        // What the last redo takes back.
        let mut redone: Vec<(usize, CallKey)> = Vec::new();
        let mut all: HashSet<CallKey> = HashSet::new();
        let mut is_one_open = false;
        for (position, entry) in self.entries.iter().enumerate() {
            match entry {
                Record::Undo { call, redo, to, .. } => {
                    all.insert(*call);
                    is_one_open = true;
                    redone.clear();
                    if *redo {
                        let first = stack.iter().position(|(at, _)| at >= to).unwrap_or(stack.len());
                        redone = stack.split_off(first);
                    } else {
                        stack.push((position, *call));
                    }
                }
                Record::Undone { call, complete, partly } => {
                    is_one_open = false;
                    if !complete {
                        stack.retain(|(_, of)| of != call);
                    }
                    let mut redone = std::mem::take(&mut redone);
                    // A redo that was put back, or that is not complete, can be repeated.
                    if !complete || *partly {
                        stack.append(&mut redone);
                    }
                }
                Record::Before { call, .. } | Record::Moved { call, .. } if !all.contains(call) => {
                    // Other changes came after it. One that was interrupted is put back by a call of its own.
                    if !is_one_open {
                        stack.clear();
                    }
                }
                Record::Before { .. }
                | Record::Moved { .. }
                | Record::Whole { .. }
                | Record::Turn { .. }
                | Record::NotMoved { .. }
                | Record::Left { .. }
                | Record::LeftSoFar { .. }
                | Record::Reaches { .. }
                | Record::Ended { .. }
                | Record::NotMade { .. }
                | Record::Opens { .. }
                | Record::Closes { .. } => {}
            }
        }
        stack.last().map(|(position, _)| *position)
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

    /// Returns the changes of a point; none for a turn.
    #[must_use]
    pub fn changes(&self, point: &Point) -> Vec<Change> {
        let PointKind::Call(key) = point.kind else { return Vec::new() };
        let is_in_point = |position: usize| position >= point.start && position < point.end;
        let mut found: BTreeMap<PathBuf, Change> = BTreeMap::new();
        for (position, entry) in self.entries.iter().enumerate() {
            match entry {
                Record::Before { call, was, .. } if *call == key && is_in_point(position) => {
                    let change =
                        || Change { path: was.path.clone(), was: was.state.clone(), left: None, from: None };
                    found.entry(was.path.clone()).or_insert_with(change);
                }
                Record::Moved { call, from, to, what, exchange }
                    if *call == key && is_in_point(position) && !fails(&self.entries, position, key) =>
                {
                    moved(&mut found, from, to, *exchange);
                    let change =
                        Change { path: to.clone(), was: what.clone(), left: None, from: Some(from.clone()) };
                    found.entry(to.clone()).or_insert(change).from = Some(from.clone());
                }
                Record::Left { call, names } if *call == key && is_in_point(position) => {
                    for named in names {
                        if let Some(change) = found.get_mut(&named.path) {
                            change.left = Some(named.state.clone());
                        }
                    }
                }
                Record::Before { .. }
                | Record::Moved { .. }
                | Record::Left { .. }
                | Record::LeftSoFar { .. }
                | Record::Reaches { .. }
                | Record::Turn { .. }
                | Record::NotMoved { .. }
                | Record::Ended { .. }
                | Record::Undo { .. }
                | Record::Whole { .. }
                | Record::Undone { .. }
                | Record::NotMade { .. }
                | Record::Opens { .. }
                | Record::Closes { .. } => {}
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
