//! Carries the requests of one connection to a brokered host.
//!
//! The client's TLS ends here. Requests of HTTP/1.1 and HTTP/2 are parsed by `hyper`, judged, and written anew on a TLS
//! connection to the server, so that both sides agree on where a request ends. The client gets the version of HTTP that
//! the server speaks, if it offers that; otherwise the gate translates. Redirects are answers like others: the gate
//! follows none.

mod addressing;
mod answering;
mod answers;
mod broken;
mod clearing;
mod declared;
mod exchange;
mod frames;
mod handshakes;
mod outcome;
mod outgoing;
mod refusals;
mod requests;
mod sender;
mod serving;
mod signed;
mod streams;
mod tasks;
mod unread;
mod version;
mod watched;

use std::sync::Arc;

use portcullis_decision::ConnectionRefusal;
use portcullis_decision::request::{Endpoint, Stage};
use tokio::net::TcpStream;

use crate::judge::Ending;

use broken::Unanswered;

pub(crate) use declared::Declared;
pub(crate) use exchange::Exchange;
pub(crate) use outcome::Outcome;
pub(crate) use unread::Unread;

use handshakes::Hello;
use sender::Sender;
use serving::Client;
use tasks::Tasks;
use version::HttpVersion;

/// Carries the requests of a client until both sides have ended.
pub(crate) async fn carry(
    exchange: Exchange,
    client: TcpStream,
    server: TcpStream,
    beginning: Vec<u8>,
) -> Ending {
    let exchange = Arc::new(exchange);
    let (tasks, running) = Tasks::new();
    if let Err(ending) = running.during(exchange.connect(client, server, beginning, tasks)).await {
        exchange.outcome.note(ending);
    }
    exchange.outcome.ending()
}

impl Exchange {
    /// Makes TLS with both sides, and serves the client.
    async fn connect(
        self: &Arc<Self>,
        client: TcpStream,
        server: TcpStream,
        beginning: Vec<u8>,
        tasks: Tasks,
    ) -> Result<(), Ending> {
        let hello = Hello::read(&self.declared, client, beginning).await?;
        self.clear_server_name(&hello.server_name()).await?;
        match self.begin(server, &tasks).await {
            Ok(sender) => {
                let client = Client::accept(self, hello, sender.version()).await?;
                client.serve(self, &Arc::new(sender), tasks).await;
            }
            Err(why) => {
                let client = Client::accept(self, hello, HttpVersion::One).await?;
                client.say_unreachable(self, why, tasks).await;
            }
        }
        Ok(())
    }

    /// Begins to speak to the server.
    async fn begin(self: &Arc<Self>, server: TcpStream, tasks: &Tasks) -> Result<Sender, String> {
        let connected = handshakes::connect(&self.declared, server).await?;
        let begun = Sender::begin(self, connected, tasks).await;
        begun.map_err(|error| format!("`{}`: {error}", self.declared.host.host))
    }

    /// Checks the name in the client's hello, and has it decided if a policy wants to.
    async fn clear_server_name(&self, name: &str) -> Result<(), Ending> {
        let is_this = match &self.declared.host.host {
            Endpoint::Domain(host) => name.eq_ignore_ascii_case(host),
            Endpoint::Address(_) => name.is_empty(),
        };
        if !is_this {
            let reason = format!("TLS names another server than `{}`", self.declared.host.host);
            return Err(Ending::Refused(ConnectionRefusal::by_host("host.other-server", reason)));
        }
        if !self.scope.judge.stages().client_hello {
            return Ok(());
        }
        self.clear(Stage::ClientHello(name.to_owned()), None).await.map_err(|unanswered| match unanswered {
            Unanswered::Refused(refusal) | Unanswered::Stopped(refusal) => Ending::Refused(refusal),
            Unanswered::Unreachable(why) | Unanswered::NotTaken(why) => Ending::Unreachable(why),
            Unanswered::Abandoned => Ending::Closed,
        })
    }
}
