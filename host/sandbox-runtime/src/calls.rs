//! The host's end of the socket on which its broker reports connections that wait inside connect(2).

mod event;
mod redirect;
mod waiting;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use portcullis_sys::notify::{Listener, SyscallAnswer};
use portcullis_syscall_broker::transport::{self, Received};
use portcullis_syscall_broker::wire::connects::ConnectMessage;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::keeper_link::KeeperLink;
use crate::pidfd::process_of;
pub use event::Call;
use waiting::{Redirect, Waiting, lock};

/// The interval at which waiting calls are checked; the kernel sends no event when a waiting call is abandoned.
const LOOK: Duration = Duration::from_millis(250);
/// The interval of checks for sockets that are still being connected when the sandbox has ended.
const LAST_LOOKS: usize = 8;

/// The answer if this process has no room for another call.
const TOO_MANY: SyscallAnswer = SyscallAnswer::Error(Errno::AGAIN.raw_os_error());

/// Connections that wait inside connect(2).
#[derive(Debug)]
pub struct Calls {
    line: OwnedFd,
    link: Arc<KeeperLink>,
    /// The seccomp listener on which calls are answered; it arrives before the first call.
    listener: OnceLock<Arc<Listener>>,
    waiting: Arc<Mutex<Waiting>>,
}

impl Calls {
    pub(crate) fn new(line: OwnedFd, link: Arc<KeeperLink>) -> Self {
        Self { line, link, listener: OnceLock::new(), waiting: Arc::default() }
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
                Received::Ended => {
                    // A thread may have been about to connect.
                    let mut looks = 0..LAST_LOOKS;
                    while !lock(&self.waiting).end() && looks.next().is_some() {
                        std::thread::sleep(LOOK);
                    }
                    return None;
                }
            };
            let mut descriptors = message.descriptors.into_iter();
            let descriptor = descriptors.next();
            match ConnectMessage::decode(&message.bytes).ok()? {
                ConnectMessage::Begins => drop(self.listener.set(Arc::new(Listener::new(descriptor?)))),
                ConnectMessage::Waits { id, command, socket, address, is_unheard } => {
                    let is_added = lock(&self.waiting).add(id, descriptors.next().filter(|_| is_unheard));
                    if !is_added {
                        self.answer(id, TOO_MANY);
                        continue;
                    }
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
        let redirect = lock(&self.waiting).redirect(id, address);
        match (redirect, self.listener.get()) {
            (Redirect::Impossible, _) => self.release(id),
            (Redirect::ByNewThread, Some(listener)) => {
                if redirect::start(Arc::clone(&self.waiting), Arc::clone(listener)).is_err() {
                    self.answer(id, TOO_MANY);
                }
            }
            (Redirect::ByNewThread | Redirect::ByOther, _) => {}
        }
    }

    fn answer(&self, id: u64, answer: SyscallAnswer) {
        if lock(&self.waiting).remove(id)
            && let Some(listener) = self.listener.get()
        {
            // A call that has been abandoned needs no answer.
            drop(listener.answer(id, answer));
        }
    }

    /// Waits for a message of the broker; while calls wait, only until the next check of them. Returns whether
    /// there is a message; `None` if polling fails.
    fn is_something_told(&self) -> Option<bool> {
        if lock(&self.waiting).is_empty() {
            return Some(true);
        }
        let until = Timespec::try_from(LOOK).ok();
        let mut told = [PollFd::new(&self.line, PollFlags::IN)];
        let count = rustix::io::retry_on_intr(|| poll(&mut told, until.as_ref())).ok()?;
        Some(count > 0)
    }

    /// Returns a call that waits no longer.
    fn next_gone(&self) -> Option<u64> {
        lock(&self.waiting).next_gone(LOOK, |id| self.listener.get().is_none_or(|told| told.is_waiting(id)))
    }
}
