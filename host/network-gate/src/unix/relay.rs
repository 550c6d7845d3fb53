//! Handles one connection out of the network, from accept(2) to its end.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use portcullis_credential_broker::{Broker, Ssh, SshHost};
use portcullis_decision::ConnectionRefusal;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::inspect::{Inspector, Stop};
use crate::judge::{ConnectionAttempt, Ended, Ending};
use crate::unix::brokered::{self, Declared, Exchange, Outcome, Unread};
use crate::unix::budget::Spent;
use crate::unix::dial::dial;
use crate::unix::git_ssh;
use crate::unix::proxy::Manner;
use crate::unix::pump::{Cut, DESERTED, Pump, Traffic};
use crate::unix::refuse::{self, News};
use crate::unix::scope::{Clearance, Scope, Wanted};

/// Has a connection decided, and relays it. `beginning` holds the bytes that the client has sent already.
pub(crate) async fn connect(
    scope: &Arc<Scope>,
    client: TcpStream,
    wanted: &Wanted,
    manner: Manner,
    beginning: Vec<u8>,
) {
    match scope.clear(wanted, &client).await {
        Clearance::Allowed(attempt, permit) => {
            let report = Report::new(scope, *attempt, permit.request());
            carry(report, client, wanted, manner, beginning).await;
        }
        Clearance::Denied(refusal) => {
            let why = refusal_line(wanted, &refusal);
            refuse_unheard(client, manner, News::Denied, &why).await;
        }
        Clearance::Abandoned => {}
    }
}

/// Refuses a client that has received no bytes yet.
async fn refuse_unheard(client: TcpStream, manner: Manner, news: News, why: &str) {
    match manner.refusal_reply(news, why) {
        Some(message) => refuse::say(client, &message).await,
        None => refuse::tell(client, &[], news, why).await,
    }
}

async fn carry(
    mut report: Report<'_>,
    mut client: TcpStream,
    wanted: &Wanted,
    manner: Manner,
    beginning: Vec<u8>,
) {
    let scope = report.scope;
    if let Some(declared) = ssh_host(scope, wanted) {
        if client.write_all(manner.confirmed()).await.is_err() {
            return;
        }
        let watched = match watched(&client) {
            Ok(watched) => watched,
            Err(error) => return report.how = Ending::Unreachable(format!("watching the client: {error}")),
        };
        let parts = (&report.traffic, watched);
        let session = git_ssh::Session::new(scope, &report.attempt, &report.request, wanted, parts);
        report.how = Box::pin(session.carry(declared, client, beginning)).await;
        return;
    }
    let mut server = match dial(scope, &report.attempt, wanted, &client).await {
        Ok(server) => server,
        Err(ending) => {
            let (news, why) = match &ending {
                Ending::Refused(refusal) => (News::Denied, refusal_line(wanted, refusal)),
                Ending::Unreachable(why) => (News::Unreachable, why.clone()),
                Ending::Closed => (News::Unreachable, String::new()),
            };
            // Report the end before the client can see it and react.
            report.how = ending;
            drop(report);
            return refuse_unheard(client, manner, news, &why).await;
        }
    };
    if client.write_all(manner.confirmed()).await.is_err() {
        return;
    }
    // Send small messages at once. A failure only costs latency.
    let _unset = (client.set_nodelay(true), server.set_nodelay(true));
    let limit = scope.judge.budget(&report.attempt);
    let spent = scope.shared.budgets.account(&wanted.target, wanted.port, limit);
    let broker = match broker(scope, wanted) {
        Ok(broker) => broker,
        Err(refusal) => {
            let why = refusal_line(wanted, &refusal);
            report.how = Ending::Refused(refusal);
            drop(report);
            return refuse::tell(client, &beginning, News::Denied, &why).await;
        }
    };
    if let Some(broker) = &broker
        && let Some(host) = broker.host(&wanted.target, wanted.port)
    {
        let parties = (client, server, beginning);
        // Boxed, because otherwise every waiting connection would take the memory of this one.
        let declared = Declared { broker: Arc::clone(broker), host: Arc::clone(host) };
        let carried = carry_requests(&mut report, wanted, spent, declared, parties);
        return Box::pin(carried).await;
    }
    let limited = broker.as_ref().map(|broker| broker.limited()).unwrap_or_default();
    let inspector = Inspector::new(&wanted.target, wanted.port, scope.judge.checks(), scope.judge.stages())
        .without(limited);
    let traffic = Arc::clone(&report.traffic);
    let pump = Pump {
        scope,
        attempt: &report.attempt,
        wanted,
        spent: &spent,
        traffic: &traffic,
        inspector: Mutex::new(inspector),
        answered: Notify::new(),
        unanswered: Notify::new(),
        deserted: DESERTED,
        first: beginning,
        broker,
        finder: Mutex::default(),
    };
    let cut = pump.run(&mut client, &mut server).await;
    let Err(cut) = cut else { return };
    refuse::reset(&server);
    drop(server);
    let (refusal, news) = match cut {
        Cut::Broken => return refuse::reset(&client),
        Cut::Stopped(Stop::Forbidden(refusal)) | Cut::Refused(refusal) => (refusal, News::Denied),
        Cut::Stopped(Stop::Malformed(problem)) => {
            (ConnectionRefusal::by_host("host.malformed", problem), News::Malformed)
        }
    };
    let beginning = pump.beginning();
    drop(pump);
    let why = refusal_line(wanted, &refusal);
    report.how = Ending::Refused(refusal);
    drop(report);
    refuse::tell(client, &beginning, news, &why).await;
}

/// Returns the declared host of this connection that git reaches by the user's own `ssh`.
fn ssh_host(scope: &Scope, wanted: &Wanted) -> Option<(Arc<SshHost>, Arc<dyn Ssh>)> {
    // If the hosts cannot be set up, the connection is refused below.
    scope.judge.broker().ok()??.ssh_host(&wanted.target, wanted.port)
}

/// Returns the brokered hosts. Refuses a port of a host whose requests are limited on another port.
fn broker(scope: &Scope, wanted: &Wanted) -> Result<Option<Arc<Broker>>, ConnectionRefusal> {
    let broker = scope.judge.broker()?;
    if broker.as_ref().is_some_and(|broker| broker.is_limited_elsewhere(&wanted.target, wanted.port)) {
        let reason = "the settings limit the requests to this host, on another port";
        return Err(ConnectionRefusal::by_host("host.request-rule", reason));
    }
    Ok(broker)
}

/// Carries the requests to a brokered host.
async fn carry_requests(
    report: &mut Report<'_>,
    wanted: &Wanted,
    spent: Arc<Spent>,
    declared: Declared,
    (client, server, beginning): (TcpStream, TcpStream, Vec<u8>),
) {
    let watched = match watched(&client) {
        Ok(watched) => watched,
        Err(error) => return report.how = Ending::Unreachable(format!("watching the client: {error}")),
    };
    let exchange = Exchange {
        scope: Arc::clone(report.scope),
        attempt: report.attempt.clone(),
        request: report.request.clone(),
        wanted: wanted.clone(),
        declared,
        spent,
        traffic: Arc::clone(&report.traffic),
        client: watched,
        outcome: Outcome::default(),
        unread: Arc::new(Unread::default()),
    };
    report.how = brokered::carry(exchange, client, server, beginning).await;
}

/// Returns a second descriptor of a socket.
fn watched(client: &TcpStream) -> std::io::Result<TcpStream> {
    TcpStream::from_std(rustix::io::fcntl_dupfd_cloexec(client, 0)?.into())
}

fn refusal_line(wanted: &Wanted, refusal: &ConnectionRefusal) -> String {
    format!("the connection to {} is denied: {}", wanted.target.with_port(wanted.port), refusal.text)
}

/// Reports the end of a connection when it is dropped, however the connection ends.
struct Report<'a> {
    scope: &'a Arc<Scope>,
    attempt: ConnectionAttempt,
    request: String,
    how: Ending,
    traffic: Arc<Traffic>,
}

impl<'a> Report<'a> {
    fn new(scope: &'a Arc<Scope>, attempt: ConnectionAttempt, request: &str) -> Self {
        let request = request.to_owned();
        scope.shared.carried.begin(attempt.command);
        Self { scope, attempt, request, how: Ending::Closed, traffic: Arc::default() }
    }
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        let ended = Ended {
            how: self.how.clone(),
            sent: self.traffic.sent.load(Ordering::Relaxed),
            received: self.traffic.received.load(Ordering::Relaxed),
        };
        self.scope.report(self.attempt.clone(), std::mem::take(&mut self.request), ended);
    }
}
