//! Packs: finding, judging, adding and signing them.

mod confirm;
mod find;
pub(crate) mod lock_editor;
pub(crate) mod offer;
mod recheck;
pub(crate) mod sign;
mod take;
mod transfer_progress;
pub(crate) mod trust_entries;
