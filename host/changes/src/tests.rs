//! Undoing, on real directories.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a failure is a failed test")]

mod agent;
mod announced;
mod attributes;
mod bounded;
mod cases;
mod closed;
mod during;
pub(crate) mod every_point;
mod interleaved;
pub(crate) mod killed;
mod killed_session;
mod links;
mod other_names;
mod redo;
mod repositories;
mod several_names;
pub(crate) mod tree;
mod unreadable;
