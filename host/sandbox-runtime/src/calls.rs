//! The host's end of the socket on which its broker reports connections that wait inside connect(2).

mod event;

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use portcullis_sys::notify::{Listener, SyscallAnswer};
use portcullis_syscall_broker::transport::{self, Received};
use portcullis_syscall_broker::wire::connects::ConnectMessage;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_domain;
use rustix::net::{AddressFamily, connect};

use crate::keeper_link::KeeperLink;
use crate::pidfd::process_of;
pub use event::Call;

/// The interval at which waiting calls are checked; the kernel sends no event when a waiting call is abandoned.
const LOOK: Duration = Duration::from_millis(250);

/// Connections that wait inside connect(2).
#[derive(Debug)]
pub struct Calls {
    line: OwnedFd,
    link: Arc<KeeperLink>,
    /// The seccomp listener on which calls are answered; it arrives before the first call.
    listener: OnceLock<Arc<Listener>>,
    waiting: Mutex<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    /// Calls that have not been released yet, with the sockets of those that are unheard.
    calls: HashMap<u64, Option<OwnedFd>>,
    looked_at: Instant,
    /// Calls found to wait no longer, and not reported yet.
    gone: VecDeque<u64>,
}

impl Calls {
    pub(crate) fn new(line: OwnedFd, link: Arc<KeeperLink>) -> Self {
        let (calls, gone) = (HashMap::new(), VecDeque::new());
        let waiting = Mutex::new(Waiting { calls, looked_at: Instant::now(), gone });
        Self { line, link, listener: OnceLock::new(), waiting }
    }

    /// Returns the next event, waiting for it; `None` when the sandbox has ended.
    pub fn next(&self) -> Option<Call> {
        loop {
            if let Some(id) = self.next_gone() {
                return Some(Call::Gone { id });
            }
            if !self.is_something_told()? {
                continue;
            }
            let message = match transport::hear(&self.line) {
                Received::Message(message) => message,
                Received::Lost => continue,
                Received::Ended => return None,
            };
            let mut descriptors = message.descriptors.into_iter();
            let descriptor = descriptors.next();
            match ConnectMessage::decode(&message.bytes).ok()? {
                ConnectMessage::Begins => drop(self.listener.set(Arc::new(Listener::new(descriptor?)))),
                ConnectMessage::Waits { id, command, socket, address, is_unheard } => {
                    self.waiting().calls.insert(id, descriptors.next().filter(|_| is_unheard));
                    match descriptor.as_ref().and_then(process_of) {
                        Some(process) => {
                            let command = self.link.init_of(command);
                            return Some(Call::Waits { id, process, command, socket, address, is_unheard });
                        }
                        // The process has ended, or there was no free file descriptor to identify it: the listener
                        // that accepts the connection finds out.
                        None => self.release(id),
                    }
                }
            }
        }
    }

    /// Lets a call continue: the kernel makes the connection as if it had never waited.
    pub fn release(&self, id: u64) {
        self.answer(id, SyscallAnswer::Continue);
    }

    /// Makes a call fail with `EACCES`; the kernel makes no connection.
    pub fn refuse(&self, id: u64) {
        self.answer(id, SyscallAnswer::Error(Errno::ACCESS.raw_os_error()));
    }

    /// Connects the socket of an unheard call to another address, and lets the call return the result.
    ///
    /// The socket belongs to the sandbox's network, so the connection is made there, whichever process makes it.
    pub fn redirect(&self, id: u64, address: SocketAddr) {
        let Some(Some(socket)) = self.waiting().calls.get_mut(&id).map(Option::take) else {
            return self.release(id);
        };
        self.waiting().calls.remove(&id);
        let Some(listener) = self.listener.get().map(Arc::clone) else { return };
        let redirect = move || {
            let answer = match connect_to(&socket, address) {
                Ok(()) => SyscallAnswer::Value(0),
                Err(error) => SyscallAnswer::Error(error.raw_os_error()),
            };
            drop(listener.answer(id, answer));
        };
        // On a thread of its own: connecting waits if too many connections wait to be accepted.
        drop(std::thread::Builder::new().name("net-redirect".to_owned()).spawn(redirect));
    }

    fn answer(&self, id: u64, answer: SyscallAnswer) {
        if self.waiting().calls.remove(&id).is_some()
            && let Some(listener) = self.listener.get()
        {
            // A call that has been abandoned needs no answer.
            drop(listener.answer(id, answer));
        }
    }

    /// Waits for a message of the broker; while calls wait, only until the next check of them. Returns whether
    /// there is a message; `None` if polling fails.
    fn is_something_told(&self) -> Option<bool> {
        if self.waiting().calls.is_empty() {
            return Some(true);
        }
        let until = Timespec::try_from(LOOK).ok();
        let mut told = [PollFd::new(&self.line, PollFlags::IN)];
        let count = rustix::io::retry_on_intr(|| poll(&mut told, until.as_ref())).ok()?;
        Some(count > 0)
    }

    /// Returns a call that waits no longer.
    fn next_gone(&self) -> Option<u64> {
        let mut waiting = self.waiting();
        let Waiting { calls, looked_at, gone } = &mut *waiting;
        if calls.is_empty() {
            *looked_at = Instant::now();
        } else if looked_at.elapsed() >= LOOK
            && let Some(listener) = self.listener.get()
        {
            gone.extend(calls.extract_if(|id, _| !listener.is_waiting(*id)).map(|(id, _)| id));
            *looked_at = Instant::now();
        }
        gone.pop_front()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects a socket to an address, in the form that the socket's address family has for it.
fn connect_to(socket: &OwnedFd, address: SocketAddr) -> rustix::io::Result<()> {
    let address = match (socket_domain(socket)?, address.ip()) {
        (AddressFamily::INET6, IpAddr::V4(ip)) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        _ => address,
    };
    connect(socket, &address)
}
