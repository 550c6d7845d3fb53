//! The waiting calls, and those of them to connect to another address.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::{Shutdown, shutdown};
use rustix::process::{Resource, getrlimit};

/// Maximum number of threads that connect sockets. One is enough, unless connections do not complete.
const THREADS_MAX: usize = 32;
/// The share of this process's descriptors that sockets of waiting calls may take.
const SHARE_OF_DESCRIPTORS: u64 = 8;
/// Time limit for connecting a socket. The connection ends in this process, so it is immediate, unless a program has
/// configured its socket so that no packet arrives.
const PATIENCE: Duration = Duration::from_secs(5);

/// The calls that wait.
#[derive(Debug)]
pub(super) struct Waiting {
    calls: HashMap<u64, WaitingCall>,
    /// The number of calls with a socket, and its limit.
    sockets: (u64, u64),
    /// Calls that are to be connected elsewhere, in order.
    ready: VecDeque<u64>,
    /// Sockets that are being connected, and since when.
    connecting: HashMap<u64, (Arc<OwnedFd>, Instant)>,
    threads: usize,
    looked_at: Instant,
    /// Calls found to wait no longer, and not reported yet.
    gone: VecDeque<u64>,
}

#[derive(Debug)]
struct WaitingCall {
    /// The socket of an unheard call.
    socket: Option<OwnedFd>,
    instead: Option<SocketAddr>,
}

/// A call to connect to another address.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) id: u64,
    pub(super) socket: Arc<OwnedFd>,
    pub(super) address: SocketAddr,
}

/// Connects a socket to another address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Redirect {
    /// A thread that the caller has to start.
    ByNewThread,
    /// A thread that runs; or the call waits no longer.
    ByOther,
    /// No thread can, because the host does not have the socket.
    Impossible,
}

impl Default for Waiting {
    fn default() -> Self {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self {
            calls: HashMap::new(),
            sockets: (0, descriptors / SHARE_OF_DESCRIPTORS),
            ready: VecDeque::new(),
            connecting: HashMap::new(),
            threads: 0,
            looked_at: Instant::now(),
            gone: VecDeque::new(),
        }
    }
}

/// Locks the calls.
pub(super) fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Waiting {
    /// Adds a call, with its socket if it is unheard. Returns false if too many sockets are kept: it is added without.
    pub(super) fn add(&mut self, id: u64, socket: Option<OwnedFd>) -> bool {
        let (count, limit) = self.sockets;
        let has_room = socket.is_none() || count < limit;
        let socket = socket.filter(|_| has_room);
        self.sockets.0 += u64::from(socket.is_some());
        self.calls.insert(id, WaitingCall { socket, instead: None });
        has_room
    }

    /// Removes a call that is answered; returns false if it waits no longer.
    pub(super) fn remove(&mut self, id: u64) -> bool {
        let removed = self.calls.remove(&id);
        self.forget_socket(removed.as_ref());
        removed.is_some()
    }

    /// Returns true if no call waits, and none is being connected.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.connecting.is_empty()
    }

    /// Has an unheard call connected to another address.
    pub(super) fn redirect(&mut self, id: u64, address: SocketAddr) -> Redirect {
        match self.calls.get_mut(&id) {
            None => return Redirect::ByOther,
            Some(WaitingCall { socket: None, .. }) => return Redirect::Impossible,
            Some(call) => call.instead = Some(address),
        }
        self.ready.push_back(id);
        if self.threads == THREADS_MAX {
            return Redirect::ByOther;
        }
        self.threads += 1;
        Redirect::ByNewThread
    }

    /// Takes the next call that is to be connected elsewhere; `None` for a thread that is to end.
    pub(super) fn next_ready(&mut self) -> Option<Ready> {
        while let Some(id) = self.ready.pop_front() {
            let call = self.calls.remove(&id);
            self.forget_socket(call.as_ref());
            if let Some(WaitingCall { socket: Some(socket), instead: Some(address) }) = call {
                let socket = Arc::new(socket);
                self.connecting.insert(id, (Arc::clone(&socket), Instant::now()));
                return Some(Ready { id, socket, address });
            }
        }
        self.one_ended();
        None
    }

    /// Notes that connecting a socket has ended.
    pub(super) fn is_connected(&mut self, id: u64) {
        self.connecting.remove(&id);
    }

    /// Forgets all calls, because their processes have ended. Returns true if no socket is being connected any more.
    pub(super) fn end(&mut self) -> bool {
        self.calls.clear();
        self.ready.clear();
        self.give_up(Duration::ZERO);
        self.connecting.is_empty()
    }

    /// Ends all attempts to connect that take longer than this.
    fn give_up(&self, patience: Duration) {
        for (socket, since) in self.connecting.values() {
            if since.elapsed() >= patience {
                // The thread that connects it returns from connect(2); an error says that it has done so.
                let _has_returned = shutdown(socket, Shutdown::Both);
            }
        }
    }

    /// Removes an ended thread from the count.
    pub(super) fn one_ended(&mut self) {
        self.threads = self.threads.saturating_sub(1);
    }

    /// Returns a call that waits no longer. Looks for them if the last look was longer ago than `interval`.
    pub(super) fn next_gone(&mut self, interval: Duration, is_waiting: impl Fn(u64) -> bool) -> Option<u64> {
        if self.is_empty() {
            self.looked_at = Instant::now();
        } else if self.looked_at.elapsed() >= interval {
            let gone: Vec<_> = self.calls.extract_if(|id, _| !is_waiting(*id)).collect();
            gone.iter().for_each(|(_, call)| self.forget_socket(Some(call)));
            self.gone.extend(gone.into_iter().map(|(id, _)| id));
            self.give_up(PATIENCE);
            self.looked_at = Instant::now();
        }
        self.gone.pop_front()
    }

    fn forget_socket(&mut self, call: Option<&WaitingCall>) {
        let has_socket = call.is_some_and(|call| call.socket.is_some());
        self.sockets.0 = self.sockets.0.saturating_sub(u64::from(has_socket));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> Option<OwnedFd> {
        Some(std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket").into())
    }

    #[test]
    fn sockets_take_a_share_of_the_descriptors() {
        let mut waiting = Waiting { sockets: (0, 2), ..Waiting::default() };
        assert!(waiting.add(1, socket()) && waiting.add(2, socket()) && waiting.add(3, None));
        assert!(!waiting.add(4, socket()) && waiting.remove(4), "it is known without its socket");
        assert!(waiting.remove(1) && !waiting.remove(1) && waiting.add(5, socket()));
        assert_eq!(waiting.next_gone(Duration::ZERO, |id| id != 2), Some(2));
        assert!(waiting.add(6, socket()) && !waiting.add(7, socket()));
    }

    #[test]
    fn threads_are_few_and_take_what_is_there() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut waiting = Waiting { sockets: (0, 100), ..Waiting::default() };
        let ids = 0..2 * THREADS_MAX as u64;
        ids.clone().for_each(|id| assert!(waiting.add(id, socket())));
        let started = ids.clone().filter(|id| waiting.redirect(*id, address) == Redirect::ByNewThread);
        assert_eq!(started.count(), THREADS_MAX);
        assert_eq!(waiting.redirect(1000, address), Redirect::ByOther, "it has gone");
        waiting.add(1000, None);
        assert_eq!(waiting.redirect(1000, address), Redirect::Impossible);
        assert!(waiting.remove(0), "answered meanwhile");
        for id in ids.skip(1) {
            assert_eq!(waiting.next_ready().map(|ready| ready.id), Some(id));
        }
        (0..THREADS_MAX).for_each(|_| assert!(waiting.next_ready().is_none()));
        assert_eq!((waiting.threads, waiting.sockets.0), (0, 0));
    }
}
