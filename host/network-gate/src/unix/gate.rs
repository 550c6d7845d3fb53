//! The running gate, and the networks it serves.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::dns;
use crate::judge::Judge;
use crate::listeners::Listeners;
use crate::names::Names;
use crate::unix::active_connections::ActiveConnections;
use crate::unix::ask::Asking;
use crate::unix::budget::Budgets;
use crate::unix::decider::Decider;
use crate::unix::held::Held;
use crate::unix::hold;
use crate::unix::inside;
use crate::unix::proxy;
use crate::unix::pump::WIDE_MAX;
use crate::unix::refuse::{self, News};
use crate::unix::relay;
use crate::unix::scope::{Scope, Shared};
use crate::unix::sock_diag::Clients;
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
/// The delay before a retry when accept(2) fails, as it does when the process has no file descriptor left.
const PAUSE: Duration = Duration::from_millis(50);
/// How long connections may take to end after their command has exited.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// The longest wait for the judge to process earlier events.
const SETTLE: Duration = Duration::from_secs(1);
/// How long a DNS query over TCP may take to arrive.
const QUESTION: Duration = Duration::from_secs(10);

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
    keeper: u32,
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

    /// Returns the servers that commands have started in the network.
    #[must_use]
    pub fn servers(&self) -> Vec<Server> {
        inside::servers(self.keeper)
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
    /// If a listener cannot be used.
    pub fn attach(&self, listeners: Listeners, judge: Arc<dyn Judge>) -> io::Result<Attached> {
        let (token, keeper) = (token()?, listeners.keeper);
        let proxy = format!("http://{}:{token}@{}", proxy::USER, listeners.proxy.local_addr()?);
        let scope = Arc::new(Scope {
            shared: Arc::clone(&self.shared),
            judge,
            held: Held::default(),
            hold: hold::HOLD,
            clients: Arc::new(Clients::new(keeper, listeners.diagnosis)),
            token,
        });
        let _entered = self.handle.enter();
        let mut servers: Vec<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>> = Vec::new();
        for listener in listeners.relays {
            servers.push(Box::pin(accept(usable(listener)?, Arc::clone(&scope), relay::serve)));
        }
        servers.push(Box::pin(accept(usable(listeners.proxy)?, Arc::clone(&scope), proxy::serve)));
        for socket in listeners.dns {
            socket.set_nonblocking(true)?;
            servers.push(Box::pin(answer(UdpSocket::from_std(socket)?, Arc::clone(&scope))));
        }
        for listener in listeners.dns_streams {
            servers.push(Box::pin(accept(usable(listener)?, Arc::clone(&scope), answer_stream)));
        }
        if let Some(line) = listeners.calls {
            let heard = hold::hear(&scope, &line)?;
            servers.push(Box::pin(hold::serve(Arc::clone(&scope), heard)));
        }
        let (end, ended) = oneshot::channel();
        self.handle.spawn(async move {
            let mut tasks = JoinSet::new();
            servers.into_iter().for_each(|server| drop(tasks.spawn(server)));
            let _ended = ended.await;
            // Dropping the set drops every connection.
        });
        Ok(Attached { end, proxy, keeper })
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
        self.handle.spawn(inside::lead_in(listener, port, sockets, room, ended));
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

fn usable(listener: std::net::TcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// The message for connections over the limit.
const FULL: &str = "too many connections are open in this session; raise the limit of open files (`ulimit -Hn`) or \
                    end some of them";

/// Returns how many connections the file descriptors allow.
fn room(descriptors: u64) -> usize {
    let room = descriptors.saturating_sub(OTHERS) / OF_A_CONNECTION;
    usize::try_from(room.min(CONNECTIONS_MAX)).unwrap_or(usize::MAX).max(1)
}

/// Accepts connections and serves each in its own task.
async fn accept<Served>(
    listener: TcpListener,
    scope: Arc<Scope>,
    serve: impl Fn(Arc<Scope>, TcpStream, SocketAddr) -> Served,
) where
    Served: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    let mut turned_away = JoinSet::new();
    let full = || Arc::clone(&scope.shared.told).try_acquire_owned();
    loop {
        tokio::select! {
            accepted = listener.accept() => match (accepted, Arc::clone(&scope.shared.room).try_acquire_owned()) {
                (Ok((client, from)), Ok(place)) => {
                    let served = serve(Arc::clone(&scope), client, from);
                    connections.spawn(async move {
                        served.await;
                        drop(place);
                    });
                }
                (Ok((client, _)), Err(_)) => match full() {
                    Ok(place) => {
                        scope.judge.overloaded(FULL);
                        turned_away.spawn(async move {
                            refuse::tell(client, &[], News::Denied, FULL).await;
                            drop(place);
                        });
                    }
                    Err(_) => refuse::reset(&client),
                },
                (Err(_), _) => tokio::time::sleep(PAUSE).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            Some(_) = turned_away.join_next(), if !turned_away.is_empty() => {}
        }
    }
}

/// Answers DNS queries over UDP.
async fn answer(socket: UdpSocket, scope: Arc<Scope>) {
    let mut question = vec![0; dns::QUERY_MAX];
    loop {
        // A client that has gone shows up as an error of the next call.
        let Ok((length, from)) = socket.recv_from(&mut question).await else { continue };
        if let Some(reply) = dns::answer(question.get(..length).unwrap_or_default(), &scope.shared.names) {
            let _unheard = socket.send_to(&reply, from).await;
        }
    }
}

/// Answers DNS queries on one TCP stream, each preceded by its length (RFC 1035 4.2.2).
async fn answer_stream(scope: Arc<Scope>, mut stream: TcpStream, _from: SocketAddr) {
    while let Ok(Some(())) = timeout(QUESTION, answer_one(&scope, &mut stream)).await {}
}

async fn answer_one(scope: &Scope, stream: &mut TcpStream) -> Option<()> {
    let length = usize::from(stream.read_u16().await.ok()?);
    let mut question = vec![0; Some(length).filter(|&length| length <= dns::QUERY_MAX)?];
    stream.read_exact(&mut question).await.ok()?;
    let reply = dns::answer(&question, &scope.shared.names)?;
    let mut message = u16::try_from(reply.len()).ok()?.to_be_bytes().to_vec();
    message.extend(reply);
    stream.write_all(&message).await.ok()
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
