//! The user's answers that a session remembers, in this process only.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use portcullis_decision::profile::FileRight;
use portcullis_decision::request::{Action, NetworkAccess};
use portcullis_decision::{Grant, GrantPattern, GrantScope};

use crate::open_questions::Choice;
use crate::question::{described, endpoint_pattern};

/// A remembered answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// Its id, for revoking it.
    pub id: u64,
    /// Its description, safe to show.
    pub text: String,
    /// Time of expiry, in seconds since 1970-01-01 UTC; 0 means the end of the session.
    pub expires_at: u32,
}

/// Where to look up answers that outlive the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// In memory: the settings were read before these answers.
    InMemory,
    /// In the settings.
    InFiles,
}

/// A "no" for the session.
#[derive(Debug, Clone)]
pub struct Denied {
    pattern: GrantPattern,
    aspect: DeniedPart,
}

/// The part of a [`GrantPattern`]'s permissions that is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeniedPart {
    /// A right to a file: a denial of writing does not affect reading.
    Right(FileRight),
    /// Sending more than the budget: the connection itself stays allowed.
    More,
    /// All permissions.
    Whole,
}

impl Denied {
    /// Returns the denial that a choice makes, for the right that `action` uses.
    #[must_use]
    pub fn from_choice(choice: &Choice, action: &Action) -> Self {
        Self { pattern: choice.pattern.clone(), aspect: DeniedPart::from_action(action) }
    }

    /// Returns a denial of sending more than the budget to a host and port.
    #[must_use]
    pub fn of_more(access: &NetworkAccess) -> Self {
        Self { pattern: GrantPattern::Network(endpoint_pattern(access)), aspect: DeniedPart::More }
    }

    fn covers(&self, action: &Action, aspect: DeniedPart) -> bool {
        self.aspect == aspect && self.pattern.covers(action)
    }

    fn spoken(&self, home: Option<&Path>) -> String {
        let what = spoken(&self.pattern, home);
        match self.aspect {
            DeniedPart::More => format!("no more than the budget over {what}"),
            DeniedPart::Right(_) | DeniedPart::Whole => format!("no {what}"),
        }
    }
}

impl DeniedPart {
    fn from_action(action: &Action) -> Self {
        if let Action::File(access) = action { Self::Right(access.operation.right()) } else { Self::Whole }
    }
}

fn spoken(pattern: &GrantPattern, home: Option<&Path>) -> String {
    described(pattern, home).unwrap_or_else(|| "one request".to_owned())
}

/// The answers.
#[derive(Debug, Default)]
pub struct RememberedAnswers(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Number of changes.
    revision: u64,
    next: u64,
    grants: Vec<(u64, Grant)>,
    denied: Vec<(u64, Denied)>,
}

impl RememberedAnswers {
    /// Stores the grants of one answer under one id, which revokes all of them.
    pub fn grant(&self, grants: &[Grant]) -> u64 {
        let mut inner = self.change();
        inner.next += 1;
        let id = inner.next;
        inner.grants.extend(grants.iter().map(|grant| (id, grant.clone())));
        id
    }

    /// Reduces an answer to the scope of the session, because it could not be stored elsewhere.
    pub fn hold_for_session(&self, id: u64) {
        let mut inner = self.lock();
        for (known, grant) in &mut inner.grants {
            if *known == id {
                grant.scope = GrantScope::Session;
            }
        }
    }

    /// Stores the denials of one answer under one id, which revokes all of them.
    pub fn deny(&self, denied: Vec<Denied>) {
        let mut inner = self.change();
        inner.next += 1;
        let id = inner.next;
        inner.denied.extend(denied.into_iter().map(|denied| (id, denied)));
    }

    /// Returns true if the user has denied the action for the session.
    #[must_use]
    pub fn denies(&self, action: &Action) -> bool {
        self.lock().denied.iter().any(|(_, denied)| denied.covers(action, DeniedPart::from_action(action)))
    }

    /// Returns true if the user has denied sending more than the budget of this connection.
    #[must_use]
    pub fn denies_more(&self, connection: &Action) -> bool {
        self.lock().denied.iter().any(|(_, denied)| denied.covers(connection, DeniedPart::More))
    }

    /// Returns the grants that are live at `now`, including those of the settings.
    #[must_use]
    pub fn live(&self, settings: &[Grant], now: u32, kept: Kept) -> Vec<Grant> {
        let inner = self.lock();
        let here = inner.grants.iter().map(|(_, grant)| grant);
        let here = here.filter(|grant| kept == Kept::InMemory || grant.scope == GrantScope::Session);
        here.chain(settings).filter(|grant| grant.is_live(now)).cloned().collect()
    }

    /// Forgets the answers that the settings have by now.
    pub fn forget_kept(&self) {
        self.change().grants.retain(|(_, grant)| grant.scope == GrantScope::Session);
    }

    /// Forgets one answer and returns the patterns that it covered; empty if the id is unknown.
    #[must_use]
    pub fn forget(&self, id: u64) -> Vec<GrantPattern> {
        let mut inner = self.change();
        let granted = inner.grants.extract_if(.., |(known, _)| *known == id).map(|(_, grant)| grant.pattern);
        let mut covered: Vec<GrantPattern> = granted.collect();
        let denied = inner.denied.extract_if(.., |(known, _)| *known == id).map(|(_, denied)| denied.pattern);
        covered.extend(denied);
        covered
    }

    /// Returns the answers that are live at `now`, one entry each, with paths in `home` shown as `~`.
    #[must_use]
    pub fn list(&self, now: u32, home: Option<&Path>) -> Vec<Remembered> {
        let inner = self.lock();
        let live = inner.grants.iter().filter(|(_, grant)| grant.is_live(now));
        let granted = live.map(|(id, grant)| (*id, spoken(&grant.pattern, home), grant.expires_at));
        let denied = inner.denied.iter().map(|(id, denied)| (*id, denied.spoken(home), 0));
        let mut answers: Vec<Remembered> = Vec::new();
        for (id, text, expires_at) in granted.chain(denied) {
            match answers.last_mut().filter(|answer| answer.id == id) {
                Some(answer) => answer.text = format!("{}, {text}", answer.text),
                None => answers.push(Remembered { id, text, expires_at }),
            }
        }
        answers
    }

    /// Returns a number that grows with each change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.lock().revision
    }

    /// Locks the answers in order to change them.
    fn change(&self) -> std::sync::MutexGuard<'_, Inner> {
        let mut inner = self.lock();
        inner.revision += 1;
        inner
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use portcullis_decision::request::{Direction, Endpoint, ProcessInfo, Stage, Transport};

    use super::*;

    fn access(host: &str) -> NetworkAccess {
        let (transport, direction, process) = (Transport::Tcp, Direction::Outbound, ProcessInfo::default());
        let (target, stage) = (Endpoint::Domain(host.to_owned()), Stage::Connect);
        NetworkAccess { transport, direction, target, port: 443, stage, process }
    }

    #[test]
    fn an_answer_for_several_places_is_listed_and_taken_back_as_one() {
        let memory = RememberedAnswers::default();
        let patterns =
            ["a.test", "b.test"].map(|host| GrantPattern::Network(endpoint_pattern(&access(host))));
        let grant = |pattern: &GrantPattern| Grant {
            scope: GrantScope::Session,
            pattern: pattern.clone(),
            granted_at: 0,
            expires_at: 0,
        };
        let id = memory.grant(&patterns.each_ref().map(grant));
        memory.deny(vec![Denied::of_more(&access("c.test"))]);
        let listed = memory.list(0, None);
        assert_eq!(listed.len(), 2, "{listed:?}");
        assert!(listed[0].text.contains("a.test") && listed[0].text.contains("b.test"), "{listed:?}");
        assert_eq!(memory.forget(id), patterns);
        assert_eq!(memory.forget(id), []);
        let left = memory.list(0, None);
        assert!(left.len() == 1 && left[0].text.contains("c.test"), "{left:?}");
        assert_eq!(memory.forget(left[0].id).len(), 1);
        assert_eq!(memory.list(0, None), []);
    }
}
