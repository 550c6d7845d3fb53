//! The store of the agents' claims on paths, which all sessions of the user share.

use std::path::PathBuf;

use portcullis_decision::path_text;
use portcullis_decision::reservation::Claim;
use portcullis_text::escape;

/// Claims on paths, shared by all sessions of the user.
pub trait Reservations: Send + Sync {
    /// Returns all claims in force.
    ///
    /// # Errors
    /// When they cannot be read; the text says why.
    fn claims(&self) -> Result<Vec<Claim>, String>;

    /// Claims all of `paths` for this session, or none of them.
    ///
    /// A claim with a call lasts until [`Reservations::end_call`]; one without lasts until it is released or the
    /// session ends.
    ///
    /// # Errors
    /// When another session has claimed one of them, or claims cannot be written.
    fn claim(&self, paths: &[PathBuf], call: Option<&str>) -> Result<(), ClaimError>;

    /// Releases the session's own claims at and below `paths`.
    ///
    /// # Errors
    /// When claims cannot be written; the text says why.
    fn release(&self, paths: &[PathBuf]) -> Result<(), String>;

    /// Releases the claims of a call.
    ///
    /// # Errors
    /// As for [`Reservations::release`].
    fn end_call(&self, call: &str) -> Result<(), String>;
}

/// Why a claim failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// Another session has claimed the path.
    #[error("`{}` is reserved by the agent `{}`", escape(&path_text::encode(&.0.path)), escape(&.0.agent))]
    Taken(Claim),
    /// Claims cannot be read or written.
    #[error("{0}")]
    Failed(String),
}

/// No reservations: there are no claims, and claiming fails.
#[derive(Debug, Clone, Copy)]
pub struct NoReservations;

impl Reservations for NoReservations {
    fn claims(&self) -> Result<Vec<Claim>, String> {
        Ok(Vec::new())
    }

    fn claim(&self, _paths: &[PathBuf], _call: Option<&str>) -> Result<(), ClaimError> {
        Err(ClaimError::Failed("nothing can be reserved in this session".to_owned()))
    }

    fn release(&self, _paths: &[PathBuf]) -> Result<(), String> {
        Ok(())
    }

    fn end_call(&self, _call: &str) -> Result<(), String> {
        Ok(())
    }
}
