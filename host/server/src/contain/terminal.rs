//! The user's terminal while pi is contained.
//!
//! pi gets a terminal of its own, and this module forwards data between the two. The host draws questions on the
//! alternate screen of the user's terminal. Meanwhile it handles all keys, and pi's output is held back: no process in
//! the sandbox sees the question or the keys, draws over the question, or answers it.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TrySendError, channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use portcullis_bootstrap::streams::say;
use portcullis_session::{Answerer, Prompter, Question, Started};
use rustix::process::Signal;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};
use signal_hook::consts::SIGCONT;

use super::overlay::{Id, Overlay};
use crate::prompt_layout::Size;
use crate::pty::pair;

/// Size of a read.
const CHUNK: usize = 16 * 1024;
/// Interval for updating an open question.
const TICK: Duration = Duration::from_millis(50);
/// Time for pi to leave the screen before the shell gets it.
const LEAVING: Duration = Duration::from_millis(200);
/// Ctrl-Z, plain and in the extended keyboard protocol.
const SUSPENDS: [&[u8]; 2] = [b"\x1a", b"\x1b[122;5u"];
/// Maximum time for a program to redraw its screen.
const DRAWING: Duration = Duration::from_secs(1);
/// Maximum number of unread inputs for pi; a terminal returns at most 4 KiB per read.
const MOST_UNREAD: usize = 64;
/// Maximum number of notices; more would only hide the first.
const MOST_NOTICES: usize = 20;
/// Time to wait for pi's last output after it has exited.
const LAST_OUTPUT: Duration = Duration::from_secs(2);

/// The user's terminal and pi's.
pub(super) struct Console {
    /// Our end of pi's terminal.
    ours: File,
    /// pi's end, until pi gets it.
    theirs: Mutex<Option<File>>,
    /// The original settings of the user's terminal.
    before: Termios,
    overlay: Mutex<Overlay>,
    changed: Condvar,
    next_seat: AtomicU64,
    notices: Mutex<Vec<String>>,
    /// Receives a message when all output is written.
    written: Mutex<Option<Receiver<()>>>,
    /// The command that runs pi.
    pi: Mutex<Weak<Started>>,
}

impl Console {
    /// Opens a terminal for pi, or returns `None` if there is no user at a terminal.
    pub(super) fn open() -> anyhow::Result<Option<Arc<Self>>> {
        if !io::stdin().is_terminal() || !portcullis_bootstrap::streams::output().is_terminal() {
            return Ok(None);
        }
        let before = tcgetattr(io::stdin()).context("asking the terminal for its settings")?;
        let (ours, theirs) = pair(&before).context("making a terminal for pi")?;
        let screen = File::from(portcullis_bootstrap::streams::output().as_fd().try_clone_to_owned()?);
        Ok(Some(Arc::new(Self {
            ours,
            theirs: Mutex::new(Some(theirs)),
            before,
            overlay: Mutex::new(Overlay::new(screen, Size::of_terminal(io::stdin()))),
            changed: Condvar::new(),
            next_seat: AtomicU64::new(0),
            notices: Mutex::default(),
            written: Mutex::default(),
            pi: Mutex::default(),
        })))
    }

    /// Returns the prompter for one session.
    pub(super) fn seat(self: &Arc<Self>) -> TerminalPrompter {
        let number = self.next_seat.fetch_add(1, Ordering::Relaxed);
        TerminalPrompter { console: Arc::clone(self), number }
    }

    /// Returns pi's end as standard input, output and error. A redirected error output stays redirected.
    pub(super) fn streams(&self) -> anyhow::Result<[OwnedFd; 3]> {
        let theirs = self.theirs.lock().unwrap_or_else(PoisonError::into_inner).take();
        let theirs = OwnedFd::from(theirs.context("pi has its terminal already")?);
        let errors = match portcullis_bootstrap::streams::errors().is_terminal() {
            true => theirs.try_clone()?,
            false => portcullis_bootstrap::streams::errors().as_fd().try_clone_to_owned()?,
        };
        Ok([theirs.try_clone()?, theirs, errors])
    }

    /// Takes over the terminal and starts forwarding.
    pub(super) fn begin(self: &Arc<Self>) {
        // If raw mode fails, the terminal returns whole lines, which is enough to answer.
        self.take();
        self.follow_size();
        let (written, all_written) = channel();
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = Some(all_written);
        let [output, input, asking] = [(); 3].map(|()| Arc::clone(self));
        thread::spawn(move || {
            output.pass_output();
            let _unheard = written.send(());
        });
        thread::spawn(move || input.pass_input());
        thread::spawn(move || asking.tend());
    }

    /// Registers the command that runs pi.
    pub(super) fn introduce(&self, pi: &Arc<Started>) {
        *self.pi.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(pi);
    }

    /// Shows a message after pi has left the screen.
    pub(super) fn tell(&self, text: &str) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.len() < MOST_NOTICES && !notices.iter().any(|known| known == text) {
            notices.push(text.to_owned());
        }
    }

    /// Restores the terminal. pi has exited, or was never started.
    pub(super) fn end(&self) {
        self.lock().close();
        self.changed.notify_all();
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _in_time = written.map(|written| written.recv_timeout(LAST_OUTPUT));
        self.give_back();
        for text in self.notices.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            say(&format!("portcullis: {text}"));
        }
    }

    /// Resizes pi's terminal to that of the user.
    pub(super) fn follow_size(&self) {
        if let Ok(size) = tcgetwinsize(io::stdin()) {
            // A terminal that is gone has no size.
            let _followed = tcsetwinsize(&self.ours, size);
        }
    }

    /// Switches the user's terminal to raw mode.
    fn take(&self) {
        let mut raw = self.before.clone();
        raw.make_raw();
        let _switched = tcsetattr(io::stdin(), OptionalActions::Now, &raw);
    }

    fn give_back(&self) {
        let _switched = tcsetattr(io::stdin(), OptionalActions::Drain, &self.before);
    }

    fn pass_output(&self) {
        let mut chunk = vec![0; CHUNK];
        let mut ours = &self.ours;
        loop {
            match ours.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Reading the end of pi's terminal gives an error.
                Ok(0) | Err(_) => return,
                Ok(length) => {
                    let full = |overlay: &mut Overlay| overlay.is_full();
                    let waited = self.changed.wait_while(self.lock(), full);
                    let mut overlay = waited.unwrap_or_else(PoisonError::into_inner);
                    overlay.write(chunk.get(..length).unwrap_or_default());
                    drop(overlay);
                    self.changed.notify_all();
                }
            }
        }
    }

    /// Forwards keys. Those that pi does not read in time are dropped, because questions need the keyboard too.
    fn pass_input(self: &Arc<Self>) {
        let (keys, typed) = sync_channel::<Vec<u8>>(MOST_UNREAD);
        let pi = Arc::clone(self);
        thread::spawn(move || {
            let is_taken = |keys: Vec<u8>| (&pi.ours).write_all(&keys).is_ok();
            typed.into_iter().all(is_taken)
        });
        let mut chunk = vec![0; CHUNK];
        loop {
            let typed = match io::stdin().lock().read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // pi's own terminal is closed when the host exits.
                Ok(0) | Err(_) => return,
                Ok(length) => chunk.get(..length).unwrap_or_default(),
            };
            let is_taken = self.lock().key(typed, Instant::now());
            self.changed.notify_all();
            if is_taken {
                continue;
            }
            if matches!(keys.try_send(typed.to_vec()), Err(TrySendError::Disconnected(_))) {
                return;
            }
            if SUSPENDS.contains(&typed) {
                self.suspend();
            }
        }
    }

    /// Suspends this process. pi cannot suspend itself, since the shell only sees this process.
    fn suspend(&self) {
        thread::sleep(LEAVING);
        self.give_back();
        // Stop the whole job, as pi would.
        let _stopped = rustix::process::kill_current_process_group(Signal::TSTP);
        self.take();
        self.follow_size();
        let pi = self.pi.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        if let Some(pi) = pi {
            pi.signal(SIGCONT);
        }
    }

    /// Updates the open question until the overlay is closed.
    fn tend(&self) {
        let mut overlay = self.lock();
        while !overlay.is_closed() {
            overlay.fit(Size::of_terminal(io::stdin()));
            overlay.tick(Instant::now());
            self.changed.notify_all();
            if overlay.take_spoilt() {
                overlay = self.have_it_drawn(overlay);
                continue;
            }
            overlay = if overlay.is_asking() {
                let waited = self.changed.wait_timeout(overlay, TICK);
                waited.unwrap_or_else(PoisonError::into_inner).0
            } else {
                self.changed.wait(overlay).unwrap_or_else(PoisonError::into_inner)
            };
        }
    }

    /// Makes the program redraw its screen by changing the size of its terminal and changing it back.
    fn have_it_drawn<'a>(&'a self, overlay: MutexGuard<'a, Overlay>) -> MutexGuard<'a, Overlay> {
        let before = overlay.writes();
        if let Ok(mut size) = tcgetwinsize(io::stdin()) {
            size.ws_col = size.ws_col.saturating_sub(1).max(1);
            let _nudged = tcsetwinsize(&self.ours, size);
        }
        let is_waiting = |overlay: &mut Overlay| overlay.writes() == before && !overlay.is_closed();
        let waited = self.changed.wait_timeout_while(overlay, DRAWING, is_waiting);
        self.follow_size();
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, Overlay> {
        self.overlay.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The prompter of one session.
pub(super) struct TerminalPrompter {
    console: Arc<Console>,
    number: u64,
}

impl Prompter for TerminalPrompter {
    fn show(&self, question: &Question, answer: Answerer) {
        let id = Id { seat: self.number, question: question.id };
        let reply = Box::new(move |with| answer.answer(with));
        let mut overlay = self.console.lock();
        overlay.fit(Size::of_terminal(io::stdin()));
        overlay.ask(id, question, reply, Instant::now());
        drop(overlay);
        self.console.changed.notify_all();
    }

    fn withdraw(&self, id: u64, _why: &str) {
        let id = Id { seat: self.number, question: id };
        self.console.lock().withdraw(id, Instant::now());
        self.console.changed.notify_all();
    }

    fn notice(&self, text: &str) {
        self.console.tell(text);
    }
}
