//! Carries the bytes of an allowed connection, in both directions at once.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::Notify;

use crate::inspect::{Inspector, Stop};
use crate::judge::{Attempt, Refusal};
use crate::linux::budget::Spent;
use crate::linux::scope::{Scope, Wanted};

/// How much is read at once: at first, and once that much has come. Most connections carry little.
const FIRST_CHUNK: usize = 8 * 1024;
const CHUNK: usize = 128 * 1024;
/// How much of a client's is held until its server has answered.
const HELD_MAX: usize = 256 * 1024;

/// Bytes carried so far.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
}

/// Why a connection was cut.
#[derive(Debug)]
pub(crate) enum Cut {
    /// By what the client sent.
    Stopped(Stop),
    /// By a later decision: on more than the budget, or on what has become known.
    Refused(Refusal),
    /// One of the two is gone.
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

/// One connection with all that it is measured by.
pub(crate) struct Pump<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) attempt: &'a Attempt,
    pub(crate) wanted: &'a Wanted,
    pub(crate) spent: &'a Spent,
    pub(crate) traffic: &'a Traffic,
    pub(crate) inspector: Mutex<Inspector>,
    /// The server has answered a hello, or an offer to speak another protocol.
    pub(crate) answered: Notify,
    /// The server has ended without such an answer.
    pub(crate) unanswered: Notify,
    /// What the client has sent already.
    pub(crate) first: Vec<u8>,
}

impl Pump<'_> {
    /// Carries bytes until both sides have said their last.
    pub(crate) async fn run(&self, client: &mut TcpStream, server: &mut TcpStream) -> Result<(), Cut> {
        let (client_reads, client_writes) = client.split();
        let (server_reads, server_writes) = server.split();
        tokio::try_join!(self.out(client_reads, server_writes), self.back(server_reads, client_writes))?;
        Ok(())
    }

    async fn out(&self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> Result<(), Cut> {
        let mut chunk = vec![0; FIRST_CHUNK];
        self.look_at(&self.first, from.as_ref(), &mut to).await?;
        let mut has_ended = false;
        loop {
            let (awaits, held) = {
                let inspector = self.inspector();
                (inspector.awaits_answer(), inspector.pending().len())
            };
            // What is held and may still go, goes before the end.
            if has_ended && (!awaits || held == 0) {
                self.look_at(&[], from.as_ref(), &mut to).await?;
                to.shutdown().await?;
                return Ok(());
            }
            let takes_more = !has_ended && (!awaits || held <= HELD_MAX);
            tokio::select! {
                () = self.answered.notified() => self.look_at(&[], from.as_ref(), &mut to).await?,
                () = self.unanswered.notified() => return Ok(()),
                length = from.read(&mut chunk), if takes_more => {
                    let length = length?;
                    let read = chunk.get(..length).unwrap_or_default();
                    has_ended = read.is_empty();
                    let is_free = self.inspector().is_free();
                    if is_free {
                        self.forward(read, from.as_ref(), &mut to).await?;
                    } else {
                        self.look_at(read, from.as_ref(), &mut to).await?;
                    }
                    widen(&mut chunk, length);
                }
            }
        }
    }

    /// Sends on what may be sent on, and has what is to be decided about decided.
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

    /// Sends bytes on; over the budget they wait here, and nothing more is read.
    async fn forward(&self, bytes: &[u8], client: &TcpStream, to: &mut WriteHalf<'_>) -> Result<(), Cut> {
        if bytes.is_empty() {
            return Ok(());
        }
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if !self.spent.spend(count) {
            let more = self.scope.clear_more(self.attempt, self.spent, self.wanted, client).await;
            more.map_err(|refusal| refusal.map_or(Cut::Broken, Cut::Refused))?;
        }
        to.write_all(bytes).await?;
        self.traffic.sent.fetch_add(count, Ordering::Relaxed);
        Ok(())
    }

    async fn back(&self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> Result<(), Cut> {
        let mut chunk = vec![0; FIRST_CHUNK];
        loop {
            let length = from.read(&mut chunk).await?;
            let read = chunk.get(..length).unwrap_or_default();
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
            self.traffic.received.fetch_add(u64::try_from(length).unwrap_or(u64::MAX), Ordering::Relaxed);
            widen(&mut chunk, length);
        }
    }

    /// The beginning of what was not forwarded: what the client speaks.
    pub(crate) fn beginning(&self) -> Vec<u8> {
        let inspector = self.inspector();
        let pending = inspector.pending();
        pending.get(..64).unwrap_or(pending).to_vec()
    }

    fn inspector(&self) -> MutexGuard<'_, Inspector> {
        self.inspector.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes room for more where as much has come as there was room for.
fn widen(chunk: &mut Vec<u8>, length: usize) {
    if length == chunk.len() && length < CHUNK {
        chunk.resize(CHUNK, 0);
    }
}
