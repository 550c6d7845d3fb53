//! The running gate, and the networks it serves.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

use crate::judge::Judge;
use crate::listeners::Listeners;
use crate::names::Names;
use crate::unix::active_connections::ActiveConnections;
use crate::unix::ask::Asking;
use crate::unix::budget::Budgets;
use crate::unix::clients::Clients;
use crate::unix::decider::Decider;
use crate::unix::forwarded;
use crate::unix::held::Held;
use crate::unix::limited_addresses::LimitedAddresses;
use crate::unix::network;
use crate::unix::proxy;
use crate::unix::pump::WIDE_MAX;
use crate::unix::scope::{Scope, Shared};
use crate::unix::serving::{Serving, accept, usable};
use crate::{Server, Sockets};

/// Names that are resolved concurrently; others wait.
const RESOLVERS: usize = 8;
/// The most connections that a session may have open, if there are enough file descriptors.
const CONNECTIONS_MAX: u64 = 16 * 1024;
/// File descriptors reserved for the rest of the host process.
const OTHERS: u64 = 256;
/// File descriptors of one connection: the client's and the server's.
const OF_A_CONNECTION: u64 = 2;
/// Clients over the limit that can get a message at the same time, with the reserved file descriptors; others are
/// reset.
const TOLD_MAX: usize = 64;
/// How long connections may take to end after their command has exited.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// The longest wait for the judge to process earlier events.
const SETTLE: Duration = Duration::from_secs(1);

/// The gate of one session. Dropping it closes every connection.
#[derive(Debug)]
pub struct Gate {
    shared: Arc<Shared>,
    handle: Handle,
    running: Mutex<Option<Running>>,
}

/// The running relay thread.
#[derive(Debug)]
struct Running {
    stop: oneshot::Sender<()>,
    carrying: JoinHandle<()>,
}

/// A served network. Dropping it closes every connection of the network.
#[derive(Debug)]
#[must_use = "dropping it closes every connection of the network"]
pub struct Attached {
    #[expect(dead_code, reason = "its end is what is waited for")]
    end: oneshot::Sender<()>,
    proxy: String,
    keeper: Option<u32>,
}

/// A host port that forwards into a network. Dropping it closes the port.
#[derive(Debug)]
#[must_use = "dropping it closes the port"]
pub struct WayIn {
    #[expect(dead_code, reason = "its end is what is waited for")]
    end: oneshot::Sender<()>,
}

impl Attached {
    /// Returns the URL of the proxy inside the network, including the token.
    #[must_use]
    pub fn proxy(&self) -> &str {
        &self.proxy
    }

    /// Returns the servers that commands have started, if they have a network of their own.
    #[must_use]
    pub fn servers(&self) -> Vec<Server> {
        self.keeper.map(network::servers).unwrap_or_default()
    }
}

impl Gate {
    /// Starts the threads, without a network to serve. `descriptors` is the limit of open files of this process.
    ///
    /// # Errors
    /// If the system cannot provide a thread or a file descriptor.
    pub fn start(descriptors: u64) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(RESOLVERS)
            .thread_keep_alive(Duration::from_secs(1))
            .build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let asking = Arc::new(Asking::default());
        let shared = Arc::new(Shared {
            names: Names::default(),
            limited: LimitedAddresses::default(),
            budgets: Budgets::default(),
            asking: Arc::clone(&asking),
            carried: ActiveConnections::default(),
            decider: Decider::start()?,
            room: Arc::new(Semaphore::new(room(descriptors))),
            told: Arc::new(Semaphore::new(TOLD_MAX)),
            chunks: Arc::new(Semaphore::new(WIDE_MAX)),
        });
        let carry = move || {
            // The channel carries no message; dropping the sender is the signal.
            let _stopped = runtime.block_on(stopped);
            // A name lookup cannot be cancelled, so it is left behind.
            runtime.shutdown_background();
        };
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let carrying = thread("net-carry").spawn(carry)?;
        // This thread is not joined, because it may wait for the user. It ends by itself after `Asking::close`.
        drop(thread("net-ask").spawn(move || asking.run())?);
        Ok(Self { shared, handle, running: Mutex::new(Some(Running { stop, carrying })) })
    }

    /// Withdraws the open question, closes every connection, and waits until the judge knows how they ended.
    pub fn close(&self) {
        self.shared.asking.close();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Running { stop, carrying }) = running else { return };
        drop(stop);
        // This thread may hold the last reference to the session and so be the one that drops the gate.
        if carrying.thread().id() != std::thread::current().id() {
            let _panicked = carrying.join();
        }
        self.shared.decider.hear_out(SETTLE);
    }

    /// Waits until the judge knows the end of every connection of a command that has exited.
    ///
    /// A connection that the other side keeps open is waited for only briefly.
    pub fn wait_for_connections(&self, command: u32) {
        self.shared.carried.wait(command, LAST_WORDS);
        self.shared.asking.forget(command);
        self.shared.decider.hear_out(SETTLE);
    }

    /// Serves a network, with `judge` deciding about it.
    ///
    /// # Errors
    /// If a listener cannot be used, or the system has no networks of commands' own and `listeners` are of one.
    pub fn attach(&self, listeners: Listeners, judge: Arc<dyn Judge>) -> io::Result<Attached> {
        let token = token()?;
        let Listeners { proxy, mut network } = listeners;
        let url = format!("http://{}:{token}@{}", proxy::USER, proxy.local_addr()?);
        let keeper = network.as_ref().map(|network| network.keeper);
        let clients = match &mut network {
            Some(network) => Clients::OfNetwork(network::clients(network)?),
            None => Clients::OfProxy,
        };
        let (shared, held) = (Arc::clone(&self.shared), Held::default());
        let scope = Arc::new(Scope { shared, judge, held, clients: Arc::new(clients), token });
        let _entered = self.handle.enter();
        let mut servers: Vec<Serving> = match network {
            Some(network) => network::serve(&scope, network)?,
            None => Vec::new(),
        };
        servers.push(Box::pin(accept(usable(proxy)?, scope, proxy::serve)));
        let (end, ended) = oneshot::channel();
        self.handle.spawn(async move {
            let mut tasks = JoinSet::new();
            servers.into_iter().for_each(|server| drop(tasks.spawn(server)));
            let _ended = ended.await;
            // Dropping the set drops every connection.
        });
        Ok(Attached { end, proxy: url, keeper })
    }
}

impl Gate {
    /// Forwards connections from `listener` to a port inside the network.
    ///
    /// # Errors
    /// If the listener cannot be used.
    pub fn lead_in(
        &self,
        listener: std::net::TcpListener,
        port: u16,
        sockets: Arc<dyn Sockets>,
    ) -> io::Result<WayIn> {
        let _entered = self.handle.enter();
        let listener = usable(listener)?;
        let (end, ended) = oneshot::channel();
        let room = Arc::clone(&self.shared.room);
        self.handle.spawn(forwarded::lead_in(listener, port, sockets, room, ended));
        Ok(WayIn { end })
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns a secret that the commands of other sessions do not know.
fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns how many connections the file descriptors allow.
fn room(descriptors: u64) -> usize {
    let room = descriptors.saturating_sub(OTHERS) / OF_A_CONNECTION;
    usize::try_from(room.min(CONNECTIONS_MAX)).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_as_many_as_there_are_descriptors() {
        assert_eq!(room(1024), 384);
        assert_eq!(room(20_000), 9_872);
        assert_eq!(room(u64::MAX), 16 * 1024);
        assert_eq!(room(0), 1);
    }
}
