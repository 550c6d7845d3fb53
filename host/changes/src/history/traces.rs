//! What the records say about each path and each file.

use std::collections::HashMap;

use crate::record::{CallKey, Named, Record};
use crate::state::{FileId, State};

/// Where the history has the state that a call left at a path.
#[derive(Debug, Clone, Copy)]
pub(super) enum Left {
    /// In the `Left` record at this position, at this index of its names.
    Named(usize, usize),
    /// In the `Moved` record at this position: the file was moved there, and no call has written it since.
    Moved(usize),
    /// In the `Before` record at this position: a call has recorded the file by a name that it removed, so it may have
    /// written the file only before it ended.
    Found(usize),
    /// Nowhere: a call moved the file away, so nothing was left.
    Nothing,
}

impl Left {
    /// Returns the newer of two states: the one that a call left at a path, and the one at another name of the file.
    pub(super) fn newer(by_path: Option<Self>, by_other_name: Option<Self>) -> Option<Self> {
        let is_newer = |other: &Self| by_path.and_then(Self::at).is_none_or(|at| other.at() > Some(at));
        match by_path {
            Some(Self::Nothing) => by_path,
            Some(Self::Named(..) | Self::Moved(_) | Self::Found(_)) | None => {
                by_other_name.filter(is_newer).or(by_path)
            }
        }
    }

    /// Returns true if its record is before this position.
    pub(super) fn is_before(self, position: usize) -> bool {
        self.at().is_some_and(|at| at < position)
    }

    /// Returns the position of its record.
    fn at(self) -> Option<usize> {
        match self {
            Self::Named(at, _) | Self::Moved(at) | Self::Found(at) => Some(at),
            Self::Nothing => None,
        }
    }
}

/// A record of a file before a change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// The position of the call's first record of the file, by whichever name: before the call wrote it.
    pub(super) first: usize,
    /// The position of the record.
    pub(super) at: usize,
    pub(super) call: CallKey,
    /// Whether the call is an undo, or the commit of a branch.
    pub(super) is_undo: bool,
}

/// The records of one path.
#[derive(Debug, Default)]
pub(super) struct Traces {
    /// What the last call that ended left there.
    pub(super) left: Option<Left>,
    /// The calls that have changed it, with the position of their first record of it.
    pub(super) calls: Vec<(CallKey, usize)>,
    /// What is known of it while an undo runs; `None` if that may have left anything.
    pub(super) so_far: Option<SoFar>,
    /// The position of the `Before` record of an undo that has not announced its change yet.
    pub(super) announced: Option<usize>,
    /// `so_far` and `announced` as they were before the step of an undo that has announced a change, and not ended.
    pub(super) before_step: Option<(Option<SoFar>, Option<usize>)>,
}

/// What an undo that runs has made of a path, by the positions of records.
#[derive(Debug, Clone, Copy)]
pub(super) enum SoFar {
    /// Its step is complete, and left the state in this `LeftSoFar` record.
    Left(usize),
    /// It may have stopped anywhere between the state in this `Before` or `LeftSoFar`, and that in this `Reaches`.
    Between(usize, usize),
}

impl Traces {
    /// Returns true if one of the calls that changed the name has not ended since.
    pub(super) fn is_open(&self, ended: &HashMap<CallKey, usize>) -> bool {
        self.calls.iter().any(|(call, at)| ended.get(call).is_none_or(|end| end < at))
    }

    pub(super) fn note(&mut self, call: CallKey, position: usize, ended: &HashMap<CallKey, usize>) {
        self.calls.retain(|(of, at)| *of != call && ended.get(of).is_none_or(|end| end < at));
        self.calls.push((call, position));
        self.so_far = None;
    }

    /// Notes that a step of an undo is about to change the path; `reaches` is the position of its record.
    pub(super) fn reach(
        &mut self,
        call: CallKey,
        reaches: usize,
        entries: &[Record],
        ended: &HashMap<CallKey, usize>,
    ) {
        let Some(Record::Reaches { to, .. }) = entries.get(reaches) else { return };
        self.before_step = Some((self.so_far, self.announced));
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

    /// Sets the state of the path after a complete step of an undo.
    pub(super) fn step_is_made(&mut self, left: SoFar) {
        (self.so_far, self.before_step) = (Some(left), None);
    }

    /// Forgets an undo that was put back.
    pub(super) fn forget(&mut self, call: CallKey) {
        self.calls.retain(|(of, _)| of.view != call.view);
        (self.so_far, self.announced, self.before_step) = (None, None, None);
    }

    /// Notes that the last step of an undo at the path was not made. One that stopped before it announced a change has
    /// nothing to take back.
    pub(super) fn step_is_not_made(&mut self, call: CallKey) {
        let Some(before) = self.before_step.take() else { return };
        (self.so_far, self.announced) = before;
        if self.announced.is_some() {
            self.calls.retain(|(of, _)| *of != call);
        }
    }
}

impl SoFar {
    /// Returns the position of the newest record.
    pub(super) fn at(self) -> usize {
        let (Self::Left(at) | Self::Between(_, at)) = self;
        at
    }

    /// Returns the file that it is about.
    pub(super) fn file(self, entries: &[Record]) -> Option<FileId> {
        let (Self::Left(earlier) | Self::Between(earlier, _)) = self;
        state_in(entries, earlier)?.file().map(|file| file.id)
    }
}

/// Returns the state in the record of a name.
pub(super) fn state_in(entries: &[Record], position: usize) -> Option<&State> {
    match entries.get(position) {
        Some(
            Record::Before { was: Named { state, .. }, .. }
            | Record::LeftSoFar { left: Named { state, .. }, .. }
            | Record::Reaches { to: Some(state), .. },
        ) => Some(state),
        _ => None,
    }
}

/// Returns a state that a call has left.
pub(super) fn state_left(entries: &[Record], left: Left) -> Option<&State> {
    match left {
        Left::Nothing => Some(&State::Absent),
        Left::Found(position) => state_in(entries, position),
        Left::Moved(position) => match entries.get(position) {
            Some(Record::Moved { what, .. }) => Some(what),
            _ => None,
        },
        Left::Named(position, number) => match entries.get(position) {
            Some(Record::Left { names, .. }) => names.get(number).map(|named| &named.state),
            _ => None,
        },
    }
}
