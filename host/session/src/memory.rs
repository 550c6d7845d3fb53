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
    /// The connection, where it was a plain "no" to that one.
    one: Option<NetworkAccess>,
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
        Self { pattern: choice.pattern.clone(), aspect: Aspect::of(action), one: None }
    }

    /// A "no" to sending more than the budget there.
    pub(crate) fn of_more(access: &NetworkAccess) -> Self {
        Self { pattern: GrantPattern::Network(endpoint_pattern(access)), aspect: Aspect::More, one: None }
    }

    /// A plain "no" to a connection: programs that try it again and again ask once.
    pub(crate) fn of_one(access: &NetworkAccess) -> Self {
        let one = Some(access.clone());
        Self { pattern: GrantPattern::Network(endpoint_pattern(access)), aspect: Aspect::Whole, one }
    }

    fn is_of_one(&self, access: &NetworkAccess) -> bool {
        self.one.as_ref().is_some_and(|one| (&one.target, one.port) == (&access.target, access.port))
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
        if denied.one.as_ref().is_some_and(|one| inner.denied.iter().any(|(_, known)| known.is_of_one(one))) {
            return;
        }
        inner.next += 1;
        let id = inner.next;
        inner.denied.push((id, denied));
    }

    pub(crate) fn denies(&self, action: &Action) -> bool {
        self.lock().denied.iter().any(|(_, denied)| denied.covers(action, Aspect::of(action)))
    }

    /// Whether the user has said a plain "no" to it.
    pub(crate) fn denies_one(&self, access: &NetworkAccess) -> bool {
        self.lock().denied.iter().any(|(_, denied)| denied.is_of_one(access))
    }

    /// Forgets plain noes to connections that are permitted by now.
    pub(crate) fn forget_ones(&self, is_permitted: impl Fn(&NetworkAccess) -> bool) {
        // Judged outside of the lock: that may take a policy's time.
        let ones: Vec<NetworkAccess> =
            self.lock().denied.iter().filter_map(|(_, denied)| denied.one.clone()).collect();
        for one in ones.into_iter().filter(is_permitted) {
            self.lock().denied.retain(|(_, denied)| !denied.is_of_one(&one));
        }
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

    /// Forgets one thing; returns what it covered, if it was known.
    pub(crate) fn forget(&self, id: u64) -> Option<GrantPattern> {
        let mut inner = self.lock();
        let granted =
            inner.grants.extract_if(.., |(known, _)| *known == id).map(|(_, grant)| grant.pattern).last();
        let denied =
            inner.denied.extract_if(.., |(known, _)| *known == id).map(|(_, denied)| denied.pattern).last();
        granted.or(denied)
    }

    pub(crate) fn list(&self, now: u32) -> Vec<Remembered> {
        let inner = self.lock();
        let live = inner.grants.iter().filter(|(_, grant)| grant.is_live(now));
        let grants = live.map(|(id, grant)| Remembered {
            id: *id,
            text: spoken(&grant.pattern),
            expires_at: grant.expires_at,
        });
        let denied = inner.denied.iter();
        let denied = denied.map(|(id, denied)| Remembered { id: *id, text: denied.spoken(), expires_at: 0 });
        grants.chain(denied).collect()
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
    fn a_plain_no_is_listed_once_and_ends() {
        let memory = Memory::default();
        for host in ["a.test", "a.test", "b.test"] {
            memory.deny(Denied::of_one(&access(host)));
        }
        let listed = memory.list(0);
        assert_eq!(listed.len(), 2, "{listed:?}");
        assert!(memory.denies_one(&access("a.test")) && memory.denies_one(&access("b.test")));
        memory.forget_ones(|access| access.target == Endpoint::Domain("a.test".to_owned()));
        assert!(!memory.denies_one(&access("a.test")), "a yes, or settings that allow it, end it");
        let left = memory.list(0);
        assert!(left[0].text.contains("b.test"), "{left:?}");
        assert!(memory.forget(left[0].id).is_some() && !memory.denies_one(&access("b.test")));
    }
}
