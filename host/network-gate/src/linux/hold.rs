//! Holds connections inside connect(2), and keeps what came of it for when they are accepted.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portcullis_decision::request::Endpoint;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::judge::{Attempt, Ended, Ending, Judgement};
use crate::linux::process::Owner;
use crate::linux::scope::{Scope, Wanted, closing};
use crate::{Call, Calls};

/// How long a call may be held. Then the connection is made, and goes on waiting where it is accepted: programs that
/// watch over their own threads must not think that one hangs.
pub(crate) const HOLD: Duration = Duration::from_secs(100);
/// How long a connection may take to come out of the network once its call goes on.
const ARRIVAL: Duration = Duration::from_secs(5);

/// What came of calls whose connections have not been accepted yet, by the number of the socket.
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
    found: Found,
    /// Dropped when the connection has come.
    #[expect(dead_code, reason = "its end is what is waited for")]
    waited_for: oneshot::Sender<()>,
}

/// What is known of a connection before it is accepted.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) attempt: Attempt,
    pub(crate) state: State,
}

/// How far the question about it has come.
#[derive(Debug)]
pub(crate) enum State {
    Settled(Box<Judgement>),
    /// The user is still being asked.
    Asked(oneshot::Receiver<Judgement>),
}

impl Held {
    fn keep(&self, socket: u64, found: Found) -> (u64, oneshot::Receiver<()>) {
        let (waited_for, arrival) = oneshot::channel();
        let mut table = self.table();
        table.last += 1;
        let number = table.last;
        table.kept.insert(socket, Kept { number, found, waited_for });
        (number, arrival)
    }

    /// Takes what is known of the connection of this socket, if it goes where was asked about.
    pub(crate) fn take(&self, socket: u64, target: &Endpoint, port: u16) -> Option<Found> {
        let mut table = self.table();
        let access = &table.kept.get(&socket)?.found.attempt.access;
        (access.target == *target && access.port == port).then_some(())?;
        table.kept.remove(&socket).map(|kept| kept.found)
    }

    /// Takes what nobody has come for.
    fn give_up(&self, socket: u64, number: u64) -> Option<Found> {
        let mut table = self.table();
        table.kept.get(&socket).filter(|kept| kept.number == number)?;
        table.kept.remove(&socket).map(|kept| kept.found)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holds calls until there are none to come.
pub(crate) async fn serve(scope: Arc<Scope>, line: Arc<dyn Calls>, mut calls: mpsc::UnboundedReceiver<Call>) {
    let mut held = JoinSet::new();
    let mut under_way: HashMap<u64, oneshot::Sender<()>> = HashMap::new();
    loop {
        tokio::select! {
            call = calls.recv() => match call {
                Some(Call::Waits { id, process, command, socket, address }) => {
                    let (gone, is_gone) = oneshot::channel();
                    under_way.insert(id, gone);
                    let release = Release { id, line: Arc::clone(&line) };
                    let waiting = Waiting { process, command, socket, address, is_gone };
                    let scope = Arc::clone(&scope);
                    held.spawn(async move {
                        hold(&scope, waiting, release).await;
                        id
                    });
                }
                Some(Call::Gone { id }) => drop(under_way.remove(&id)),
                None => return,
            },
            Some(Ok(id)) = held.join_next(), if !held.is_empty() => drop(under_way.remove(&id)),
        }
    }
}

/// Lets the call go on when it is dropped: whatever happens here, nobody waits for ever.
struct Release {
    id: u64,
    line: Arc<dyn Calls>,
}

impl Drop for Release {
    fn drop(&mut self) {
        self.line.release(self.id);
    }
}

struct Waiting {
    process: u32,
    command: u32,
    socket: u64,
    address: SocketAddr,
    /// Ends when the process has given up.
    is_gone: oneshot::Receiver<()>,
}

async fn hold(scope: &Scope, waiting: Waiting, release: Release) {
    let Waiting { process, command, socket, address, is_gone } = waiting;
    // An address that stands for no name is reset where it is accepted.
    let Some(target) = scope.shared.names.endpoint(address.ip()) else { return };
    let wanted = Wanted { target, port: address.port(), client: address, server: address };
    let judge = Arc::clone(&scope.judge);
    let decided = scope.shared.decider.ask(move || {
        let attempt = wanted.attempt_of(Owner::of(process, command));
        let judgement = judge.decide(&attempt);
        (attempt, judgement)
    });
    let Some((attempt, judgement)) = decided.await else { return };
    let state = match judgement {
        Judgement::Ask => match ask(scope, &attempt, is_gone).await {
            Some(state) => state,
            None => return,
        },
        settled @ (Judgement::Allow(_) | Judgement::Deny(_)) => State::Settled(Box::new(settled)),
    };
    let (number, arrival) = scope.held.keep(socket, Found { attempt, state });
    drop(release);
    let _in_time = timeout(ARRIVAL, arrival).await;
    if let Some(found) = scope.held.give_up(socket, number) {
        never_came(scope, found);
    }
}

/// Waits for the user; nothing when the process does not.
async fn ask(scope: &Scope, attempt: &Attempt, is_gone: oneshot::Receiver<()>) -> Option<State> {
    let asking = &scope.shared.asking;
    let mut answer = match asking.put(&scope.judge, attempt.clone()) {
        Ok(answer) => answer,
        Err(refusal) => return Some(State::Settled(Box::new(Judgement::Deny(refusal)))),
    };
    let outcome = tokio::select! {
        answered = &mut answer => Some(answered.unwrap_or_else(|_lost| Judgement::Deny(closing()))),
        _ = is_gone => {
            // Dropped first, so that it counts as given up.
            drop(answer);
            asking.one_gave_up();
            return None;
        }
        () = sleep(scope.hold) => None,
    };
    Some(outcome.map_or(State::Asked(answer), |judgement| State::Settled(Box::new(judgement))))
}

fn never_came(scope: &Scope, Found { attempt, state }: Found) {
    match state {
        State::Settled(judgement) => {
            if let Judgement::Allow(permit) = *judgement {
                let ended = Ended { how: Ending::Closed, sent: 0, received: 0 };
                scope.shared.carried.begin(attempt.command);
                scope.report(attempt, permit.request().to_owned(), ended);
            }
        }
        State::Asked(answer) => {
            drop(answer);
            scope.shared.asking.one_gave_up();
        }
    }
}

#[cfg(test)]
mod tests;
