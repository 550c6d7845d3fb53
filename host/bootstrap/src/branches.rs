//! The branches of projects in the state directory.
//!
//! `branches/PROJECT/NAME` holds the two directories of the overlay, the project that the branch belongs to, and the ids of the
//! sessions that ran in it. Commands cannot see the state directory. `run --branch`, `branch commit` and `branch drop`
//! lock the branch first: the kernel leaves undefined what happens if an upper directory is used twice or changes under its mount.

mod commit;
mod review;
mod stored;
mod together;

pub use commit::{Committed, commit, finish_interrupted};
pub use review::{Judged, Reviewed, hosts, review};
pub use stored::{OpenBranch, StoredBranch, begin, named, stored};
pub use together::{Wishes, judge, named_paths, reason_to_leave, together};
