//! The branches of projects in the state directory.
//!
//! `branches/PROJECT/NAME` holds the two directories of the overlay, what the branch is, and the ids of the sessions
//! that worked in it. No command sees the state directory. Whoever works in a branch, commits or drops it holds its
//! lock: the kernel leaves undefined what happens if an upper directory is used twice or changes under its mount.

mod commit;
mod review;
mod stored;

pub use commit::{Committed, commit, finish_interrupted};
pub use review::{Judged, Reviewed, hosts, review};
pub use stored::{OpenBranch, StoredBranch, begin, named, stored};
