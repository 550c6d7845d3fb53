//! Reservations: what agents have claimed, as requests tell of it, and claiming it before an act.
//!
//! A policy is told of the claims and says whether an action may go ahead; between its answer and the act somebody
//! else may claim the same. So it is the claim itself, made in one step for all sessions of the user, that decides.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use portcullis_decision::profile::FileRight;
use portcullis_decision::request::{Action, Attribute, Origin};
use portcullis_decision::reservation::{Claim, RESERVATIONS, Reservation, Until, overlap};
use portcullis_decision::{Caller, Decision, Effect, Request, Ruling, path_text};
use portcullis_file_gate::Purpose;
use portcullis_text::escape;

use crate::files::locate;
use crate::session::Session;

/// Claims of paths, shared by all sessions of the user.
pub trait Reservations: Send + Sync {
    /// Every claim that is in force.
    ///
    /// # Errors
    /// When they cannot be read; the text says why.
    fn claims(&self) -> Result<Vec<Claim>, String>;

    /// Claims all of `paths` for this session, or none of them. With the name of a call, until
    /// [`Reservations::end_call`]; without, until they are released or the session ends.
    ///
    /// # Errors
    /// When another session has one of them, or claims cannot be written.
    fn claim(&self, paths: &[PathBuf], call: Option<&str>) -> Result<(), ClaimError>;

    /// Gives back the session's own claims at and below `paths`.
    ///
    /// # Errors
    /// When claims cannot be written; the text says why.
    fn release(&self, paths: &[PathBuf]) -> Result<(), String>;

    /// Gives back what was claimed for a call.
    ///
    /// # Errors
    /// As for [`Reservations::release`].
    fn end_call(&self, call: &str) -> Result<(), String>;
}

/// Why nothing was claimed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// Somebody has it.
    #[error("`{}` is reserved by the agent `{}`", escape(&path_text::encode(&.0.path)), escape(&.0.agent))]
    Taken(Claim),
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

/// There are none, and none can be made.
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

/// The requests of this session that have claims until they are over.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<BTreeSet<String>>);

impl Calls {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// What a request about `action` tells policies of claims; none where no policy wants to know. Claims that
    /// cannot be read are `null`, on which nobody should allow anything.
    pub(crate) fn told_claims(&self, action: &Action) -> Option<Attribute> {
        let concerns = matches!(action, Action::File(_) | Action::Command(_) | Action::Tool(_));
        if !concerns || !self.force_unchecked().wants_reservations {
            return None;
        }
        let value = match self.setup.reservations.claims() {
            Ok(mut claims) => {
                if let Action::File(access) = action {
                    let path = path_text::decode(&access.path.canonical)?;
                    claims.retain(|claim| overlap(&claim.path, &path));
                }
                serde_json::to_string(&claims).unwrap_or_else(|_| "null".to_owned())
            }
            Err(_) => "null".to_owned(),
        };
        Some(Attribute { name: RESERVATIONS.to_owned(), value })
    }

    /// Claims what policies want claimed before `request` goes ahead, and gives back what they want given back. What
    /// cannot be claimed is not done.
    pub(crate) fn reserve(&self, request: &Request, decision: Decision) -> Decision {
        if decision.effect() != Effect::Allow {
            return decision;
        }
        let wanted = Reservation::among(decision.obligations());
        let failed = wanted.map(|one| self.carry_out(request, one)).find_map(Result::err);
        match failed {
            Some(error) => {
                self.end_claims(request);
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
        self.claiming.lock().insert(call.to_owned());
        if request.origin == Origin::Process {
            // Nobody says when a call of a command is over; that nobody had it when it began must do.
            self.end_claims(request);
        }
        Ok(())
    }

    /// What this session may not write without a question is not its to keep from others either.
    fn all_are_writable(&self, paths: &[PathBuf]) -> Result<(), ClaimError> {
        let force = self.force();
        let is_foreign =
            |path: &&PathBuf| force.rules.file(path, FileRight::Write, Caller::Tool).effect != Effect::Allow;
        paths.iter().find(is_foreign).map_or(Ok(()), |path| {
            let path = escape(&path_text::encode(path));
            Err(ClaimError::Failed(format!("`{path}` cannot be reserved: this session may not write it")))
        })
    }

    /// Gives back what was claimed until `request` is over.
    pub(crate) fn end_claims(&self, request: &Request) {
        let call = call_of(request);
        if !self.claiming.lock().remove(call) {
            return;
        }
        if let Err(error) = self.setup.reservations.end_call(call) {
            self.setup.desk.notice(&format!("a reservation could not be given back: {}", escape(&error)));
        }
    }

    /// Every claim that is in force, of all sessions of the user.
    ///
    /// # Errors
    /// When they cannot be read; the text says why.
    pub fn claims(&self) -> Result<Vec<Claim>, String> {
        self.setup.reservations.claims()
    }

    /// Whether a policy wants to know of claims.
    #[must_use]
    pub fn wants_reservations(&self) -> bool {
        self.force_unchecked().wants_reservations
    }

    /// The paths as the file gate would have them.
    fn canonical(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        let force = self.force();
        let canonical = |path: &Path| {
            locate(&force.gate, path, Purpose::Existing)
                .or_else(|_| locate(&force.gate, path, Purpose::ForWriting))
                .map_or_else(|_| path_text::normalize(path), |located| located.canonical().to_owned())
        };
        paths.iter().map(|path| canonical(path)).collect()
    }
}

/// What the claims of a request are kept under: a part of a call belongs to the whole.
fn call_of(request: &Request) -> &str {
    request.parent.as_deref().unwrap_or(&request.id)
}

fn refusal(error: &ClaimError) -> Ruling {
    let rule = match error {
        ClaimError::Taken(_) => "host.reserved",
        ClaimError::Failed(_) => "host.reservation-failed",
    };
    Ruling {
        effect: Effect::Deny,
        policy: "host".to_owned(),
        rule: rule.to_owned(),
        reason: error.to_string(),
        setting: String::new(),
        conceal: false,
    }
}
