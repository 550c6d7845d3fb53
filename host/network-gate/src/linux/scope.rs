//! One network of a session, and the way of a connection in it from an attempt to a permit.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use portcullis_decision::Permit;
use portcullis_decision::request::{Action, Direction, Endpoint, NetworkAccess, Stage, Transport};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};

use crate::judge::{Attempt, Ended, Judge, Judgement, Refusal, Want};
use crate::linux::ask::Asking;
use crate::linux::budget::{Budgets, Spent};
use crate::linux::carried::Carried;
use crate::linux::clients::{Client, Clients};
use crate::linux::decider::Decider;
use crate::linux::hold::{Found, Held, State};
use crate::linux::process::Owner;
use crate::names::Names;

/// How often it is looked whether a client that has sent something has gone since.
const LOOK: Duration = Duration::from_millis(250);

/// What all networks of a session share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) names: Names,
    pub(crate) budgets: Budgets,
    pub(crate) asking: Arc<Asking>,
    pub(crate) carried: Carried,
    pub(crate) decider: Decider,
    /// For how many connections there are descriptors.
    pub(crate) room: Arc<Semaphore>,
    /// How many more may be told that there is no room.
    pub(crate) told: Arc<Semaphore>,
    /// For how many wide chunks there is memory.
    pub(crate) chunks: Arc<Semaphore>,
}

/// One network of a session.
pub(crate) struct Scope {
    pub(crate) shared: Arc<Shared>,
    pub(crate) judge: Arc<dyn Judge>,
    /// What is known of connections that were held before they were made.
    pub(crate) held: Held,
    /// How long a call may be held.
    pub(crate) hold: Duration,
    /// The processes in the network, and their sockets.
    pub(crate) clients: Arc<Clients>,
    /// What a program has to know to use the proxy.
    pub(crate) token: String,
}

/// What a connection is for, as far as it is known at once.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) target: Endpoint,
    pub(crate) port: u16,
    /// Where the client's end is found: its own address, and the one it connected to.
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
}

/// What became of an attempt.
#[derive(Debug)]
pub(crate) enum Cleared {
    Allowed(Box<Attempt>, Permit),
    Denied(Refusal),
    /// The client did not wait.
    Abandoned,
}

impl Scope {
    /// Has a connection decided; it is held until there is an answer.
    pub(crate) async fn clear(self: &Arc<Self>, wanted: &Wanted, stream: &TcpStream) -> Cleared {
        // Here and now where that is known without waiting: most connections were decided before they were made.
        let client = self.clients.ask_kernel(wanted.client, wanted.server);
        let found = match client.and_then(|client| self.decided_before(client, wanted)) {
            Some(found) => Some(found),
            None => {
                let (scope, facts) = (Arc::clone(self), wanted.clone());
                self.shared.decider.ask(move || scope.decide(&facts, client)).await
            }
        };
        match found {
            Some(Found { attempt, state: State::Settled(judgement) }) => {
                self.settle(attempt, *judgement, wanted, stream).await
            }
            Some(Found { attempt, state: State::Asked(answer) }) => {
                match self.answered(answer, wanted, stream).await {
                    Some(judgement) => self.settle(attempt, judgement, wanted, stream).await,
                    None => Cleared::Abandoned,
                }
            }
            None => Cleared::Denied(closing()),
        }
    }

    /// What came of the call by which the client has made this very connection, if that was held.
    fn decided_before(&self, client: Client, wanted: &Wanted) -> Option<Found> {
        match client {
            Client::Open(socket) => self.held.take(socket, &wanted.target, wanted.port),
            Client::Gone => None,
        }
    }

    /// Decides about a connection. `client` is what is known of its other end.
    fn decide(&self, wanted: &Wanted, client: Option<Client>) -> Found {
        let client = client.unwrap_or_else(|| self.clients.client(wanted.client, wanted.server));
        if let Some(found) = self.decided_before(client, wanted) {
            return found;
        }
        let owner = match client {
            Client::Open(socket) => self.clients.owner(socket),
            Client::Gone => Owner::default(),
        };
        let attempt = wanted.attempt_of(owner);
        let judgement = self.judge.decide(&attempt);
        Found { attempt, state: State::Settled(Box::new(judgement)) }
    }

    /// Has it decided about what has become known of an allowed connection. Nothing is the reason when the client did
    /// not wait.
    pub(crate) async fn clear_stage(
        &self,
        attempt: &Attempt,
        stage: Stage,
        wanted: &Wanted,
        stream: &TcpStream,
    ) -> Result<(), Option<Refusal>> {
        let mut attempt = attempt.clone();
        attempt.access.stage = stage;
        let (judge, asked) = (Arc::clone(&self.judge), attempt.clone());
        let Some(judgement) = self.shared.decider.ask(move || judge.decide(&asked)).await else {
            return Err(Some(closing()));
        };
        match self.settle(attempt, judgement, wanted, stream).await {
            Cleared::Allowed(..) => Ok(()),
            Cleared::Denied(refusal) => Err(Some(refusal)),
            Cleared::Abandoned => Err(None),
        }
    }

    /// Has it decided whether more may be sent than the budget allows; until then nothing is.
    pub(crate) async fn clear_more(
        &self,
        attempt: &Attempt,
        spent: &Spent,
        wanted: &Wanted,
        stream: &TcpStream,
    ) -> Result<(), Option<Refusal>> {
        let _turn = spent.turn.lock().await;
        if spent.is_within() {
            return Ok(());
        }
        let attempt = Attempt { want: Want::SendMore { sent: spent.sent() }, ..attempt.clone() };
        let (judge, asked) = (Arc::clone(&self.judge), attempt.clone());
        let Some(judgement) = self.shared.decider.ask(move || judge.decide(&asked)).await else {
            return Err(Some(closing()));
        };
        match self.settle(attempt, judgement, wanted, stream).await {
            Cleared::Allowed(attempt, _permit) => {
                spent.extend(self.judge.budget(&attempt));
                Ok(())
            }
            Cleared::Denied(refusal) => Err(Some(refusal)),
            Cleared::Abandoned => Err(None),
        }
    }

    async fn settle(
        &self,
        attempt: Attempt,
        judgement: Judgement,
        wanted: &Wanted,
        stream: &TcpStream,
    ) -> Cleared {
        let judgement = match judgement {
            Judgement::Ask => match self.ask(&attempt, wanted, stream).await {
                Some(judgement) => judgement,
                None => return Cleared::Abandoned,
            },
            settled @ (Judgement::Allow(_) | Judgement::Deny(_)) => settled,
        };
        match judgement {
            // The permit must be for what is about to be done.
            Judgement::Allow(permit) if *permit.action() == Action::Network(attempt.access.clone()) => {
                Cleared::Allowed(Box::new(attempt), permit)
            }
            Judgement::Allow(_) => {
                Cleared::Denied(Refusal::of_gate("host.wrong-permit", "the permit is for another connection"))
            }
            Judgement::Ask => {
                Cleared::Denied(Refusal::of_gate("host.no-answer", "nobody has answered the question"))
            }
            Judgement::Deny(refusal) => Cleared::Denied(refusal),
        }
    }

    /// Waits for the user; nothing when the client does not.
    async fn ask(&self, attempt: &Attempt, wanted: &Wanted, stream: &TcpStream) -> Option<Judgement> {
        match self.shared.asking.put(&self.judge, attempt.clone()) {
            Ok(answer) => self.answered(answer, wanted, stream).await,
            Err(refusal) => Some(Judgement::Deny(refusal)),
        }
    }

    /// Waits for an answer; nothing when the client does not.
    async fn answered(
        &self,
        answer: oneshot::Receiver<Judgement>,
        wanted: &Wanted,
        stream: &TcpStream,
    ) -> Option<Judgement> {
        let answered = tokio::select! {
            answer = answer => Some(answer.unwrap_or_else(|_lost| Judgement::Deny(closing()))),
            () = self.gone(wanted, stream) => None,
        };
        if answered.is_none() {
            // The receiver is dropped by now, so it counts as given up.
            self.shared.asking.one_gave_up();
        }
        answered
    }

    /// Ends when nobody has the client's end open any more.
    async fn gone(&self, wanted: &Wanted, stream: &TcpStream) {
        loop {
            match stream.ready(Interest::READABLE).await {
                // It has sent its last byte; it may still wait for ours.
                Ok(ready) if ready.is_read_closed() => {
                    if self.is_gone(wanted).await {
                        return;
                    }
                }
                Ok(_) => {}
                Err(_) => return,
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Whether nobody has the client's end open any more.
    pub(crate) async fn is_gone(&self, wanted: &Wanted) -> bool {
        let (clients, client, server) = (Arc::clone(&self.clients), wanted.client, wanted.server);
        let look = self.shared.decider.ask(move || clients.client(client, server));
        look.await.is_none_or(|client| client == Client::Gone)
    }

    /// Tells what became of a connection, once nothing of it is left.
    pub(crate) fn report(&self, attempt: Attempt, request: String, ended: Ended) {
        let (judge, command) = (Arc::clone(&self.judge), attempt.command);
        self.shared.decider.tell(move || judge.ended(&attempt, &request, &ended));
        self.shared.carried.end(command);
    }
}

impl Wanted {
    /// What a process wants with it.
    pub(crate) fn attempt_of(&self, Owner { process, command, .. }: Owner) -> Attempt {
        let access = NetworkAccess {
            transport: Transport::Tcp,
            direction: Direction::Outbound,
            target: self.target.clone(),
            port: self.port,
            stage: Stage::Connect,
            process,
        };
        Attempt { access, command, want: Want::Connect }
    }
}

pub(crate) fn closing() -> Refusal {
    Refusal::of_gate("host.closing", "the session is ending")
}
