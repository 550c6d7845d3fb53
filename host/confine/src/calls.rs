//! The host's end of the line on which its broker tells of connections that wait inside connect(2).

use std::net::SocketAddr;

#[cfg(target_os = "linux")]
pub use here::Calls;

/// Connections that wait inside connect(2); there are none on this system.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub enum Calls {}

/// What is heard of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// One waits; it goes on by [`Calls::release`].
    Waits {
        /// Names the call.
        id: u64,
        /// The calling process.
        process: u32,
        /// The init of the command that it belongs to; 0 where it is not known.
        command: u32,
        /// The number of the socket, as in `/proc/N/net/tcp`.
        socket: u64,
        /// Where it wants to connect to, as it was when it was read. What counts is what the kernel reads later.
        address: SocketAddr,
    },
    /// One does not wait any more, because its process has given up or ended.
    Gone {
        /// Names the call.
        id: u64,
    },
}

#[cfg(not(target_os = "linux"))]
impl Calls {
    /// Waits for a call.
    pub fn next(&self) -> Option<Call> {
        match *self {}
    }

    /// Lets a call go on.
    pub fn release(&self, _id: u64) {
        match *self {}
    }
}

#[cfg(target_os = "linux")]
mod here {
    use std::collections::{HashSet, VecDeque};
    use std::os::fd::OwnedFd;
    use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
    use std::time::{Duration, Instant};

    use portcullis_sys::notify::{Answer, Listener};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::Call;
    use crate::confinement::process_of;
    use crate::link::Link;
    use crate::transport::{self, Heard};
    use crate::wire::calls::Told;

    /// How often it is looked whether those who wait are still there; the kernel tells nobody when they go.
    const LOOK: Duration = Duration::from_millis(250);

    /// Connections that wait inside connect(2).
    #[derive(Debug)]
    pub struct Calls {
        line: OwnedFd,
        link: Arc<Link>,
        /// Where calls are answered; it comes before the first of them.
        listener: OnceLock<Listener>,
        waiting: Mutex<Waiting>,
    }

    #[derive(Debug)]
    struct Waiting {
        /// Calls that nobody has let go on yet.
        calls: HashSet<u64>,
        looked_at: Instant,
        /// Those of whom it was seen that they wait no more, and not told yet.
        gone: VecDeque<u64>,
    }

    impl Calls {
        pub(crate) fn new(line: OwnedFd, link: Arc<Link>) -> Self {
            let (calls, gone) = (HashSet::new(), VecDeque::new());
            let waiting = Mutex::new(Waiting { calls, looked_at: Instant::now(), gone });
            Self { line, link, listener: OnceLock::new(), waiting }
        }

        /// Waits for what is next; nothing when the sandbox has ended.
        pub fn next(&self) -> Option<Call> {
            loop {
                if let Some(id) = self.next_gone() {
                    return Some(Call::Gone { id });
                }
                if !self.is_something_told()? {
                    continue;
                }
                let message = match transport::hear(&self.line) {
                    Heard::Message(message) => message,
                    Heard::Lost => continue,
                    Heard::Ended => return None,
                };
                let descriptor = message.descriptors.into_iter().next();
                match Told::decode(&message.bytes).ok()? {
                    Told::Begins => drop(self.listener.set(Listener::new(descriptor?))),
                    Told::Waits { id, command, socket, address } => {
                        self.waiting().calls.insert(id);
                        match descriptor.as_ref().and_then(process_of) {
                            Some(process) => {
                                let command = self.link.init_of(command);
                                return Some(Call::Waits { id, process, command, socket, address });
                            }
                            // It has ended since, or there was no descriptor left to know it by: whoever accepts the connection finds out.
                            None => self.release(id),
                        }
                    }
                }
            }
        }

        /// Lets a call go on: the kernel makes the connection as if nobody had held it.
        pub fn release(&self, id: u64) {
            if self.waiting().calls.remove(&id)
                && let Some(listener) = self.listener.get()
            {
                // Whoever is not there any more needs no answer.
                drop(listener.answer(id, Answer::Continue));
            }
        }

        /// Waits for the broker; where somebody waits, for no longer than until it is time to look after them. Nothing
        /// when that cannot be waited for.
        fn is_something_told(&self) -> Option<bool> {
            if self.waiting().calls.is_empty() {
                return Some(true);
            }
            let until = Timespec::try_from(LOOK).ok();
            let mut told = [PollFd::new(&self.line, PollFlags::IN)];
            let count = rustix::io::retry_on_intr(|| poll(&mut told, until.as_ref())).ok()?;
            Some(count > 0)
        }

        /// One who does not wait any more.
        fn next_gone(&self) -> Option<u64> {
            let mut waiting = self.waiting();
            let Waiting { calls, looked_at, gone } = &mut *waiting;
            if calls.is_empty() {
                *looked_at = Instant::now();
            } else if looked_at.elapsed() >= LOOK
                && let Some(listener) = self.listener.get()
            {
                gone.extend(calls.extract_if(|id| !listener.is_waiting(*id)));
                *looked_at = Instant::now();
            }
            gone.pop_front()
        }

        fn waiting(&self) -> MutexGuard<'_, Waiting> {
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}
