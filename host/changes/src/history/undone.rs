//! Which turns and calls have been taken back, and not given back again.

use super::History;
use super::points::Point;
use crate::record::{CallKey, Record};

/// An undo or redo that was completed.
struct Undo {
    /// The position of its first entry.
    at: usize,
    /// The position from which on it has taken everything back.
    to: usize,
    is_redo: bool,
    is_partly: bool,
}

/// A point that an undo has taken back.
struct TakenBack {
    /// Its number among the points.
    number: usize,
    was_undone_partly: bool,
}

impl History {
    /// Marks the points that are undone. A redo makes those in force again that its undo had taken back. Points that were
    /// undone before that undo stay undone.
    pub(super) fn mark_undone(&self, points: &mut [Point]) {
        let mut in_force: Vec<(usize, Vec<TakenBack>)> = Vec::new();
        for Undo { at, to, is_redo, is_partly } in self.undos() {
            if !is_redo {
                in_force.push((at, take_back(points, to..at, is_partly)));
                continue;
            }
            let first = in_force.iter().position(|(undo, _)| *undo >= to).unwrap_or(in_force.len());
            for (_, taken_back) in in_force.drain(first..).rev() {
                for TakenBack { number, was_undone_partly } in taken_back {
                    let Some(point) = points.get_mut(number) else { continue };
                    (point.undone, point.undone_partly) = (false, was_undone_partly);
                }
            }
        }
    }

    /// Returns the undos that were completed, in their order.
    fn undos(&self) -> Vec<Undo> {
        let begun = |call: &CallKey| {
            self.entries.iter().enumerate().find_map(|(at, entry)| {
                let Record::Undo { call: of, to, redo, .. } = entry else { return None };
                (of == call).then_some((at, *to, *redo))
            })
        };
        let completed = self.entries.iter().filter_map(|entry| {
            let Record::Undone { call, complete: true, partly } = entry else { return None };
            let (at, to, is_redo) = begun(call)?;
            Some(Undo { at, to, is_redo, is_partly: *partly })
        });
        completed.collect()
    }
}

/// Marks the points in a range of entries as taken back. Returns those that were in force.
fn take_back(points: &mut [Point], range: std::ops::Range<usize>, is_partly: bool) -> Vec<TakenBack> {
    let in_force =
        points.iter_mut().enumerate().filter(|(_, point)| range.contains(&point.start) && !point.undone);
    let take = |(number, point): (usize, &mut Point)| {
        let was_undone_partly = point.undone_partly;
        (point.undone, point.undone_partly) = (!is_partly, is_partly);
        TakenBack { number, was_undone_partly }
    };
    in_force.map(take).collect()
}
