//! Where answers are kept that outlive the session: files, which somebody else writes.

use portcullis_decision::{Grant, GrantScope};

/// One place for answers that outlive the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Names it, also when other places come or go while a question is open.
    pub id: String,
    /// The key that chooses it; commits at once in upper case.
    pub key: char,
    /// Whose answers lie there: the project's or the user's.
    pub scope: GrantScope,
    /// What the choice says.
    pub label: String,
    /// Where that is, for the user.
    pub target: String,
}

/// Keeps answers that outlive the session.
pub trait Keeper: Send + Sync {
    /// Where an answer can be kept now, the narrowest place first.
    fn places(&self) -> Vec<Place>;

    /// Keeps a grant at the place with this id.
    ///
    /// # Errors
    /// When it could not be written; the text says why.
    fn keep(&self, place: &str, grant: &Grant) -> Result<(), String>;
}

/// Nothing outlives the session.
#[derive(Debug, Clone, Copy)]
pub struct NoKeeper;

impl Keeper for NoKeeper {
    fn places(&self) -> Vec<Place> {
        Vec::new()
    }

    fn keep(&self, _place: &str, _grant: &Grant) -> Result<(), String> {
        Err("there is no file for it".to_owned())
    }
}
