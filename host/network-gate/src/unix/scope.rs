//! One network of a session, and the steps from an attempt to a permit in it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use portcullis_decision::ConnectionRefusal;
use portcullis_decision::Permit;
use portcullis_decision::request::{Action, Direction, Endpoint, NetworkAccess, Stage, Transport};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};

use crate::judge::{ConnectionAttempt, Ended, Judge, Judgement, Running, Undecided, Want};
use crate::names::Names;
use crate::unix::active_connections::ActiveConnections;
use crate::unix::ask::Asking;
use crate::unix::budget::{Budgets, Spent};
use crate::unix::client::{Client, Owner};
use crate::unix::clients::{self, Awaited, Clients};
use crate::unix::decider::Decider;
use crate::unix::held::{Held, HeldConnection, VerdictState};
use crate::unix::limited_addresses::LimitedAddresses;

/// The interval of checks whether a client that has stopped sending is gone.
const LOOK: Duration = Duration::from_millis(250);

/// State that all networks of a session share.
#[derive(Debug)]
pub(crate) struct Shared {
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux answers queries of DNS"))]
    pub(crate) names: Names,
    pub(crate) limited: LimitedAddresses,
    pub(crate) budgets: Budgets,
    pub(crate) asking: Arc<Asking>,
    pub(crate) carried: ActiveConnections,
    pub(crate) decider: Decider,
    /// One permit for each connection that the file descriptors allow.
    pub(crate) room: Arc<Semaphore>,
    /// One permit for each client that can get the message that the limit is reached.
    pub(crate) told: Arc<Semaphore>,
    /// One permit for each wide read buffer.
    pub(crate) chunks: Arc<Semaphore>,
}

/// One network of a session.
pub(crate) struct Scope {
    pub(crate) shared: Arc<Shared>,
    pub(crate) judge: Arc<dyn Judge>,
    /// The state of connections that were held inside connect(2).
    pub(crate) held: Held,
    /// The processes that connect, and their sockets.
    pub(crate) clients: Arc<Clients>,
    /// The secret that a program needs to use the proxy.
    pub(crate) token: String,
}

/// The destination of a connection, and its addresses.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) target: Endpoint,
    pub(crate) port: u16,
    /// The client's address and the address it connected to; together they identify its socket.
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
}

/// The outcome of an attempt.
#[derive(Debug)]
pub(crate) enum Clearance {
    Allowed(Box<ConnectionAttempt>, Permit),
    Denied(ConnectionRefusal),
    /// The client has gone.
    Abandoned,
}

impl Scope {
    /// Has a connection decided, and holds it until there is an answer.
    pub(crate) async fn clear(self: &Arc<Self>, wanted: &Wanted, stream: &TcpStream) -> Clearance {
        // Most connections were decided inside connect(2). If the kernel identifies the socket at once, the verdict is
        // found without a switch of threads.
        let client = self.clients.ask_kernel(wanted.client, wanted.server);
        let found = match client.and_then(|client| self.decided_before(client, wanted)) {
            Some(found) => Some(found),
            None => {
                let (scope, facts) = (Arc::clone(self), wanted.clone());
                self.shared.decider.ask(move || scope.decide(&facts, client)).await
            }
        };
        match found {
            Some(HeldConnection { attempt, state: VerdictState::Settled(judgement) }) => {
                self.carry_out(attempt, *judgement, wanted, stream).await
            }
            Some(HeldConnection { attempt, state: VerdictState::Asked(answer) }) => {
                match self.answered(answer, wanted, stream).await {
                    Some(judgement) => self.carry_out(attempt, judgement, wanted, stream).await,
                    None => Clearance::Abandoned,
                }
            }
            None => Clearance::Denied(closing()),
        }
    }

    /// Returns the state that the connect(2) call of this connection left, if it was held.
    fn decided_before(&self, client: Client, wanted: &Wanted) -> Option<HeldConnection> {
        match client {
            Client::Open(socket) => self.held.take(socket, &wanted.target, wanted.port),
            Client::Gone | Client::Untold => None,
        }
    }

    /// Decides about a connection. `client` is the client's socket, if it is known already.
    fn decide(&self, wanted: &Wanted, client: Option<Client>) -> HeldConnection {
        let client = client.unwrap_or_else(|| self.clients.client(wanted.client, wanted.server));
        if let Some(found) = self.decided_before(client, wanted) {
            return found;
        }
        let attempt = self.attempt(wanted, self.clients.owner(client));
        let judgement = match (client, self.judge.running()) {
            // It was queued by a command that has ended: a question about it would come from no command.
            (Client::Gone | Client::Untold, Running::None) => {
                Judgement::Deny(ConnectionRefusal::of_ended_command())
            }
            (Client::Gone | Client::Open(_) | Client::Untold, _) => self.judge.decide(&attempt),
        };
        HeldConnection { attempt, state: VerdictState::Settled(Box::new(judgement)) }
    }

    /// Returns the attempt of a process to make this connection. If the process is unknown, the attempt counts for the
    /// running command if there is only one, so that a process cannot evade an answer by closing its socket.
    pub(crate) fn attempt(&self, wanted: &Wanted, owner: Owner) -> ConnectionAttempt {
        let command = match (owner.command, self.judge.running()) {
            (0, Running::One(command)) => command,
            (known, _) => known,
        };
        wanted.attempt_of(Owner { command, ..owner })
    }

    /// Has a later stage of an allowed connection decided. The error is `None` if the client has gone.
    pub(crate) async fn clear_stage(
        &self,
        attempt: &ConnectionAttempt,
        stage: Stage,
        wanted: &Wanted,
        stream: &TcpStream,
    ) -> Result<(), Option<ConnectionRefusal>> {
        self.clear_stage_and(attempt, stage, (wanted, stream), |_judge| ()).await.map(drop)
    }

    /// Has a later stage of an allowed connection decided. If rules allow it, `then` runs on the thread of the judge
    /// while the caller goes on, and true is returned.
    pub(crate) async fn clear_stage_and(
        &self,
        attempt: &ConnectionAttempt,
        stage: Stage,
        (wanted, stream): (&Wanted, &TcpStream),
        then: impl FnOnce(&dyn Judge) + Send + 'static,
    ) -> Result<bool, Option<ConnectionRefusal>> {
        let mut attempt = attempt.clone();
        attempt.access.stage = stage;
        let (judge, asked) = (Arc::clone(&self.judge), attempt.clone());
        let (reply, answer) = oneshot::channel();
        self.shared.decider.tell(move || {
            let judgement = judge.decide(&asked);
            let is_allowed = matches!(judgement, Judgement::Allow(_));
            // The caller may have gone, and then nothing follows.
            if reply.send((judgement, is_allowed)).is_ok() && is_allowed {
                then(&*judge);
            }
        });
        let Ok((judgement, is_allowed)) = answer.await else { return Err(Some(closing())) };
        match self.carry_out(attempt, judgement, wanted, stream).await {
            Clearance::Allowed(..) => Ok(is_allowed),
            Clearance::Denied(refusal) => Err(Some(refusal)),
            Clearance::Abandoned => Err(None),
        }
    }

    /// Has it decided whether the connection may exceed its budget. The caller must not send until then.
    pub(crate) async fn clear_more(
        &self,
        attempt: &ConnectionAttempt,
        spent: &Spent,
        wanted: &Wanted,
        stream: &TcpStream,
    ) -> Result<(), Option<ConnectionRefusal>> {
        let _turn = spent.turn.lock().await;
        if spent.is_within() {
            return Ok(());
        }
        let attempt = ConnectionAttempt { want: Want::SendMore { sent: spent.sent() }, ..attempt.clone() };
        let (judge, asked) = (Arc::clone(&self.judge), attempt.clone());
        let Some(judgement) = self.shared.decider.ask(move || judge.decide(&asked)).await else {
            return Err(Some(closing()));
        };
        match self.carry_out(attempt, judgement, wanted, stream).await {
            Clearance::Allowed(attempt, _permit) => {
                spent.extend(self.judge.budget(&attempt));
                Ok(())
            }
            Clearance::Denied(refusal) => Err(Some(refusal)),
            Clearance::Abandoned => Err(None),
        }
    }

    async fn carry_out(
        &self,
        attempt: ConnectionAttempt,
        judgement: Judgement,
        wanted: &Wanted,
        stream: &TcpStream,
    ) -> Clearance {
        let judgement = match judgement {
            Judgement::Ask(undecided) => match self.ask(undecided, wanted, stream).await {
                Some(judgement) => judgement,
                None => return Clearance::Abandoned,
            },
            settled @ (Judgement::Allow(_) | Judgement::Deny(_)) => settled,
        };
        match judgement {
            // The permit must be for exactly this access.
            Judgement::Allow(permit) if *permit.action() == Action::Network(attempt.access.clone()) => {
                Clearance::Allowed(Box::new(attempt), permit)
            }
            Judgement::Allow(_) => Clearance::Denied(ConnectionRefusal::by_host(
                "host.wrong-permit",
                "the permit is for another connection",
            )),
            Judgement::Ask(_) => Clearance::Denied(ConnectionRefusal::by_host(
                "host.no-answer",
                "the question was not answered",
            )),
            Judgement::Deny(refusal) => Clearance::Denied(refusal),
        }
    }

    /// Asks the user; returns `None` if the client has gone.
    async fn ask(&self, undecided: Box<Undecided>, wanted: &Wanted, stream: &TcpStream) -> Option<Judgement> {
        match self.shared.asking.put(&self.judge, undecided) {
            Ok(answer) => self.answered(answer, wanted, stream).await,
            Err(refusal) => Some(Judgement::Deny(refusal)),
        }
    }

    /// Waits for an answer; returns `None` if the client has gone.
    async fn answered(
        &self,
        answer: oneshot::Receiver<Judgement>,
        wanted: &Wanted,
        stream: &TcpStream,
    ) -> Option<Judgement> {
        let answered = tokio::select! {
            answer = answer => Some(answer.unwrap_or_else(|_lost| Judgement::Deny(closing()))),
            () = self.gone(Awaited::Answer, wanted, stream) => None,
        };
        if answered.is_none() {
            // The receiver has been dropped, so the question counts this client as gone.
            self.shared.asking.one_gave_up();
        }
        answered
    }

    /// Completes when the client, which may still wait for what `awaited` says, has gone.
    pub(crate) async fn gone(&self, awaited: Awaited, wanted: &Wanted, stream: &TcpStream) {
        loop {
            match stream.ready(Interest::READABLE).await {
                // The client has sent its last byte, but may still wait for a reply.
                Ok(ready) if ready.is_read_closed() => {
                    if self.is_gone(awaited, wanted, stream).await {
                        return;
                    }
                }
                Ok(_) => {}
                Err(_) => return,
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Returns true if a client that has stopped sending has gone.
    pub(crate) async fn is_gone(&self, awaited: Awaited, wanted: &Wanted, stream: &TcpStream) -> bool {
        let (clients, client, server) = (Arc::clone(&self.clients), wanted.client, wanted.server);
        let look = self.shared.decider.ask(move || clients.client(client, server));
        look.await.is_none_or(|client| clients::is_gone(client, awaited, &*self.judge, stream))
    }

    /// Reports the end of a connection to the judge.
    pub(crate) fn report(&self, attempt: ConnectionAttempt, request: String, ended: Ended) {
        let (judge, command) = (Arc::clone(&self.judge), attempt.command);
        self.shared.decider.tell(move || judge.ended(&attempt, &request, &ended));
        self.shared.carried.end(command);
    }
}

impl Wanted {
    /// Returns the attempt of a process to make this connection.
    pub(crate) fn attempt_of(&self, Owner { process, command }: Owner) -> ConnectionAttempt {
        let access = NetworkAccess {
            transport: Transport::Tcp,
            direction: Direction::Outbound,
            target: self.target.clone(),
            port: self.port,
            stage: Stage::Connect,
            process,
        };
        ConnectionAttempt { access, command, want: Want::Connect, credential: None }
    }
}

pub(crate) fn closing() -> ConnectionRefusal {
    ConnectionRefusal::by_host("host.closing", "the session is ending")
}
