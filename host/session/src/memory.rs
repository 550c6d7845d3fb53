//! What a session remembers of the user's answers, in this process only.

use std::sync::{Mutex, PoisonError};

use portcullis_config::Resolved;
use portcullis_decision::profile::FileRight;
use portcullis_decision::request::Action;
use portcullis_decision::{Grant, GrantPattern, GrantScope};

use crate::ask::{Choice, ChoiceKind};

/// One thing that is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// By which it is taken back.
    pub id: u64,
    /// Whether it permits or refuses.
    pub kind: ChoiceKind,
    /// How long it lives.
    pub scope: GrantScope,
    /// What it covers.
    pub pattern: GrantPattern,
    /// Seconds since 1970-01-01 UTC; 0 as long as the session.
    pub expires_at: u32,
}

/// Where answers that outlive the session are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The settings were read before them: they are here as well.
    InMemory,
    /// The settings have them.
    InFiles,
}

/// A "no" for the session. A refusal to write says nothing about reading, which [`GrantPattern`] has together.
#[derive(Debug, Clone)]
pub(crate) struct Denied {
    pattern: GrantPattern,
    right: Option<FileRight>,
}

impl Denied {
    pub(crate) fn of(choice: &Choice, action: &Action) -> Self {
        Self { pattern: choice.pattern.clone(), right: right(action) }
    }

    fn covers(&self, action: &Action) -> bool {
        self.right == right(action) && self.pattern.covers(action)
    }
}

fn right(action: &Action) -> Option<FileRight> {
    if let Action::File(access) = action { Some(access.operation.right()) } else { None }
}

/// The answers.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    grants: Vec<(u64, Grant)>,
    denied: Vec<(u64, Denied)>,
}

impl Memory {
    pub(crate) fn grant(&self, grant: Grant) -> u64 {
        let mut inner = self.lock();
        inner.next += 1;
        let id = inner.next;
        inner.grants.push((id, grant));
        id
    }

    /// Makes a grant one of the session, because it could not be kept elsewhere.
    pub(crate) fn hold_for_session(&self, id: u64) {
        let mut inner = self.lock();
        for (known, grant) in &mut inner.grants {
            if *known == id {
                grant.scope = GrantScope::Session;
            }
        }
    }

    pub(crate) fn deny(&self, denied: Denied) {
        let mut inner = self.lock();
        inner.next += 1;
        let id = inner.next;
        inner.denied.push((id, denied));
    }

    pub(crate) fn denies(&self, action: &Action) -> bool {
        self.lock().denied.iter().any(|(_, denied)| denied.covers(action))
    }

    /// The grants that live at `now`, with those that `settings` hold.
    pub(crate) fn live(&self, settings: &Resolved, now: u32, kept: Kept) -> Vec<Grant> {
        let inner = self.lock();
        let here = inner.grants.iter().map(|(_, grant)| grant);
        let here = here.filter(|grant| kept == Kept::InMemory || grant.scope == GrantScope::Session);
        here.chain(&settings.grants).filter(|grant| grant.is_live(now)).cloned().collect()
    }

    /// Forgets what the settings have by now.
    pub(crate) fn forget_kept(&self) {
        self.lock().grants.retain(|(_, grant)| grant.scope == GrantScope::Session);
    }

    pub(crate) fn forget(&self, id: u64) -> bool {
        let mut inner = self.lock();
        let before = inner.grants.len() + inner.denied.len();
        inner.grants.retain(|(known, _)| *known != id);
        inner.denied.retain(|(known, _)| *known != id);
        inner.grants.len() + inner.denied.len() < before
    }

    pub(crate) fn list(&self, now: u32) -> Vec<Remembered> {
        let inner = self.lock();
        let live = inner.grants.iter().filter(|(_, grant)| grant.is_live(now));
        let grants = live.map(|(id, grant)| Remembered {
            id: *id,
            kind: ChoiceKind::Allow,
            scope: grant.scope,
            pattern: grant.pattern.clone(),
            expires_at: grant.expires_at,
        });
        let denied = inner.denied.iter().map(|(id, denied)| Remembered {
            id: *id,
            kind: ChoiceKind::Deny,
            scope: GrantScope::Session,
            pattern: denied.pattern.clone(),
            expires_at: 0,
        });
        grants.chain(denied).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
