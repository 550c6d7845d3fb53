//! Relays the bytes of an allowed connection, in both directions at once.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portcullis_credential_broker::{Broker, Finder, Placeholders};
use portcullis_decision::ConnectionRefusal;
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{Notify, OwnedSemaphorePermit};

use crate::inspect::client_hello::is_tls;
use crate::inspect::{Inspector, Stop};
use crate::judge::ConnectionAttempt;
use crate::unix::budget::Spent;
use crate::unix::clients::Awaited;
use crate::unix::scope::{Scope, Wanted};

/// The size of a read buffer: the first one, and the wide one that follows a full first one.
///
/// Most connections carry little, and idle connections hold no buffer.
const FIRST_CHUNK: usize = 8 * 1024;
const CHUNK: usize = 128 * 1024;
/// The most wide read buffers that a session has in use.
pub(crate) const WIDE_MAX: usize = 256;
/// How many of the client's bytes are held until its server has answered. The rest stays in the kernel.
const HELD_MAX: usize = 32 * 1024;
/// The interval of checks whether an idle connection has outlived its client.
pub(crate) const DESERTED: Duration = Duration::from_secs(5);

/// The number of bytes relayed so far.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
}

/// The reason why a connection was cut.
#[derive(Debug)]
pub(crate) enum Cut {
    /// The inspector stopped it because of its content.
    Stopped(Stop),
    /// A later decision refused it: on more than the budget, or on a later stage.
    Refused(ConnectionRefusal),
    /// The client or the server is gone.
    Broken,
}

impl From<io::Error> for Cut {
    fn from(_error: io::Error) -> Self {
        Self::Broken
    }
}

impl From<Stop> for Cut {
    fn from(stop: Stop) -> Self {
        Self::Stopped(stop)
    }
}

/// One connection with its limits and its inspector.
pub(crate) struct Pump<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) attempt: &'a ConnectionAttempt,
    pub(crate) wanted: &'a Wanted,
    pub(crate) spent: &'a Spent,
    pub(crate) traffic: &'a Traffic,
    pub(crate) inspector: Mutex<Inspector>,
    /// Notified when the server has answered a client hello, or an offer to switch protocols.
    pub(crate) answered: Notify,
    /// Notified when the server has ended without such an answer.
    pub(crate) unanswered: Notify,
    /// An idle connection ends after this time without a client.
    pub(crate) deserted: Duration,
    /// The bytes that the client has sent already.
    pub(crate) first: Vec<u8>,
    /// The brokered hosts, whose placeholders may not go anywhere else.
    pub(crate) broker: Option<Arc<Broker>>,
    pub(crate) finder: Mutex<Search>,
}

/// The search for placeholders in what the client sends.
#[derive(Debug, Default)]
pub(crate) enum Search {
    #[default]
    NotBegun,
    Running(Finder),
    /// The client speaks TLS, in which nothing is found.
    Blind,
}

impl Search {
    fn find(&mut self, placeholders: &Placeholders, bytes: &[u8]) -> Option<String> {
        if let Self::NotBegun = self {
            let is_blind = bytes.first().is_some_and(|&first| is_tls(first));
            *self = if is_blind { Self::Blind } else { Self::Running(Finder::default()) };
        }
        match self {
            Self::Running(finder) => finder.find(placeholders, bytes),
            Self::NotBegun | Self::Blind => None,
        }
    }
}

impl Pump<'_> {
    /// Relays bytes until both sides have ended.
    pub(crate) async fn run(&self, client: &mut TcpStream, server: &mut TcpStream) -> Result<(), Cut> {
        let (client_reads, client_writes) = client.split();
        let (server_reads, server_writes) = server.split();
        let both = async {
            let (out, back) =
                (self.out(&client_reads, server_writes), self.back(&server_reads, client_writes));
            tokio::try_join!(out, back).map(|_done| ())
        };
        tokio::select! {
            carried = both => carried,
            () = self.until_deserted(client_reads.as_ref()) => Ok(()),
        }
    }

    /// Completes when the client has gone and no bytes move.
    async fn until_deserted(&self, client: &TcpStream) {
        let mut carried_before = None;
        loop {
            tokio::time::sleep(self.deserted).await;
            let is_closed = match client.ready(Interest::READABLE).await {
                Ok(ready) => ready.is_read_closed(),
                Err(_broken) => return,
            };
            let carried =
                [&self.traffic.sent, &self.traffic.received].map(|count| count.load(Ordering::Relaxed));
            if is_closed
                && carried_before == Some(carried)
                && self.scope.is_gone(Awaited::Server, self.wanted, client).await
            {
                return;
            }
            carried_before = Some(carried);
        }
    }

    async fn out(&self, from: &ReadHalf<'_>, mut to: WriteHalf<'_>) -> Result<(), Cut> {
        let mut is_wide = false;
        self.look_at(&self.first, from.as_ref(), &mut to).await?;
        let mut has_ended = false;
        loop {
            let (awaits, held) = {
                let inspector = self.inspector();
                (inspector.awaits_answer(), inspector.pending().len())
            };
            // Forward held bytes before the end, if they may be forwarded.
            if has_ended && (!awaits || held == 0) {
                self.look_at(&[], from.as_ref(), &mut to).await?;
                to.shutdown().await?;
                return Ok(());
            }
            let takes_more = !has_ended && (!awaits || held <= HELD_MAX);
            tokio::select! {
                () = self.answered.notified() => self.look_at(&[], from.as_ref(), &mut to).await?,
                () = self.unanswered.notified() => return Ok(()),
                ready = from.readable(), if takes_more => {
                    ready?;
                    let is_free = self.inspector().is_free();
                    let Some(read) = self.read(from, is_wide && is_free)? else { continue };
                    has_ended = read.bytes.is_empty();
                    is_wide = read.is_full();
                    if is_free {
                        self.forward(&read.bytes, from.as_ref(), &mut to).await?;
                    } else {
                        self.look_at(&read.bytes, from.as_ref(), &mut to).await?;
                    }
                }
            }
        }
    }

    /// Forwards what the inspector releases, and has each later stage decided.
    async fn look_at(&self, bytes: &[u8], client: &TcpStream, to: &mut WriteHalf<'_>) -> Result<(), Cut> {
        let ready = self.inspector().push(bytes)?;
        self.forward(&ready, client, to).await?;
        loop {
            let Some(stage) = self.inspector().seen() else { return Ok(()) };
            let cleared = self.scope.clear_stage(self.attempt, stage, self.wanted, client).await;
            cleared.map_err(|refusal| refusal.map_or(Cut::Broken, Cut::Refused))?;
            self.inspector().clear();
            let ready = self.inspector().push(&[])?;
            self.forward(&ready, client, to).await?;
        }
    }

    /// Sends bytes to the server. Over the budget they wait here, and the client is not read.
    async fn forward(&self, bytes: &[u8], client: &TcpStream, to: &mut WriteHalf<'_>) -> Result<(), Cut> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.has_no_placeholder(bytes)?;
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if !self.spent.spend(count) {
            let more = self.scope.clear_more(self.attempt, self.spent, self.wanted, client).await;
            more.map_err(|refusal| refusal.map_or(Cut::Broken, Cut::Refused))?;
        }
        to.write_all(bytes).await?;
        self.traffic.sent.fetch_add(count, Ordering::Relaxed);
        Ok(())
    }

    fn has_no_placeholder(&self, bytes: &[u8]) -> Result<(), Cut> {
        let Some(broker) = &self.broker else { return Ok(()) };
        let mut search = self.finder.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(what) = search.find(broker.placeholders(), bytes) else { return Ok(()) };
        let reason = format!("{what} is on its way to a place that the settings do not have it for");
        Err(Cut::Refused(ConnectionRefusal::by_host("host.placeholder", reason)))
    }

    async fn back(&self, from: &ReadHalf<'_>, mut to: WriteHalf<'_>) -> Result<(), Cut> {
        let mut is_wide = false;
        loop {
            from.readable().await?;
            let Some(read) = self.read(from, is_wide)? else { continue };
            is_wide = read.is_full();
            let read = read.bytes.as_slice();
            if read.is_empty() {
                if self.inspector().server_has_ended() {
                    self.unanswered.notify_one();
                }
                to.shutdown().await?;
                return Ok(());
            }
            if self.inspector().answered(read)? {
                self.answered.notify_one();
            }
            to.write_all(read).await?;
            let count = u64::try_from(read.len()).unwrap_or(u64::MAX);
            self.traffic.received.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Reads the available bytes, with a wide buffer if `is_wide` and one is free; `None` if there are no bytes yet.
    fn read(&self, from: &ReadHalf<'_>, is_wide: bool) -> io::Result<Option<Chunk>> {
        let wide = is_wide.then(|| Arc::clone(&self.scope.shared.chunks).try_acquire_owned().ok()).flatten();
        let room = if wide.is_some() { CHUNK } else { FIRST_CHUNK };
        let mut bytes = Vec::with_capacity(room);
        match from.try_read_buf(&mut bytes) {
            Ok(_) => Ok(Some(Chunk { bytes, _wide: wide })),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the first bytes that were not forwarded; they show the client's protocol.
    pub(crate) fn beginning(&self) -> Vec<u8> {
        let inspector = self.inspector();
        let pending = inspector.pending();
        pending.get(..64).unwrap_or(pending).to_vec()
    }

    fn inspector(&self) -> MutexGuard<'_, Inspector> {
        self.inspector.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of one read, held only until it is passed on.
struct Chunk {
    bytes: Vec<u8>,
    /// The permit for a wide buffer.
    _wide: Option<OwnedSemaphorePermit>,
}

impl Chunk {
    /// Returns true if the read filled the first buffer, so that more bytes may be available.
    fn is_full(&self) -> bool {
        self.bytes.len() >= FIRST_CHUNK
    }
}

#[cfg(test)]
mod tests;
