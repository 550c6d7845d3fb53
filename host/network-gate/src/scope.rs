//! One network of a session, and the way of a connection in it from an attempt to a permit.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use portcullis_decision::Permit;
use portcullis_decision::request::{
    Action, Direction, Endpoint, NetworkAccess, ProcessInfo, Stage, Transport,
};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::ask::Asking;
use crate::budget::{Budgets, Spent};
use crate::carried::Carried;
use crate::decider::Decider;
use crate::judge::{Attempt, Ended, Judge, Judgement, Refusal, Want};
use crate::names::Names;
use crate::process::{self, Client, Owner};

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
}

/// One network of a session.
pub(crate) struct Scope {
    pub(crate) shared: Arc<Shared>,
    pub(crate) judge: Arc<dyn Judge>,
    /// The process below which everything in the network is.
    pub(crate) keeper: u32,
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
    pub(crate) async fn clear(&self, wanted: &Wanted, stream: &TcpStream) -> Cleared {
        let (judge, keeper, facts) = (Arc::clone(&self.judge), self.keeper, wanted.clone());
        let decided = self.shared.decider.ask(move || {
            let attempt = facts.attempt(keeper);
            let judgement = judge.decide(&attempt);
            (attempt, judgement)
        });
        match decided.await {
            Some((attempt, judgement)) => self.settle(attempt, judgement, wanted, stream).await,
            None => Cleared::Denied(closing()),
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
        let Some(answer) = self.shared.asking.put(&self.judge, attempt.clone()) else {
            return Some(Judgement::Deny(Refusal::of_gate(
                "host.too-many-waiting",
                "too many connections wait for an answer already",
            )));
        };
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
                    let (keeper, client, server) = (self.keeper, wanted.client, wanted.server);
                    let look = self.shared.decider.ask(move || process::client(keeper, client, server));
                    if look.await.is_none_or(|client| client == Client::Gone) {
                        return;
                    }
                }
                Ok(_) => {}
                Err(_) => return,
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Tells what became of a connection, once nothing of it is left.
    pub(crate) fn report(&self, attempt: Attempt, request: String, ended: Ended) {
        let (judge, command) = (Arc::clone(&self.judge), attempt.command);
        self.shared.decider.tell(move || judge.ended(&attempt, &request, &ended));
        self.shared.carried.end(command);
    }
}

impl Wanted {
    fn attempt(&self, keeper: u32) -> Attempt {
        let Owner { process, command } = match process::client(keeper, self.client, self.server) {
            Client::Open(socket) => process::owner(keeper, socket),
            Client::Gone => Owner { process: ProcessInfo::default(), command: 0 },
        };
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

fn closing() -> Refusal {
    Refusal::of_gate("host.closing", "the session is ending")
}
