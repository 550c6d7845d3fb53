//! Compiles the table to a BPF program for seccomp(2).

use portcullis_sandbox::{IsolationMode, Reads};
use portcullis_sys::seccomp::Instruction;

use super::assembler::{ALLOW, HAND_OVER, Program, argument, errno, low_bits, no_set_user_id, upper_half};
use super::landlock_only;
use super::requests::{ALLOWED, KIND, KINDS, LEASES, TERMINAL};
use super::table::{
    ADDRESS_LENGTH, ATTRIBUTES, EXECUTES, HANDED_OVER, MAKES, MODES, MODES_HERE, OPENS, PERSONALITIES,
    REFUSED, REFUSED_HERE, SOCKETS, TIMES, TIMES_BY_NAME, TIMES_HERE, UNKNOWN,
};

/// Which calls are passed to a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broker {
    None,
    /// Calls that create, change or remove names.
    Listens,
    /// In addition calls that connect.
    HoldsConnections,
}

impl Broker {
    pub(crate) fn listens(self) -> bool {
        self != Self::None
    }
}

/// Returns true if processes may trace others of their command.
///
/// A tracer cannot bypass the filter: filters run after a stop at the entry of a call, so a changed call is judged in
/// its changed form, and while the broker holds a call its process does not stop. Where reading is judged, the broker
/// traces programs itself, and a process has one tracer. Without a pid namespace more processes would be in reach.
fn may_trace(reads: Reads, isolation: IsolationMode) -> bool {
    reads == Reads::Free && isolation == IsolationMode::Namespaces
}

/// Returns the whole filter.
pub(super) fn assemble(broker: Broker, reads: Reads, isolation: IsolationMode) -> Vec<Instruction> {
    let mut program = Program::default();
    program.head();
    if isolation == IsolationMode::Landlock {
        landlock_only::add(&mut program);
    }
    for number in UNKNOWN {
        program.answer(number, errno(libc::ENOSYS));
    }
    for number in REFUSED.into_iter().chain(REFUSED_HERE) {
        program.answer(number, errno(libc::EPERM));
    }
    if !may_trace(reads, isolation) {
        program.answer(libc::SYS_ptrace, errno(libc::EPERM));
    }
    program.on(libc::SYS_clone, |body| {
        body.load(argument(0));
        body.if_bits(low_bits(libc::CLONE_NEWUSER), errno(libc::EPERM));
    });
    program.on(libc::SYS_ioctl, requests);
    program.on(libc::SYS_fcntl, |body| {
        body.load(argument(1));
        // As on file systems without leases.
        LEASES.into_iter().for_each(|lease| body.if_equal(lease, errno(libc::EINVAL)));
    });
    program.on(libc::SYS_personality, |body| {
        body.load(argument(0));
        PERSONALITIES.into_iter().for_each(|persona| body.if_equal(persona, ALLOW));
        body.give(errno(libc::EPERM));
    });
    for number in [libc::SYS_socket, libc::SYS_socketpair] {
        program.on(number, sockets);
    }
    let looked_at = if broker.listens() { HAND_OVER } else { ALLOW };
    for (number, mode) in MODES.into_iter().chain(MODES_HERE) {
        program.on(number, |body| {
            if MAKES.contains(&number) {
                no_id_at_birth(body, mode);
                body.give(looked_at);
            } else {
                no_set_user_id(body, mode);
                // The first bit is common for directories, and only the broker can tell the type of the file. With the
                // others it makes sure that the file is open for writing nowhere, so that it can be executed at once.
                body.if_bits(libc::S_ISGID | EXECUTABLE, looked_at);
                // The broker records the mode so far. An open file was recorded when it was opened for writing.
                if number != libc::SYS_fchmod && broker.listens() {
                    body.give(HAND_OVER);
                }
            }
        });
    }
    for (number, flags, mode) in OPENS {
        program.on(number, |body| {
            opens(body, (flags, mode), looked_at);
            if reads.are_judged() {
                // Opening with O_PATH or only a directory reads no file; without mounts, only the broker hides
                // directories.
                let passing = match isolation {
                    IsolationMode::Namespaces => libc::O_PATH | libc::O_DIRECTORY,
                    IsolationMode::Landlock => libc::O_PATH,
                };
                body.if_bits(low_bits(passing), ALLOW);
                body.give(HAND_OVER);
            }
        });
    }
    if reads.are_judged() {
        EXECUTES.into_iter().for_each(|number| program.answer(number, HAND_OVER));
    }
    if broker == Broker::HoldsConnections {
        program.on(libc::SYS_connect, |body| {
            body.load(argument(2));
            body.if_at_least(ADDRESS_LENGTH, HAND_OVER);
        });
    }
    if broker.listens() {
        // The broker records the times and attributes so far, as with modes.
        for number in TIMES.into_iter().chain(TIMES_HERE) {
            program.on(number, |body| {
                for half in [argument(1), upper_half(1)] {
                    body.load(half);
                    body.unless_equal(0, HAND_OVER);
                }
            });
        }
        TIMES_BY_NAME.into_iter().chain(ATTRIBUTES).for_each(|number| program.answer(number, HAND_OVER));
        HANDED_OVER.into_iter().flatten().for_each(|number| program.answer(*number, HAND_OVER));
    }
    program.give(ALLOW);
    program.0
}

fn opens(body: &mut Program, (flags, mode): (u32, u32), made: u32) {
    body.load(argument(flags));
    // Without these flags the mode argument is an arbitrary register value.
    let makes = low_bits(libc::O_CREAT | UNNAMED);
    body.on_bits(makes, |body| {
        no_id_at_birth(body, mode);
        body.give(made);
    });
    body.if_bits(low_bits(libc::O_WRONLY | libc::O_RDWR | libc::O_TRUNC), made);
}

/// The rights to execute a file.
const EXECUTABLE: libc::mode_t = libc::S_IXUSR | libc::S_IXGRP | libc::S_IXOTH;

/// `O_TMPFILE` without the bits of `O_DIRECTORY` in it.
const UNNAMED: i32 = libc::O_TMPFILE & !libc::O_DIRECTORY;

/// Refuses both bits: these calls do not create directories.
fn no_id_at_birth(body: &mut Program, mode: u32) {
    body.load(argument(mode));
    body.if_bits(libc::S_ISUID | libc::S_ISGID, errno(libc::EPERM));
}

/// Answers other requests with ENOTTY, as for a file without them: programs handle that.
fn requests(body: &mut Program) {
    body.load(argument(1));
    TERMINAL.into_iter().for_each(|request| body.if_equal(request, errno(libc::EPERM)));
    ALLOWED.into_iter().for_each(|request| body.if_equal(request, ALLOW));
    body.keep_bits(KIND);
    KINDS.into_iter().for_each(|kind| body.if_equal(kind, ALLOW));
    body.give(errno(libc::ENOTTY));
}

/// Of netlink only the routing family is allowed: programs list interfaces with it.
fn sockets(body: &mut Program) {
    body.load(argument(0));
    SOCKETS.into_iter().for_each(|family| body.if_equal(low_bits(family), ALLOW));
    body.unless_equal(low_bits(libc::AF_NETLINK), errno(libc::EAFNOSUPPORT));
    body.load(argument(2));
    body.if_equal(low_bits(libc::NETLINK_ROUTE), ALLOW);
    body.give(errno(libc::EAFNOSUPPORT));
}

#[cfg(test)]
mod tests;
