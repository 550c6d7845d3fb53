//! Carries out one call, and answers it.

use portcullis_sys::notify::SyscallAnswer;
use rustix::io::Errno;

use crate::approval::Question;
use crate::outcome::{CallResult, Outcome, Stop};
use crate::pending::PendingCall;
use crate::syscalls::Syscall;
use crate::worker::Worker;
use crate::{act, pending_connects};

impl Worker {
    /// Carries out a call and answers it, unless it waits for the user.
    pub(crate) fn take(&self, pending: &PendingCall) {
        let answer = match self.carry_out(pending) {
            Ok(Outcome::Answer(answer)) => answer,
            Ok(Outcome::Done) => return,
            Err(Stop::Error(error)) => SyscallAnswer::Error(error.raw_os_error()),
            Err(Stop::Refused(refusal)) => {
                self.broker.asking.tell(&self.broker.processes, pending, *refusal);
                SyscallAnswer::Error(libc::EACCES)
            }
            // The retry already held the lock exclusively.
            Err(Stop::NotAlone) => SyscallAnswer::Error(libc::EDEADLK),
            Err(Stop::Ask(question)) => match self.ask(pending, &question) {
                Some(()) => return,
                None => SyscallAnswer::Error(libc::EACCES),
            },
        };
        // This fails if the caller has ended and needs no answer.
        drop(self.broker.listener.answer(pending.call.id, answer));
    }

    fn carry_out(&self, pending: &PendingCall) -> CallResult {
        let Some(kind) = Syscall::decode(&pending.call) else { return Err(Errno::NOSYS.into()) };
        // Calls of the keeper are not judged, and it must not be inspected.
        if pending.call.thread == self.broker.processes.keeper() {
            return Ok(Outcome::LEFT_TO_THE_KERNEL);
        }
        if let Syscall::Connect { socket, address, length } = kind {
            return Ok(pending_connects::hold(
                self.broker.connecting.as_ref(),
                &self.broker.processes,
                pending,
                (socket, address, length),
            ));
        }
        // Executing takes as long as loading the program, and changes no name.
        if let Syscall::Execute { at, flags } = kind {
            return act::execute(self, pending, at, flags);
        }
        let _the_only_one = self.broker.one_at_a_time.as_ref().map(|one| one.lock());
        if self.broker.has_staged() {
            self.broker.place_finished_writes();
        }
        // The target of a path must stay the same until it has been judged and used, and nothing may appear in a moving
        // directory after it was examined. The lock is never poisoned: a panic ends the process.
        if !matches!(kind, Syscall::Rename { .. }) {
            let _others_too = self.broker.order.shared().map_err(no_lock)?;
            self.set_alone(false);
            match self.route(pending, kind) {
                Err(Stop::NotAlone) => {}
                attempt => return attempt,
            }
        }
        let _nobody_else = self.broker.order.alone().map_err(no_lock)?;
        self.set_alone(true);
        self.route(pending, kind)
    }

    /// Makes a call wait for the answer to a question; `None` if it cannot wait.
    fn ask(&self, pending: &PendingCall, question: &Question) -> Option<()> {
        let broker = self.broker;
        broker.asking.ask((&broker.processes, &broker.listener), pending, question)
    }

    /// Calls what carries out this kind of call.
    fn route(&self, pending: &PendingCall, kind: Syscall) -> CallResult {
        match kind {
            Syscall::Open { at, flags, mode } => act::open(self, pending, at, flags, mode),
            Syscall::MakeDirectory { at, mode } => act::make_directory(self, pending, at, mode),
            Syscall::MakeNode { at, mode } => act::make_node(self, pending, at, mode),
            Syscall::MakeLink { target, at } => act::make_link(self, pending, target, at),
            Syscall::Link { from, to, flags } => act::link(self, pending, from, to, flags),
            Syscall::Rename { from, to, flags } => act::rename(self, pending, from, to, flags),
            Syscall::Remove { at, flags } => act::remove(self, pending, at, flags),
            Syscall::Truncate { at, length } => act::truncate(self, pending, at, length),
            Syscall::ChangeMode { target, mode } => act::change_mode(self, pending, target, mode),
            Syscall::ChangeOwner { target, user, group } => {
                act::change_owner(self, pending, target, user, group)
            }
            Syscall::ChangeTimes { target, times } => act::change_times(self, pending, target, times),
            Syscall::ChangeAttributes { target } => act::change_attributes(self, pending, target),
            Syscall::Bind { socket, address, length } => act::bind(self, pending, socket, address, length),
            // Has been carried out before.
            Syscall::Execute { .. } => Err(Errno::NOSYS.into()),
            // Concerns no name, and was dispatched before.
            Syscall::Connect { .. } => Ok(Outcome::LEFT_TO_THE_KERNEL),
            Syscall::ChangeMask => {
                self.broker.processes.masks_change();
                Ok(Outcome::LEFT_TO_THE_KERNEL)
            }
        }
    }
}

/// Without the lock the call changes nothing.
fn no_lock(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::NOLCK)
}
