//! Starting commands and watching them, all in one thread that waits in one place.

use std::os::fd::OwnedFd;

use portcullis_sys::process::{Cloned, SingleThread, clone};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use super::init::{Init, Program};
use super::{Session, tell};
use crate::layer::namespaces;
use crate::transport::{self, Message};
use crate::wire::{Ending, Event, Reader, Refusal, Request};
use crate::{Command, Stage};

/// The keeper at work.
pub(super) struct Keeper {
    single: SingleThread,
    control: OwnedFd,
    session: Session,
    under_way: Vec<UnderWay>,
}

struct UnderWay {
    id: u64,
    /// Becomes readable when the init, and with it everything below, has ended.
    init: OwnedFd,
    /// What the init and the command had to say before that.
    record: OwnedFd,
}

impl Keeper {
    pub(super) fn new(single: SingleThread, control: OwnedFd, session: Session) -> Self {
        Self { single, control, session, under_way: Vec::new() }
    }

    /// Serves the host until it goes, or says something that is not understood.
    pub(super) fn serve(mut self) {
        loop {
            let Ok(asked) = self.wait() else { return };
            self.reap();
            if asked && self.answer().is_none() {
                return;
            }
        }
    }

    /// Waits until the host says something (true) or a command ends.
    fn wait(&self) -> rustix::io::Result<bool> {
        let mut watched = vec![PollFd::new(&self.control, PollFlags::IN)];
        watched.extend(self.under_way.iter().map(|command| PollFd::new(&command.init, PollFlags::IN)));
        retry_on_intr(|| poll(&mut watched, None))?;
        Ok(watched.first().is_some_and(|control| !control.revents().is_empty()))
    }

    fn reap(&mut self) {
        let control = &self.control;
        self.under_way.retain(|command| match command.ended() {
            Some(event) => {
                tell(control, &event, &[]);
                false
            }
            None => true,
        });
    }

    /// Does what the host asks for; nothing means that the host has gone.
    fn answer(&mut self) -> Option<()> {
        let message = transport::receive(&self.control).ok()??;
        match Request::decode(&message.bytes).ok()? {
            Request::Launch { id, command } => {
                if let Err(refusal) = self.launch(id, command, message) {
                    tell(&self.control, &Event::NotStarted { id, refusal }, &[]);
                }
            }
            Request::Signal { id, signal } => self.signal(id, Signal::from_named_raw(signal)),
            Request::Kill { id } => self.signal(id, Some(Signal::KILL)),
        }
        Some(())
    }

    fn launch(&mut self, id: u64, command: Command, message: Message) -> Result<(), Refusal> {
        let failed = |stage| move |error: Errno| Refusal { stage, errno: error.raw_os_error() };
        let stdio: [OwnedFd; 3] =
            message.descriptors.try_into().map_err(|_wrong_count| failed(Stage::Stdio)(Errno::BADF))?;
        let program = Program::new(command).map_err(|_nul| failed(Stage::Request)(Errno::INVAL))?;
        let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
        let (record, told) = pipe_with(flags).map_err(failed(Stage::Process))?;
        match clone(&self.single, namespaces::of_a_command()) {
            Ok(Cloned::Child) => {
                let init = Init { id, control: &self.control, single: &self.single, record, told };
                init.run(&self.session, &program, &stdio)
            }
            Ok(Cloned::Parent { pidfd, .. }) => {
                self.under_way.push(UnderWay { id, init: pidfd, record });
                Ok(())
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc::EAGAIN);
                Err(Refusal { stage: Stage::Process, errno })
            }
        }
    }

    fn signal(&self, id: u64, signal: Option<Signal>) {
        let command = self.under_way.iter().find(|command| command.id == id);
        if let (Some(command), Some(signal)) = (command, signal) {
            // A command that has ended in the meantime needs no signal.
            let _ = pidfd_send_signal(&command.init, signal);
        }
    }
}

impl UnderWay {
    /// Returns what to tell the host when nothing is left of the command.
    fn ended(&self) -> Option<Event> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let status =
            match retry_on_intr(|| waitid(WaitId::PidFd(rustix::fd::AsFd::as_fd(&self.init)), options)) {
                Ok(None) => return None,
                Ok(Some(status)) => Some(status),
                Err(_) => None,
            };
        let id = self.id;
        Some(match self.read_record() {
            Some(Said::NotStarted(refusal)) => Event::NotStarted { id, refusal },
            Some(Said::Ended(ending)) => Event::Ended { id, ending },
            // It was killed, by the host or for want of memory.
            None => {
                let signal = status.and_then(|status| status.terminating_signal()).unwrap_or(libc::SIGKILL);
                Event::Ended { id, ending: Ending::Signal(signal) }
            }
        })
    }

    fn read_record(&self) -> Option<Said> {
        let mut bytes = [0_u8; 64];
        let length = retry_on_intr(|| rustix::io::read(&self.record, &mut bytes)).ok()?;
        Said::decode(bytes.get(..length)?)
    }
}

/// What an init tells its keeper before it ends.
pub(super) enum Said {
    NotStarted(Refusal),
    Ended(Ending),
}

impl Said {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut writer = crate::wire::Writer::default();
        match self {
            Self::NotStarted(refusal) => {
                writer.number(0);
                writer.refusal(*refusal);
            }
            Self::Ended(ending) => {
                writer.number(1);
                writer.ending(*ending);
            }
        }
        writer.finish()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        // A refusal comes first, and the command's end after it means nothing.
        match reader.number().ok()? {
            0 => reader.refusal().ok().map(Self::NotStarted),
            1 => reader.ending().ok().map(Self::Ended),
            _ => None,
        }
    }
}
