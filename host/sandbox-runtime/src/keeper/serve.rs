//! Starts commands and watches them, in one thread that waits in one place.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::rc::Rc;

use portcullis_sandbox::{Command, IsolationMode, Stage};
use portcullis_sys::launch::{Fence, Launch, Launched, Outcome, Refused, Script, Stacks};
use portcullis_sys::process::{SingleThread, exit_now};
use portcullis_sys::signal::{self, Settled};
use portcullis_syscall_broker::transport::{self, Message};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{Signal, pidfd_send_signal};

use super::host::tell;
use super::program::{Program, script_of_init};
use super::session::Session;
use super::watch::{Watch, WatchedCommand, remove_segments};
use crate::Breach;
use crate::exit::CommandEnd;
use crate::layer::failure::{During, StepRefusal};
use crate::layer::namespaces::of_a_command;
use crate::wire::{Event, Request};

/// The number of stacks that are kept for later commands: as many as usually run at once.
const SPARE_STACKS: usize = 8;

/// The keeper's main loop and its state.
pub(super) struct Keeper {
    single: SingleThread,
    settled: Settled,
    control: OwnedFd,
    session: Session,
    init: Rc<Script<'static>>,
    running: Vec<RunningCommand>,
    watch: Watch,
    spare: Vec<Stacks>,
}

struct RunningCommand {
    id: u64,
    launched: Launched,
    watched: WatchedCommand,
}

impl Keeper {
    pub(super) fn new(
        (single, settled): (SingleThread, Settled),
        control: OwnedFd,
        session: Session,
    ) -> Self {
        let init = Rc::new(script_of_init(&session));
        let (running, watch, spare) = (Vec::new(), Watch::new(session.isolation()), Vec::new());
        Self { single, settled, control, session, init, running, watch, spare }
    }

    /// Serves the host until it closes the socket or sends an unknown message, then ends all commands.
    pub(super) fn serve(mut self) -> ! {
        while self.round().is_some() {}
        if let Some(fence) = &self.session.fence {
            fence.own.end_all();
        }
        // Commands are neither dropped nor waited for one by one: a dead command may wait for a stuck broker, and the
        // kernel ends all of them together when process 1 exits.
        exit_now(0)
    }

    /// Handles one round of events; `None` ends the loop.
    fn round(&mut self) -> Option<()> {
        let asked = self.wait().ok()?;
        self.reap()?;
        self.enforce_limits();
        if asked { self.answer() } else { Some(()) }
    }

    /// Waits until the host sends a message (true) or a command ends.
    fn wait(&self) -> rustix::io::Result<bool> {
        let inits: Vec<_> = self.running.iter().map(|command| command.launched.pidfd()).collect();
        let broker = self.session.broker.as_ref().map(|broker| &broker.process);
        let mut watched = vec![PollFd::new(&self.control, PollFlags::IN)];
        watched.extend(broker.map(|broker| PollFd::new(broker, PollFlags::IN)));
        let others = watched.len();
        watched.extend(inits.iter().map(|init| PollFd::new(init, PollFlags::IN)));
        let pause = self.watch.pause(self.running.iter().map(|command| &command.watched));
        retry_on_intr(|| poll(&mut watched, pause.as_ref()))?;
        let is_ready = |at: usize| watched.get(at).is_some_and(|ready| !ready.revents().is_empty());
        if others > 1 && is_ready(1) {
            // Without this, commands that only compute would continue although every other call is refused.
            return Err(Errno::PIPE);
        }
        Ok(is_ready(0))
    }

    /// Reports every command whose processes have all ended. Returns `None` if processes are left that no init will
    /// end.
    fn reap(&mut self) -> Option<()> {
        let mut ended = Vec::new();
        for RunningCommand { id, launched, watched } in std::mem::take(&mut self.running) {
            let entry = entry(id, &launched);
            match launched.try_end() {
                Ok((Outcome::Killed, _)) if self.session.fence.is_some() => return None,
                Ok((outcome, stacks)) => {
                    self.session.commands.remove(entry);
                    self.spare.extend(stacks);
                    self.spare.truncate(SPARE_STACKS);
                    ended.push(ending(id, outcome, watched.breach));
                }
                Err(launched) => self.running.push(RunningCommand { id, launched, watched }),
            }
        }
        ended.iter().for_each(|ending| tell(&self.control, ending, &[]));
        // Only the next command, which starts after this, depends on it.
        if self.running.is_empty()
            && !ended.is_empty()
            && self.session.isolation() == IsolationMode::Namespaces
        {
            remove_segments();
        }
        Some(())
    }

    /// Kills commands that exceed their limits.
    fn enforce_limits(&mut self) {
        let watched = self.running.iter_mut().map(|command| &mut command.watched);
        self.watch.look(watched, self.session.processes_are_bounded);
        for command in &self.running {
            if command.watched.breach.is_some_and(Breach::is_fatal) {
                command.launched.end();
            }
        }
    }

    /// Handles a request of the host; `None` means that the host has closed the socket.
    fn answer(&mut self) -> Option<()> {
        let message = transport::receive(&self.control).ok()??;
        match Request::decode(&message.bytes).ok()? {
            Request::Launch { id, command } => {
                if let Err(refusal) = self.launch(id, command, message) {
                    tell(&self.control, &Event::NotStarted { id, refusal }, &[]);
                }
            }
            Request::Signal { id, signal } => self.signal(id, Signal::from_named_raw(signal)),
            Request::Kill { id } => {
                self.running.iter().filter(|one| one.id == id).for_each(|one| one.launched.end());
            }
            Request::Socket { id, is_v6 } => self.make_socket(id, is_v6),
        }
        Some(())
    }

    /// Makes a socket in the session's network, which this process is in, for the host to connect.
    fn make_socket(&self, id: u64, is_v6: bool) {
        let family = if is_v6 { AddressFamily::INET6 } else { AddressFamily::INET };
        match socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None) {
            Ok(made) => tell(&self.control, &Event::Socket { id, errno: 0 }, &[made.as_fd()]),
            Err(error) => {
                tell(&self.control, &Event::Socket { id, errno: error.raw_os_error() }, &[]);
            }
        }
    }

    fn launch(&mut self, id: u64, command: Command, message: Message) -> Result<(), StepRefusal> {
        let failed = |stage| move |error: Errno| StepRefusal { stage, errno: error.raw_os_error() };
        let stdio: [OwnedFd; 3] =
            message.descriptors.try_into().map_err(|_wrong_count| failed(Stage::Stdio)(Errno::BADF))?;
        let stdio = self.session.with_own_null(stdio).map_err(failed(Stage::Stdio))?;
        let limits = self.session.limits.strictest(command.limits);
        let program = Program::new(command).map_err(|_nul| failed(Stage::Request)(Errno::INVAL))?;
        let session = &self.session;
        let rules = session.landlock.as_ref().map(|landlock| landlock.for_command(&stdio)).transpose();
        let rules = rules.map_err(|failure| failure.refusal())?;
        let launch = Launch {
            init: Rc::clone(&self.init),
            command: program.script(session, &stdio, rules.as_ref().map(AsFd::as_fd)),
            candidates: program.candidates,
            argv: program.argv,
            env: program.env,
            notice: (self.control.as_fd(), transport::in_one_piece(&Event::Started { id }.encode())),
            process_label: Stage::Process.number(),
            exec_label: Stage::Exec.number(),
        };
        let proofs = (&self.single, &self.settled);
        let stacks = self.spare.pop().map_or_else(Stacks::new, Ok);
        let fence = match session.isolation() {
            IsolationMode::Namespaces => Fence::Namespaces(of_a_command()),
            IsolationMode::Landlock => Fence::Signals,
        };
        let launched = stacks.and_then(|stacks| launch.start(proofs, fence, stacks));
        let launched = launched.during(Stage::Process).map_err(|failure| failure.refusal())?;
        // If the table is full, the command counts as one that has made nothing itself.
        let _noted = self.session.commands.add(entry(id, &launched));
        if self.running.is_empty() {
            self.watch.rest();
        }
        let init = i32::try_from(launched.number()).unwrap_or_default();
        self.running.push(RunningCommand {
            id,
            launched,
            watched: WatchedCommand { init, limits, breach: None },
        });
        Ok(())
    }

    fn signal(&self, id: u64, signal: Option<Signal>) {
        let command = self.running.iter().find(|command| command.id == id);
        if let (Some(command), Some(signal)) = (command, signal) {
            // A command that has ended in the meantime needs no signal.
            let _ = pidfd_send_signal(command.launched.pidfd(), signal);
        }
    }
}

/// Returns a command's entry for the broker: the pid of its init, and its number.
fn entry(id: u64, launched: &Launched) -> u64 {
    u64::from(launched.number()) << 32 | id & u64::from(u32::MAX)
}

/// Returns the event that reports the end of a command.
fn ending(id: u64, outcome: Outcome, breach: Option<Breach>) -> Event {
    match outcome {
        Outcome::Refused(Refused { label, errno }) => {
            let stage = Stage::from_number(label).unwrap_or(Stage::Process);
            Event::NotStarted { id, refusal: StepRefusal { stage, errno } }
        }
        Outcome::Killed => Event::Ended { id, ending: CommandEnd::Signal(signal::KILL), breach },
        Outcome::Ended(status) => {
            let killed = || CommandEnd::Signal(status.signal().unwrap_or(signal::KILL));
            Event::Ended { id, ending: status.code().map_or_else(killed, CommandEnd::Code), breach }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn endings_are_told_as_they_are() {
        let breach = Some(Breach::Memory);
        let told = |status| ending(1, Outcome::Ended(ExitStatus::from_raw(status)), breach);
        assert_eq!(told(3 << 8), Event::Ended { id: 1, ending: CommandEnd::Code(3), breach });
        assert_eq!(
            told(libc::SIGTERM),
            Event::Ended { id: 1, ending: CommandEnd::Signal(libc::SIGTERM), breach }
        );
        let refused = Refused { label: Stage::Exec.number(), errno: libc::ENOENT };
        let refusal = StepRefusal { stage: Stage::Exec, errno: libc::ENOENT };
        assert_eq!(ending(2, Outcome::Refused(refused), None), Event::NotStarted { id: 2, refusal });
    }
}
