//! What a session remembers of the user's answers, in this process only.

use std::sync::{Mutex, PoisonError};

use portcullis_config::Resolved;
use portcullis_decision::profile::FileRight;
use portcullis_decision::request::{Action, NetworkAccess};
use portcullis_decision::{Grant, GrantPattern, GrantScope};

use crate::ask::Choice;
use crate::question::{described, endpoint_pattern};

/// One thing that is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// By which it is taken back.
    pub id: u64,
    /// What it says, safe to show.
    pub text: String,
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

/// A "no" for the session.
#[derive(Debug, Clone)]
pub(crate) struct Denied {
    pattern: GrantPattern,
    aspect: Aspect,
}

/// What of the things that a [`GrantPattern`] has together is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aspect {
    /// A right to a file: a refusal to write says nothing about reading.
    Right(FileRight),
    /// To send more than the budget: a connection as such stays allowed.
    More,
    /// All.
    Whole,
}

impl Denied {
    pub(crate) fn of(choice: &Choice, action: &Action) -> Self {
        Self { pattern: choice.pattern.clone(), aspect: Aspect::of(action) }
    }

    /// A "no" to sending more than the budget there.
    pub(crate) fn of_more(access: &NetworkAccess) -> Self {
        Self { pattern: GrantPattern::Network(endpoint_pattern(access)), aspect: Aspect::More }
    }

    fn covers(&self, action: &Action, aspect: Aspect) -> bool {
        self.aspect == aspect && self.pattern.covers(action)
    }

    fn spoken(&self) -> String {
        let what = spoken(&self.pattern);
        match self.aspect {
            Aspect::More => format!("nothing beyond the budget over {what}"),
            Aspect::Right(_) | Aspect::Whole => format!("no {what}"),
        }
    }
}

impl Aspect {
    fn of(action: &Action) -> Self {
        if let Action::File(access) = action { Self::Right(access.operation.right()) } else { Self::Whole }
    }
}

fn spoken(pattern: &GrantPattern) -> String {
    described(pattern).unwrap_or_else(|| "one request".to_owned())
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
    /// Remembers what one answer grants, under one id by which all of it is taken back.
    pub(crate) fn grant(&self, grants: &[Grant]) -> u64 {
        let mut inner = self.lock();
        inner.next += 1;
        let id = inner.next;
        inner.grants.extend(grants.iter().map(|grant| (id, grant.clone())));
        id
    }

    /// Makes an answer one of the session, because it could not be kept elsewhere.
    pub(crate) fn hold_for_session(&self, id: u64) {
        let mut inner = self.lock();
        for (known, grant) in &mut inner.grants {
            if *known == id {
                grant.scope = GrantScope::Session;
            }
        }
    }

    /// Remembers what one answer refuses for the session, under one id by which all of it is taken back.
    pub(crate) fn deny(&self, denied: Vec<Denied>) {
        let mut inner = self.lock();
        inner.next += 1;
        let id = inner.next;
        inner.denied.extend(denied.into_iter().map(|denied| (id, denied)));
    }

    pub(crate) fn denies(&self, action: &Action) -> bool {
        self.lock().denied.iter().any(|(_, denied)| denied.covers(action, Aspect::of(action)))
    }

    /// Whether the user has refused to let more be sent than the budget of this connection.
    pub(crate) fn denies_more(&self, connection: &Action) -> bool {
        self.lock().denied.iter().any(|(_, denied)| denied.covers(connection, Aspect::More))
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

    /// Forgets one answer; returns what it covered, nothing where it is not known.
    pub(crate) fn forget(&self, id: u64) -> Vec<GrantPattern> {
        let mut inner = self.lock();
        let granted = inner.grants.extract_if(.., |(known, _)| *known == id).map(|(_, grant)| grant.pattern);
        let mut covered: Vec<GrantPattern> = granted.collect();
        let denied = inner.denied.extract_if(.., |(known, _)| *known == id).map(|(_, denied)| denied.pattern);
        covered.extend(denied);
        covered
    }

    /// The answers that hold at `now`, one entry for each.
    pub(crate) fn list(&self, now: u32) -> Vec<Remembered> {
        let inner = self.lock();
        let live = inner.grants.iter().filter(|(_, grant)| grant.is_live(now));
        let granted = live.map(|(id, grant)| (*id, spoken(&grant.pattern), grant.expires_at));
        let denied = inner.denied.iter().map(|(id, denied)| (*id, denied.spoken(), 0));
        let mut answers: Vec<Remembered> = Vec::new();
        for (id, text, expires_at) in granted.chain(denied) {
            match answers.last_mut().filter(|answer| answer.id == id) {
                Some(answer) => answer.text = format!("{}, {text}", answer.text),
                None => answers.push(Remembered { id, text, expires_at }),
            }
        }
        answers
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
        let memory = Memory::default();
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
        let listed = memory.list(0);
        assert_eq!(listed.len(), 2, "{listed:?}");
        assert!(listed[0].text.contains("a.test") && listed[0].text.contains("b.test"), "{listed:?}");
        assert_eq!(memory.forget(id), patterns);
        assert_eq!(memory.forget(id), []);
        let left = memory.list(0);
        assert!(left.len() == 1 && left[0].text.contains("c.test"), "{left:?}");
        assert_eq!(memory.forget(left[0].id).len(), 1);
        assert_eq!(memory.list(0), []);
    }
}
