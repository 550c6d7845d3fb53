//! A request that new standing rules allow more readily.

use portcullis_decision::Ruling;
use portcullis_decision::profile::FileRight;

use crate::contribution::Beside;
use crate::corpus::{Change, PolicyAnswer};

/// A request that new standing rules allow more readily.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Loosening {
    /// The request, in words.
    pub(super) name: String,
    pub(super) old: PolicyAnswer,
    pub(super) new: PolicyAnswer,
    /// The other policies with which the decision changes; `None` if only a name becomes visible.
    pub(super) beside: Option<Beside>,
    /// The right, for rules on files.
    pub(super) right: Option<FileRight>,
}

impl Loosening {
    pub(super) fn into_change(self) -> Change {
        let Self { name, old, new, beside, right: _ } = self;
        Change { name, old, new, loosens: true, beside }
    }
}

pub(super) fn answer_of(ruling: &Ruling) -> PolicyAnswer {
    PolicyAnswer::new(&ruling.effect.to_string(), &ruling.rule, &ruling.reason)
}

/// Returns the answer of rules of which none matches.
pub(super) fn lacks_rule() -> PolicyAnswer {
    PolicyAnswer::new("abstain", "", "")
}
