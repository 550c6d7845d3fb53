//! The host's end of the socket to its keeper.

use std::collections::HashMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use portcullis_sandbox::Command;
use portcullis_syscall_broker::transport::{self, Received};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::exit::{CommandEnd, Exit};
use crate::group::directory::Deaths;
use crate::held::{Held, PendingQueue};
use crate::job::Job;
use crate::wire::{Event, Request};
use crate::{Breach, RefusedCall};

/// The connection to the keeper: sends requests, and passes the keeper's events on to the running commands.
#[derive(Debug)]
pub(crate) struct KeeperLink {
    /// The number of this sandbox in the record of the session's changes.
    view: u64,
    socket: OwnedFd,
    /// The socket on which the broker sends messages.
    asked: Arc<OwnedFd>,
    passing_on: Mutex<()>,
    jobs: Mutex<Jobs>,
    /// `None` if no control group limits memory.
    deaths: Option<Deaths>,
    /// The waiting requests for sockets, by id.
    sockets: Mutex<HashMap<u64, SyncSender<io::Result<OwnedFd>>>>,
}

/// The time to wait for the broker's pending messages, in milliseconds.
const SETTLING: u32 = 200;
/// The time to wait for the keeper, which does nothing slow.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
struct Jobs {
    last_id: u64,
    under_way: HashMap<u64, Arc<Job>>,
    /// Ended commands that still have an owner, who may ask for their refusals.
    ended: Vec<Weak<Job>>,
    /// The keeper has ended: a job added after this would never end.
    closed: bool,
}

impl KeeperLink {
    pub(crate) fn new(socket: OwnedFd, asked: Arc<OwnedFd>, deaths: Option<Deaths>, view: u64) -> Self {
        Self {
            view,
            socket,
            asked,
            deaths,
            passing_on: Mutex::default(),
            jobs: Mutex::default(),
            sockets: Mutex::default(),
        }
    }

    /// Returns the number of this sandbox in the record of the session's changes.
    pub(crate) fn view(&self) -> u64 {
        self.view
    }

    /// Returns the socket to the keeper.
    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Sends a command to the keeper.
    pub(crate) fn launch(
        &self,
        command: &Command,
        stdio: [BorrowedFd<'_>; 3],
        waiting: Option<PendingQueue>,
    ) -> io::Result<Arc<Job>> {
        let job = self.add(waiting)?;
        let request = Request::encode_launch(job.id(), command);
        if let Err(error) = transport::send(&self.socket, &request, &stdio) {
            self.jobs().under_way.remove(&job.id());
            return Err(error);
        }
        Ok(job)
    }

    /// Queues a call for an answer; refuses it if the command's calls are not answered.
    pub(crate) fn hold(&self, command: u64, call: Held) {
        let job = self.jobs().under_way.get(&command).map(Arc::clone);
        if let Some(job) = job {
            job.hold(call);
        }
    }

    /// Returns the pid of a command's init; 0 if unknown.
    pub(crate) fn init_of(&self, command: u64) -> u32 {
        let job = self.jobs().under_way.get(&command).map(Arc::clone);
        // A program may connect before the event of its start has arrived here.
        job.filter(|job| job.wait_for_start().is_ok()).and_then(|job| job.init()).unwrap_or_default()
    }

    fn add(&self, waiting: Option<PendingQueue>) -> io::Result<Arc<Job>> {
        let mut jobs = self.jobs();
        if jobs.closed {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        }
        jobs.last_id += 1;
        let job = Arc::new(Job::new(jobs.last_id, waiting));
        jobs.under_way.insert(job.id(), Arc::clone(&job));
        Ok(job)
    }

    pub(crate) fn note_refusal(&self, command: u64, refusal: RefusedCall) {
        let jobs = self.jobs();
        let ended = || jobs.ended.iter().find_map(|job| job.upgrade().filter(|job| job.id() == command));
        if let Some(job) = jobs.under_way.get(&command).map(Arc::clone).or_else(ended) {
            job.note_refusal(refusal);
        }
    }

    /// Locks out [`Self::wait_for_messages`] while a message of the broker is passed on.
    pub(crate) fn passing_on(&self) -> MutexGuard<'_, ()> {
        self.passing_on.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all messages that the broker has sent so far have been passed on.
    pub(crate) fn wait_for_messages(&self) {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        for _ in 0..SETTLING {
            let passing_on = self.passing_on();
            let mut line = [PollFd::new(&*self.asked, PollFlags::IN)];
            let polled = poll(&mut line, Some(&now));
            let has_more = line.iter().any(|line| line.revents().contains(PollFlags::IN));
            if polled.is_err() || !has_more {
                return;
            }
            drop(passing_on);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Asks the keeper to create a TCP socket in the session's network.
    pub(crate) fn make_socket(&self, is_v6: bool) -> io::Result<OwnedFd> {
        let id = {
            let mut jobs = self.jobs();
            jobs.last_id += 1;
            jobs.last_id
        };
        let (made, wanted) = sync_channel(1);
        self.sockets().insert(id, made);
        let sent = transport::send(&self.socket, &Request::encode_socket(id, is_v6), &[]);
        let answer = sent.and_then(|()| {
            wanted.recv_timeout(PATIENCE).unwrap_or_else(|_late| Err(io::ErrorKind::TimedOut.into()))
        });
        self.sockets().remove(&id);
        answer
    }

    pub(crate) fn signal(&self, id: u64, signal: i32) {
        self.tell(&Request::encode_signal(id, signal));
    }

    pub(crate) fn kill(&self, id: u64) {
        self.tell(&Request::encode_kill(id));
    }

    fn tell(&self, request: &[u8]) {
        // If the keeper has ended, so has the command: the request is pointless.
        drop(transport::send(&self.socket, request, &[]));
    }

    /// Passes on the keeper's events until the keeper has ended.
    pub(crate) fn listen(&self) {
        loop {
            let message = match transport::hear(&self.socket) {
                Received::Message(message) => message,
                Received::Lost => continue,
                Received::Ended => break,
            };
            let Ok(event) = Event::decode(&message.bytes) else { break };
            if let Event::Socket { id, errno } = event {
                self.give_socket(id, errno, message.descriptors);
            } else {
                self.pass_on(&event, message.sender);
            }
        }
        let mut jobs = self.jobs();
        jobs.closed = true;
        // The keeper itself may have been killed for exceeding the limit.
        let breach = self.breach_of_all(Exit::Lost);
        jobs.under_way.drain().for_each(|(_, job)| job.ended(Exit::Lost, breach));
    }

    fn give_socket(&self, id: u64, errno: i32, descriptors: Vec<OwnedFd>) {
        // The keeper may have made the socket, and its descriptor was lost on the way.
        let errno = if errno == 0 { libc::EMFILE } else { errno };
        let refused = || io::Error::from_raw_os_error(errno);
        let answer = descriptors.into_iter().next().ok_or_else(refused);
        if let Some(wanted) = self.sockets().remove(&id) {
            // The requester may have timed out.
            let _unheard = wanted.send(answer);
        }
    }

    fn pass_on(&self, event: &Event, sender: Option<u32>) {
        match event {
            Event::Started { id } => {
                if let Some(job) = self.jobs().under_way.get(id) {
                    job.started(sender);
                }
            }
            Event::NotStarted { id, refusal } => {
                if let Some(job) = self.jobs().under_way.remove(id) {
                    job.start_failed(refusal.stage, refusal.errno);
                }
            }
            Event::Ended { id, ending, breach } => {
                let mut jobs = self.jobs();
                if let Some(job) = jobs.under_way.remove(id) {
                    jobs.ended.retain(|job| job.strong_count() > 0);
                    jobs.ended.push(Arc::downgrade(&job));
                    drop(jobs);
                    let exit = match *ending {
                        CommandEnd::Code(code) => Exit::Code(code),
                        CommandEnd::Signal(signal) => Exit::Signal(signal),
                    };
                    job.ended(exit, breach.or(self.breach_of_all(exit)));
                }
            }
            Event::Keeper | Event::Ready { .. } | Event::Failed { .. } | Event::Socket { .. } => {}
        }
    }

    /// Returns a breach if the kernel has killed a process for the memory use of all commands since a command last
    /// ended. A command that exited with 0 has not lost a process that it needed.
    fn breach_of_all(&self, exit: Exit) -> Option<Breach> {
        let has_killed = self.deaths.as_ref().is_some_and(Deaths::are_new);
        (has_killed && exit != Exit::Code(0)).then_some(Breach::MemoryOfAll)
    }

    fn sockets(&self) -> MutexGuard<'_, HashMap<u64, SyncSender<io::Result<OwnedFd>>>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        // No code that can panic runs while the lock is held, and a half-added job is only waited for.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
