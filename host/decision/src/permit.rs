//! The proof that an action was allowed.

use crate::request::{Action, FileOperation, Request};

/// Proof that one action was allowed; every gate needs one and consumes it.
///
/// Only [`crate::Decision::permit`] makes one, and only from an `allow`. It names the exact action, so a gate can check
/// its operation against it.
#[derive(Debug)]
#[must_use = "a permit that is not used up carries nothing out"]
pub struct Permit {
    request: String,
    action: Action,
}

impl Permit {
    pub(crate) fn new(request: &Request) -> Self {
        Self { request: request.id.clone(), action: request.action.clone() }
    }

    /// Returns the id of the allowed request.
    #[must_use]
    pub fn request(&self) -> &str {
        &self.request
    }

    /// Returns the allowed action.
    #[must_use]
    pub fn action(&self) -> &Action {
        &self.action
    }

    /// Returns the allowed operation, if this permit is for the file at `canonical` (path text).
    #[must_use]
    pub fn file_operation(&self, canonical: &str) -> Option<&FileOperation> {
        match &self.action {
            Action::File(access) if access.path.canonical == canonical => Some(&access.operation),
            Action::File(_)
            | Action::Command(_)
            | Action::Network(_)
            | Action::Socket(_)
            | Action::Tool(_)
            | Action::Escalation(_)
            | Action::Other(_) => None,
        }
    }

    /// Returns true if this permit is for running exactly `script`.
    #[must_use]
    pub fn is_for_script(&self, script: &str) -> bool {
        matches!(&self.action, Action::Command(command) if command.script == script)
    }
}
