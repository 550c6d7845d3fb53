//! Git's own files, judged by their effect on the user's git.

mod attributes;
mod content;
mod finding;
mod index;
mod interrupted;
mod judge;
mod keys;
mod moved;
mod pointers;
mod reasons;
mod rebase_todo;
mod url;
mod value_shape;

pub mod config_text;

pub use content::Content;
pub use finding::{Finding, Judgement};
pub use judge::judge;
pub use moved::{judge_moved, may_lead};
pub use pointers::climbs;
pub(crate) use value_shape::is_reference;
