//! Git's own files, judged by their effect on the user's git.

mod attributes;
mod danger;
mod index;
mod judge;
mod keys;
mod moved;
mod place;
mod shape;
mod stopped;
mod todo;
mod url;

pub mod config_text;

pub use judge::{Content, Finding, Judgement, judge};
pub use moved::{climbs, judge_moved, may_lead};
pub(crate) use shape::is_reference;
