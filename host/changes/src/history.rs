//! The history in a journal: its entries, its turns and calls, and the state of each path at the end of its last call.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::paths::moved;
use crate::record::{CallKey, Named, Record};
use crate::state::{Content, FileId, FileState, State};
use crate::touched::fails;

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
    /// What an undoing that runs has made of a file, by whichever of its names.
    files: HashMap<FileId, SoFar>,
    /// How many names each file has that the session knows of.
    links: HashMap<FileId, u32>,
    /// The state that earlier calls had left at a path when a call recorded it, by the position of that record.
    left_before: HashMap<usize, Left>,
    /// The position at which each call ended.
    ended: HashMap<CallKey, usize>,
    /// The positions of records of names that an interrupted undoing has not changed.
    untouched: HashSet<usize>,
}

/// Where the history has the state that a call left at a path.
#[derive(Debug, Clone, Copy)]
enum Left {
    /// In the `Left` record at this position, at this index of its names.
    Named(usize, usize),
    /// In the `Moved` record at this position: the file was moved there, and no call has written it since.
    Moved(usize),
    /// Nowhere: a call moved the file away, so nothing was left.
    Nothing,
}

/// The records of one path.
#[derive(Debug, Default)]
struct Traces {
    /// What the last call that ended left there.
    left: Option<Left>,
    /// The calls that have changed it, with the position of their first record of it.
    calls: Vec<(CallKey, usize)>,
    /// What is known of it while an undoing runs; `None` if that may have left anything.
    so_far: Option<SoFar>,
    /// The record of an undoing that has not changed it yet.
    announced: Option<usize>,
}

/// What an undoing that runs has made of a path, by the positions of records.
#[derive(Debug, Clone, Copy)]
enum SoFar {
    /// It has left what is in this `LeftSoFar`.
    Left(usize),
    /// It may have stopped anywhere between the state in this `Before` or `LeftSoFar`, and that in this `Reaches`.
    Between(usize, usize),
}

/// The state that undo expects at a path now, according to the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected<'a> {
    /// A call left this.
    Left(&'a State),
    /// An undoing was about to make the second of the first, and may have stopped at any point.
    Between(&'a State, &'a State),
    /// A call that did not end may have left anything.
    Anything,
    /// No call left anything there.
    Nothing,
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
    /// The position from which on the changes of its call belong to a later point, because it was taken back while it
    /// ran; the largest number if there is none.
    pub end: usize,
    /// Whether its changes have been taken back.
    pub undone: bool,
    /// Whether only some of them have, and the rest can be when the user has seen to it.
    pub undone_partly: bool,
    /// Whether it is a turn, or an undoing.
    pub kind: PointKind,
}

/// What has become of a range of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    TakenBack,
    Partly,
    InForce,
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
fn complete(entries: &mut [Record]) {
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
            | Record::Opens { .. }
            | Record::Closes { .. } => {}
        }
    }
}

/// The undoing or whole call that is not complete: its key, the position after its first entry, and whether it is whole.
#[derive(Debug, Default)]
struct Open(Option<(CallKey, usize, bool)>);

impl Open {
    fn note(&mut self, entry: &Record, position: usize) {
        match entry {
            Record::Undo { call, .. } => self.0 = Some((*call, position + 1, false)),
            Record::Whole { call } => self.0 = Some((*call, position + 1, true)),
            Record::Undone { call, .. } if self.0.is_some_and(|(of, ..)| of == *call) => self.0 = None,
            Record::Ended { call, .. } if self.0.is_some_and(|(of, _, is_whole)| of == *call && is_whole) => {
                self.0 = None;
            }
            Record::Undone { .. }
            | Record::Ended { .. }
            | Record::Moved { .. }
            | Record::Before { .. }
            | Record::Turn { .. }
            | Record::NotMoved { .. }
            | Record::Left { .. }
            | Record::LeftSoFar { .. }
            | Record::Reaches { .. }
            | Record::Opens { .. }
            | Record::Closes { .. } => {}
        }
    }

    /// Returns true for its call, and for the one that puts it back.
    fn has(&self, call: CallKey) -> bool {
        self.0.is_some_and(|(of, ..)| of.view == call.view)
    }
}

/// Returns how many names each file has that the session knows of: those that its last call has left. A redo gives back
/// what was there before the undo, also the names that the user had made by then; so of what undoing has left, the
/// smallest number counts.
fn known_links(entries: &[Record]) -> HashMap<FileId, u32> {
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

impl Traces {
    /// Returns true if one of the calls that changed the name has not ended since.
    fn is_open(&self, ended: &HashMap<CallKey, usize>) -> bool {
        self.calls.iter().any(|(call, at)| ended.get(call).is_none_or(|end| end < at))
    }

    fn note(&mut self, call: CallKey, position: usize, ended: &HashMap<CallKey, usize>) {
        self.calls.retain(|(of, at)| *of != call && ended.get(of).is_none_or(|end| end < at));
        self.calls.push((call, position));
        self.so_far = None;
    }

    /// Notes that a step of an undoing is about to change the path; `reaches` is the position of its record.
    fn reach(&mut self, call: CallKey, reaches: usize, entries: &[Record], ended: &HashMap<CallKey, usize>) {
        let Some(Record::Reaches { to, .. }) = entries.get(reaches) else { return };
        let earlier = match (self.announced, self.so_far) {
            (Some(announced), _) => Some(announced),
            (None, Some(SoFar::Left(left))) => Some(left),
            (None, Some(SoFar::Between(..)) | None) => None,
        };
        if let Some(announced) = self.announced.take() {
            self.note(call, announced, ended);
        }
        self.so_far = earlier.filter(|_| to.is_some()).map(|earlier| SoFar::Between(earlier, reaches));
    }
}

impl SoFar {
    /// Returns the position of the newest record.
    fn at(self) -> usize {
        let (Self::Left(at) | Self::Between(_, at)) = self;
        at
    }

    /// Returns the file that it is about.
    fn file(self, entries: &[Record]) -> Option<FileId> {
        let (Self::Left(earlier) | Self::Between(earlier, _)) = self;
        state_in(entries, earlier)?.file().map(|file| file.id)
    }
}

/// Returns the state in the record of a name.
fn state_in(entries: &[Record], position: usize) -> Option<&State> {
    match entries.get(position) {
        Some(
            Record::Before { was: Named { state, .. }, .. }
            | Record::LeftSoFar { left: Named { state, .. }, .. }
            | Record::Reaches { to: Some(state), .. },
        ) => Some(state),
        _ => None,
    }
}

impl History {
    /// Builds the history from the entries of a journal, the number of damaged ones, and the time of its last write.
    #[must_use]
    pub fn from_records((mut entries, damaged): (Vec<Record>, usize), written: (i64, u32)) -> Self {
        complete(&mut entries);
        let mut names: BTreeMap<PathBuf, Traces> = BTreeMap::new();
        let mut left_before = HashMap::new();
        let mut ended: HashMap<CallKey, usize> = HashMap::new();
        let mut open = Open::default();
        let mut files = HashMap::new();
        for (position, entry) in entries.iter().enumerate() {
            open.note(entry, position);
            match entry {
                Record::Before { call, was } => {
                    let traces = names.entry(was.path.clone()).or_default();
                    if let Some(left) = traces.left.filter(|_| !traces.is_open(&ended)) {
                        left_before.insert(position, left);
                    }
                    if open.has(*call) {
                        traces.announced = Some(position);
                    } else {
                        traces.note(*call, position, &ended);
                    }
                }
                Record::Moved { call, from, to, exchange, .. } if !fails(&entries, position, *call) => {
                    moved(&mut names, from, to, *exchange);
                    let left = |left| Traces { left: Some(left), ..Traces::default() };
                    if !exchange {
                        names.insert(from.clone(), left(Left::Nothing));
                    }
                    // A move does not change the file, so the state that calls left moves along.
                    names.entry(to.clone()).or_insert_with(|| left(Left::Moved(position)));
                }
                Record::Left { call, names: left } => {
                    for (number, named) in left.iter().enumerate() {
                        let traces = names.entry(named.path.clone()).or_default();
                        traces.left = Some(Left::Named(position, number));
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
                Record::LeftSoFar { left, .. } => {
                    let so_far = SoFar::Left(position);
                    names.entry(left.path.clone()).or_default().so_far = Some(so_far);
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
        let untouched = names.values().filter_map(|traces| traces.announced).collect();
        Self { entries, damaged, written, names, files, links, left_before, ended, untouched }
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
        traces.left.and_then(|left| self.state(left)).map_or(Expected::Nothing, Expected::Left)
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

    /// Returns true if the record at `position` is of a name that an interrupted undoing has not changed.
    pub(crate) fn is_untouched(&self, position: usize) -> bool {
        self.untouched.contains(&position)
    }

    /// Returns true if a path is as the session has left it, as far as that is known.
    pub(crate) fn has_left(&self, path: &Path, found: &State) -> bool {
        match self.expected(path) {
            Expected::Left(left) => found.is_still(left),
            Expected::Between(State::Directory(_), _) | Expected::Between(_, State::Directory(_)) => true,
            Expected::Between(earlier, to) => found.is_still(earlier) || found.is_still(to),
            Expected::Anything => true,
            Expected::Nothing => false,
        }
    }

    /// Returns the paths at which the session may have left a directory without all of these permissions, in their order.
    pub(crate) fn without_permissions(&self, wanted: u32) -> impl Iterator<Item = &Path> {
        self.names.keys().map(PathBuf::as_path).filter(move |path| match self.expected(path) {
            Expected::Left(State::Directory(left)) => left.mode & wanted != wanted,
            Expected::Left(_) | Expected::Nothing => false,
            Expected::Anything | Expected::Between(..) => true,
        })
    }

    /// Returns the state that earlier calls had left at the path of the record at `position`. `None` if no earlier call
    /// had changed the path, or if one of them was still running: the session itself then made the recorded state.
    pub(crate) fn left_before(&self, position: usize) -> Option<&State> {
        self.left_before.get(&position).and_then(|left| self.state(*left))
    }

    fn state(&self, left: Left) -> Option<&State> {
        match left {
            Left::Nothing => Some(&State::Absent),
            Left::Moved(position) => match self.entries.get(position) {
                Some(Record::Moved { what, .. }) => Some(what),
                _ => None,
            },
            Left::Named(position, number) => match self.entries.get(position) {
                Some(Record::Left { names, .. }) => names.get(number).map(|named| &named.state),
                _ => None,
            },
        }
    }

    /// Returns the undoing or the whole call that was not completed, with the position after its first entry.
    #[must_use]
    pub fn unfinished(&self) -> Option<(CallKey, usize)> {
        let mut open = Open::default();
        for (position, entry) in self.entries.iter().enumerate() {
            open.note(entry, position);
        }
        open.0.map(|(call, start, _)| (call, start))
    }

    /// Returns the turns and calls in their order.
    #[must_use]
    pub fn points(&self) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::new();
        // The points of each call: several if it was taken back while it ran.
        let mut calls: HashMap<CallKey, Vec<usize>> = HashMap::new();
        let mut taken_back: HashSet<CallKey> = HashSet::new();
        let (mut turns, mut numbered) = (0, 0);
        // The views of undoings, and of the calls that put interrupted ones back.
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
                | Record::Opens { .. }
                | Record::Closes { .. } => {}
            }
        }
        for (to, effect) in self.undoings() {
            for point in points.iter_mut().filter(|point| point.start >= to.start && point.start < to.end) {
                point.undone = effect == Effect::TakenBack;
                point.undone_partly = effect == Effect::Partly;
            }
        }
        points
    }

    /// Returns the ranges of entries that were taken back, or given back again, in their order.
    fn undoings(&self) -> Vec<(std::ops::Range<usize>, Effect)> {
        let mut ranges = Vec::new();
        for entry in self.entries.iter() {
            let Record::Undone { call, complete: true, partly } = entry else { continue };
            let begun = self.entries.iter().enumerate().find_map(|(position, entry)| match entry {
                Record::Undo { call: of, to, redo, .. } if of == call => Some((position, *to, *redo)),
                Record::Undo { .. }
                | Record::Undone { .. }
                | Record::Whole { .. }
                | Record::Moved { .. }
                | Record::Before { .. }
                | Record::Turn { .. }
                | Record::NotMoved { .. }
                | Record::Left { .. }
                | Record::LeftSoFar { .. }
                | Record::Reaches { .. }
                | Record::Ended { .. }
                | Record::Opens { .. }
                | Record::Closes { .. } => None,
            });
            let Some((position, to, redo)) = begun else { continue };
            if redo {
                // What the undoing at `to` took back is there again.
                let Some(Record::Undo { to: first, .. }) = self.entries.get(to) else { continue };
                ranges.push((*first..to, Effect::InForce));
            } else {
                ranges.push((to..position, if *partly { Effect::Partly } else { Effect::TakenBack }));
            }
        }
        ranges
    }

    /// Returns the position of the last undoing that is in force, if nothing has been changed since.
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
                Record::Before { call, was } if *call == key && is_in_point(position) => {
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
