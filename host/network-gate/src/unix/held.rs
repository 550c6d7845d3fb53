//! The verdicts on connections that were decided inside connect(2), until they are accepted.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use portcullis_decision::request::Endpoint;
use tokio::sync::oneshot;

use crate::judge::{ConnectionAttempt, Judgement};

/// The verdicts on calls whose connections have not been accepted yet, by the inode number of the socket.
#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    last: u64,
    kept: HashMap<u64, Kept>,
}

#[derive(Debug)]
struct Kept {
    number: u64,
    found: HeldConnection,
    /// Dropped when the connection has been accepted.
    #[expect(dead_code, reason = "its end is what is waited for")]
    waited_for: oneshot::Sender<()>,
}

/// The state of a connection before it is accepted.
#[derive(Debug)]
pub(crate) struct HeldConnection {
    pub(crate) attempt: ConnectionAttempt,
    pub(crate) state: VerdictState,
}

/// The state of a verdict.
#[derive(Debug)]
pub(crate) enum VerdictState {
    Settled(Box<Judgement>),
    /// The question to the user is still open.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux holds calls"))]
    Asked(oneshot::Receiver<Judgement>),
}

/// A connection that should be accepted soon.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux holds calls"))]
pub(crate) struct Expected {
    pub(crate) socket: u64,
    pub(crate) number: u64,
    pub(crate) arrival: oneshot::Receiver<()>,
}

impl Held {
    /// Keeps a verdict until the connection of this socket is accepted.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux holds calls"))]
    pub(crate) fn keep(&self, socket: u64, found: HeldConnection) -> Expected {
        let (waited_for, arrival) = oneshot::channel();
        let mut table = self.table();
        table.last += 1;
        let number = table.last;
        table.kept.insert(socket, Kept { number, found, waited_for });
        Expected { socket, number, arrival }
    }

    /// Takes the verdict for the connection of this socket, if it goes to the destination that was decided about.
    pub(crate) fn take(&self, socket: u64, target: &Endpoint, port: u16) -> Option<HeldConnection> {
        let mut table = self.table();
        let access = &table.kept.get(&socket)?.found.attempt.access;
        (access.target == *target && access.port == port).then_some(())?;
        table.kept.remove(&socket).map(|kept| kept.found)
    }

    /// Takes a verdict whose connection was never accepted.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux holds calls"))]
    pub(crate) fn give_up(&self, socket: u64, number: u64) -> Option<HeldConnection> {
        let mut table = self.table();
        table.kept.get(&socket).filter(|kept| kept.number == number)?;
        table.kept.remove(&socket).map(|kept| kept.found)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
