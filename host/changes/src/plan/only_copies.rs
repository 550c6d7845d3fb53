//! Files that may have the only copy of what cannot be given back.
//!
//! A call may compress a file that is too large for the record, and remove it. The compressed file is then the only copy.
//! So if undo cannot give back everything, it does not remove files that are too large for the record: a redo could not
//! bring those back either.

use super::Planner;
use super::step::{Act, Step, Why};
use crate::state::{Lost, State};

impl Planner<'_> {
    /// Leaves files where they are that would be gone for good, if something cannot be given back.
    pub(super) fn without_only_copies(&self, mut steps: Vec<Step>) -> Vec<Step> {
        let is_lost = |step: &Step| matches!(step.act, Act::Leave { why: Why::Lost(lost), .. } if lost != Lost::Special);
        if steps.iter().any(is_lost) {
            for step in steps.iter_mut().filter(|step| self.is_for_good(step)) {
                step.act = Act::Leave { why: Why::OnlyCopy, beside: None };
            }
        }
        steps
    }

    /// Returns true if a step removes a file that a redo could not bring back.
    fn is_for_good(&self, step: &Step) -> bool {
        let size = step.now.as_ref().and_then(State::file).map(|file| file.size);
        matches!(step.act, Act::Restore(State::Absent)) && size.is_some_and(|size| !self.world.keeps(size))
    }
}
