//! Counts the bytes sent to each destination, because data can leak to an allowed host as well.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_decision::request::Endpoint;

/// The byte counts of every host and port of a session.
#[derive(Debug, Default)]
pub(crate) struct Budgets(Mutex<HashMap<(Endpoint, u16), Arc<Spent>>>);

/// The bytes sent to one host and port, over all connections.
#[derive(Debug)]
pub(crate) struct Spent {
    sent: AtomicU64,
    limit: AtomicU64,
    /// Held by the connection that asks for more. The others wait and share the result.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

impl Budgets {
    /// Returns the account of a host and port; a new account has a limit of `limit` bytes.
    pub(crate) fn account(&self, host: &Endpoint, port: u16, limit: u64) -> Arc<Spent> {
        let mut accounts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let account = accounts.entry((host.clone(), port)).or_insert_with(|| Arc::new(Spent::new(limit)));
        Arc::clone(account)
    }
}

impl Spent {
    fn new(limit: u64) -> Self {
        Self { sent: AtomicU64::new(0), limit: AtomicU64::new(limit), turn: tokio::sync::Mutex::default() }
    }

    /// Counts `bytes` and returns whether the total is within the limit. The bytes count in either case.
    pub(crate) fn spend(&self, bytes: u64) -> bool {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
        self.is_within()
    }

    /// Returns true if `bytes` more would be within the limit.
    pub(crate) fn has_room_for(&self, bytes: u64) -> bool {
        self.sent().saturating_add(bytes) <= self.limit.load(Ordering::Relaxed)
    }

    pub(crate) fn is_within(&self) -> bool {
        self.sent() <= self.limit.load(Ordering::Relaxed)
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Sets the limit to `limit` bytes more than what is sent so far.
    pub(crate) fn extend(&self, limit: u64) {
        self.limit.store(self.sent().saturating_add(limit), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_to_one_place_share_its_budget() {
        let budgets = Budgets::default();
        let host = Endpoint::Domain("a.test".to_owned());
        let first = budgets.account(&host, 443, 10);
        assert!(first.spend(6));
        assert!(!budgets.account(&host, 443, 10).spend(6), "the second connection goes over it");
        assert!(budgets.account(&host, 80, 10).spend(6), "another port has one of its own");
        first.extend(10);
        assert!(first.is_within() && first.sent() == 12);
        assert!(first.spend(10) && !first.spend(1));
    }
}
