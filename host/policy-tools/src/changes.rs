//! The requests to which two policies give different answers.

use crate::corpus::{Change, Item};
use crate::simulator::Simulator;

/// Returns the requests to which two policies give different answers, in the order of the corpus.
pub fn changes<'a>(
    old: &'a Simulator,
    new: &'a Simulator,
    corpus: &'a [Item],
) -> impl Iterator<Item = Change> + 'a {
    corpus.iter().filter_map(move |item| {
        let (was, is) = (old.judge(item), new.judge(item));
        let beside = was.part.loosened_by(is.part);
        let (old, new) = (was.answer(), is.answer());
        let is_same = old.verdict == new.verdict && beside.is_none();
        (!is_same).then(|| Change { name: item.name.clone(), old, new, loosens: beside.is_some(), beside })
    })
}
