//! Reservations: the agents' claims on paths, as facts of requests, and claiming before an action.
//!
//! Policies get the existing claims with a request and decide on it. Another session can make the same claim between
//! the decision and the action. So the claim itself decides, as one atomic step across all sessions of the user.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_decision::host_rules::{ClaimFailure, unclaimed};
use portcullis_decision::profile::FileRight;
use portcullis_decision::request::{Action, Origin};
use portcullis_decision::reservation::{Reservation, Until, overlap};
use portcullis_decision::{Caller, Decision, Effect, Fact, Request, Ruling, path_text};
use portcullis_file_gate::Purpose;
use portcullis_text::escape;

use crate::locate::locate;
use crate::notices;
use crate::policy_in_force::PolicyInForce;
use crate::reservations::ClaimError;
use crate::setup::Setup;

/// The claims of one session.
pub(crate) struct Claims {
    setup: Arc<Setup>,
    policy: Arc<PolicyInForce>,
    /// The requests that hold claims until they end.
    until_end: Mutex<BTreeSet<String>>,
}

impl Claims {
    pub(crate) fn new(setup: Arc<Setup>, policy: Arc<PolicyInForce>) -> Self {
        Self { setup, policy, until_end: Mutex::default() }
    }

    /// Returns the claims for a request about `action`, or `None` if no policy uses them.
    ///
    /// Policies should not allow anything if claims cannot be read.
    pub(crate) fn fact(&self, action: &Action) -> Option<Fact> {
        let concerns = matches!(action, Action::File(_) | Action::Command(_) | Action::Tool(_));
        if !concerns || !self.are_wanted() {
            return None;
        }
        let mut claims = self.setup.reservations.claims().ok();
        if let (Some(claims), Action::File(access)) = (&mut claims, action) {
            let path = path_text::decode(&access.path.canonical)?;
            claims.retain(|claim| overlap(&claim.path, &path));
        }
        Some(Fact::Claims(claims))
    }

    /// Makes the claims that policies want before `request` proceeds, and releases those that they want released.
    ///
    /// If a claim fails, the request is denied.
    pub(crate) fn reserve(&self, request: &Request, decision: Decision) -> Decision {
        if decision.effect() != Effect::Allow {
            return decision;
        }
        let wanted = Reservation::among(decision.obligations());
        let failed = wanted.map(|one| self.carry_out(request, one)).find_map(Result::err);
        match failed {
            Some(error) => {
                self.end(request);
                decision.tightened(refusal(&error))
            }
            None => decision,
        }
    }

    fn carry_out(&self, request: &Request, reservation: Reservation) -> Result<(), ClaimError> {
        match reservation {
            Reservation::Reserve(paths, until) => self.claim(request, &self.canonical(&paths), until),
            Reservation::Release(paths) => {
                self.setup.reservations.release(&self.canonical(&paths)).map_err(ClaimError::Failed)
            }
        }
    }

    fn claim(&self, request: &Request, paths: &[PathBuf], until: Until) -> Result<(), ClaimError> {
        if until == Until::Session {
            return self.all_are_writable(paths).and_then(|()| self.setup.reservations.claim(paths, None));
        }
        let call = call_of(request);
        self.setup.reservations.claim(paths, Some(call))?;
        self.until_end().insert(call.to_owned());
        if request.origin == Origin::Process {
            // The end of a command's calls is unknown, so checking at the start must suffice.
            self.end(request);
        }
        Ok(())
    }

    /// A session must not reserve paths that it may not write without a question.
    fn all_are_writable(&self, paths: &[PathBuf]) -> Result<(), ClaimError> {
        let effective = self.policy.current();
        let is_foreign = |path: &&PathBuf| {
            effective.rules.file(path, FileRight::Write, Caller::Tool).effect != Effect::Allow
        };
        paths.iter().find(is_foreign).map_or(Ok(()), |path| {
            let path = escape(&path_text::encode(path));
            Err(ClaimError::Failed(format!("`{path}` cannot be reserved: this session may not write it")))
        })
    }

    /// Releases the claims that last until `request` ends.
    pub(crate) fn end(&self, request: &Request) {
        let call = call_of(request);
        if !self.until_end().remove(call) {
            return;
        }
        if let Err(error) = self.setup.reservations.end_call(call) {
            self.setup.prompter.notice(&notices::still_reserved(&error));
        }
    }

    /// Returns true if a policy uses claims.
    pub(crate) fn are_wanted(&self) -> bool {
        self.policy.unchecked().wants_reservations
    }

    fn until_end(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.until_end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the paths in the form of the file gate.
    fn canonical(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        let effective = self.policy.current();
        let canonical = |path: &Path| {
            locate(&effective.gate, path, Purpose::Existing)
                .or_else(|_| locate(&effective.gate, path, Purpose::ForWriting))
                .map_or_else(|_| path_text::normalize(path), |located| located.canonical().to_owned())
        };
        paths.iter().map(|path| canonical(path)).collect()
    }
}

/// Returns the id under which a request's claims are held: a part of a call belongs to the whole call.
fn call_of(request: &Request) -> &str {
    request.parent.as_deref().unwrap_or(&request.id)
}

fn refusal(error: &ClaimError) -> Ruling {
    let why = match error {
        ClaimError::Taken(_) => ClaimFailure::Taken,
        ClaimError::Failed(_) => ClaimFailure::Failed,
    };
    unclaimed(why, error.to_string())
}
