//! The interface to the storage of answers that outlive the session. Another crate writes the files.

use portcullis_decision::{Grant, GrantScope};

/// A place that stores answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantPlace {
    /// Its id, which stays valid if other places appear or vanish while a question is open.
    pub id: String,
    /// The key that selects it; in upper case it confirms at once.
    pub key: char,
    /// The scope of its answers: project or user.
    pub scope: GrantScope,
    /// The label of the choice.
    pub label: String,
    /// Its file, for the user.
    pub target: String,
}

/// Stores answers that outlive the session.
pub trait GrantStore: Send + Sync {
    /// Returns the places that can store an answer, the narrowest first.
    fn places(&self) -> Vec<GrantPlace>;

    /// Stores a grant at the place with this id.
    ///
    /// # Errors
    /// When it cannot be written; the text says why.
    fn keep(&self, place: &str, grant: &Grant) -> Result<(), String>;
}

/// A store without places: no answer outlives the session.
#[derive(Debug, Clone, Copy)]
pub struct NoGrantStore;

impl GrantStore for NoGrantStore {
    fn places(&self) -> Vec<GrantPlace> {
        Vec::new()
    }

    fn keep(&self, _place: &str, _grant: &Grant) -> Result<(), String> {
        Err("there is no file for it".to_owned())
    }
}
