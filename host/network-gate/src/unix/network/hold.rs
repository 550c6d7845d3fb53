//! Holds connections inside connect(2) until they are decided.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use portcullis_decision::request::Endpoint;
use portcullis_sandbox::sock_diag::SocketQuery;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::process::owner;
use crate::judge::{Ended, Ending, Judgement, Undecided};
use crate::unix::client::Owner;
use crate::unix::held::{Expected, HeldConnection, VerdictState};
use crate::unix::scope::{Scope, Wanted, closing};
use crate::{Call, Calls, names};

/// How long a call may be held.
///
/// After that the connection is made and waits where it is accepted, because a program with a watchdog must not take
/// its thread for hung.
pub(crate) const HOLD: Duration = Duration::from_secs(100);
/// How long a connection may take to be accepted after its call is released.
const ARRIVAL: Duration = Duration::from_secs(5);

/// An event that the thread receiving calls passes to the task in [`serve`].
pub(crate) enum HoldEvent {
    /// Only the user can decide.
    Open {
        undecided: Box<Undecided>,
        /// The inode number of the socket.
        socket: u64,
        release: Release,
    },
    /// The call was allowed and released.
    Settled(Expected),
    /// A call is no longer suspended.
    Gone {
        /// The id of the call.
        id: u64,
    },
}

/// Releases the call when it is dropped, so that no failure here blocks a process forever.
pub(crate) struct Release {
    id: u64,
    line: Option<Arc<dyn Calls>>,
    /// Where the call connects to instead of its own destination.
    instead: Option<SocketAddr>,
}

impl Release {
    /// Makes the call fail.
    fn refuse(mut self) {
        if let Some(line) = self.line.take() {
            line.refuse(self.id);
        }
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        match (&self.line, self.instead) {
            (Some(line), Some(address)) => line.redirect(self.id, address),
            (Some(line), None) => line.release(self.id),
            (None, _) => {}
        }
    }
}

/// Receives calls and has them decided, on a thread of its own, until the network has ended.
///
/// The same thread asks the judge. Each further thread would have to be woken before a short connection can be made,
/// and that costs more than the decision.
pub(crate) fn hear(
    scope: &Arc<Scope>,
    line: &Arc<dyn Calls>,
) -> io::Result<mpsc::UnboundedReceiver<HoldEvent>> {
    let (told, heard) = mpsc::unbounded_channel();
    let (scope, line) = (Arc::clone(scope), Arc::clone(line));
    let services = SocketQuery::open().ok();
    let hear = move || {
        while let Some(call) = line.next() {
            let news = match call {
                Call::Waits { id, process, command, socket, address, is_unheard } => {
                    let mut release = Release { id, line: Some(Arc::clone(&line)), instead: None };
                    let wanted = match is_unheard {
                        false => wanted(&scope, address),
                        true => service(services.as_ref(), address).map(|(wanted, stand_in)| {
                            release.instead = Some(stand_in);
                            wanted
                        }),
                    };
                    // After the receiver is gone, the call continues and its connection fails.
                    let wanted = wanted.filter(|_| !told.is_closed());
                    wanted
                        .and_then(|wanted| decide(&scope, &wanted, owner(process, command), socket, release))
                }
                Call::Gone { id } => Some(HoldEvent::Gone { id }),
            };
            if let Some(news) = news {
                // If the event is not received, dropping it releases its call.
                drop(told.send(news));
            }
        }
    };
    // The thread ends with the network.
    drop(std::thread::Builder::new().name("net-hear".to_owned()).spawn(hear)?);
    Ok(heard)
}

/// Returns the destination of a call.
///
/// An address without a name yields `None`; its connection is reset after it is accepted.
fn wanted(scope: &Scope, address: SocketAddr) -> Option<Wanted> {
    let target = scope.shared.names.endpoint(address.ip())?;
    Some(Wanted { target, port: address.port(), client: address, server: address })
}

/// Returns the service of this machine that an unheard call may mean, and the address that stands for it inside; `None`
/// if no process of this machine listens there.
fn service(services: Option<&SocketQuery>, address: SocketAddr) -> Option<(Wanted, SocketAddr)> {
    let stand_in = names::stand_in(address.ip())?;
    let is_there = services?.is_listening(address).unwrap_or_default();
    let target = Endpoint::Address(address.ip());
    let wanted = Wanted { target, port: address.port(), client: address, server: address };
    is_there.then(|| (wanted, SocketAddr::new(stand_in.into(), address.port())))
}

/// Decides a call. Returns `None` if it is refused, which ends it.
fn decide(scope: &Scope, wanted: &Wanted, owner: Owner, socket: u64, release: Release) -> Option<HoldEvent> {
    let attempt = scope.attempt(wanted, owner);
    match scope.judge.decide(&attempt) {
        Judgement::Ask(undecided) => Some(HoldEvent::Open { undecided, socket, release }),
        Judgement::Deny(_) => {
            release.refuse();
            None
        }
        settled @ Judgement::Allow(_) => {
            let state = VerdictState::Settled(Box::new(settled));
            Some(HoldEvent::Settled(scope.held.keep(socket, HeldConnection { attempt, state })))
        }
    }
}

/// Holds calls that need the user, and drops verdicts whose connections never arrive.
pub(crate) async fn serve(
    scope: Arc<Scope>,
    mut heard: mpsc::UnboundedReceiver<HoldEvent>,
    longest: Duration,
) {
    let mut held = JoinSet::new();
    let mut under_way: HashMap<u64, oneshot::Sender<()>> = HashMap::new();
    loop {
        tokio::select! {
            news = heard.recv() => match news {
                Some(HoldEvent::Open { undecided, socket, release }) => {
                    let (gone, is_gone) = oneshot::channel();
                    let id = release.id;
                    under_way.insert(id, gone);
                    let scope = Arc::clone(&scope);
                    held.spawn(async move {
                        hold((&scope, longest), undecided, socket, release, is_gone).await;
                        Some(id)
                    });
                }
                Some(HoldEvent::Settled(expected)) => {
                    let scope = Arc::clone(&scope);
                    held.spawn(async move {
                        expect(&scope, expected).await;
                        None
                    });
                }
                Some(HoldEvent::Gone { id }) => drop(under_way.remove(&id)),
                None => return,
            },
            Some(Ok(Some(id))) = held.join_next(), if !held.is_empty() => drop(under_way.remove(&id)),
        }
    }
}

/// Holds a call until the user has answered, or for the longest time allowed.
///
/// `is_gone` completes when the process has given up.
async fn hold(
    (scope, longest): (&Scope, Duration),
    undecided: Box<Undecided>,
    socket: u64,
    release: Release,
    is_gone: oneshot::Receiver<()>,
) {
    let attempt = undecided.attempt.clone();
    let Some(state) = ask((scope, longest), undecided, is_gone).await else { return };
    if matches!(&state, VerdictState::Settled(judgement) if matches!(**judgement, Judgement::Deny(_))) {
        return release.refuse();
    }
    let expected = scope.held.keep(socket, HeldConnection { attempt, state });
    drop(release);
    expect(scope, expected).await;
}

/// Drops the verdict if the connection does not arrive in time.
async fn expect(scope: &Scope, Expected { socket, number, arrival }: Expected) {
    let _in_time = timeout(ARRIVAL, arrival).await;
    if let Some(found) = scope.held.give_up(socket, number) {
        never_came(scope, found);
    }
}

/// Waits for the user; returns `None` if the process gives up.
async fn ask(
    (scope, longest): (&Scope, Duration),
    undecided: Box<Undecided>,
    is_gone: oneshot::Receiver<()>,
) -> Option<VerdictState> {
    let asking = &scope.shared.asking;
    let mut answer = match asking.put(&scope.judge, undecided) {
        Ok(answer) => answer,
        Err(refusal) => return Some(VerdictState::Settled(Box::new(Judgement::Deny(refusal)))),
    };
    let outcome = tokio::select! {
        answered = &mut answer => Some(answered.unwrap_or_else(|_lost| Judgement::Deny(closing()))),
        _ = is_gone => {
            // Drop the receiver first, so that the question counts this client as gone.
            drop(answer);
            asking.one_gave_up();
            return None;
        }
        () = sleep(longest) => None,
    };
    Some(outcome.map_or(VerdictState::Asked(answer), |judgement| VerdictState::Settled(Box::new(judgement))))
}

fn never_came(scope: &Scope, HeldConnection { attempt, state }: HeldConnection) {
    match state {
        VerdictState::Settled(judgement) => {
            if let Judgement::Allow(permit) = *judgement {
                let ended = Ended { how: Ending::Closed, sent: 0, received: 0 };
                scope.shared.carried.begin(attempt.command);
                scope.report(attempt, permit.request().to_owned(), ended);
            }
        }
        VerdictState::Asked(answer) => {
            drop(answer);
            scope.shared.asking.one_gave_up();
        }
    }
}

#[cfg(test)]
pub(in crate::unix) mod tests;
