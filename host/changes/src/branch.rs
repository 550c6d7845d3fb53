//! A branch: the directory in which an overlay keeps changes, compared with the project, and how they are committed.
//!
//! Reading order: `change`, `mark`, `compare`, `moved`, `choose`, `commit`. Both directories are walked by descriptors, and no link is
//! followed. Commands of the branch wrote the files of the upper directory, so nothing in it is trusted; only its marks
//! (`mark`) are the kernel's.

mod change;
mod choose;
mod commit;
mod compare;
mod mark;
mod moved;
mod texts;

pub use change::{BranchChange, Layers, Note, Obstacle, Settled, Time, review_id};
pub use choose::{Left, choose};
pub use commit::{commit, settled};
pub use compare::compare;
pub use texts::{content, diff, searched, texts};

#[cfg(test)]
mod tests;
