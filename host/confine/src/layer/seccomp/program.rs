//! Compiles the table to a BPF program for seccomp(2).

use portcullis_sys::seccomp::Instruction;

use crate::{IsolationMode, Reads};

use super::landlock_only;
use super::requests::{ALLOWED, KIND, KINDS, LEASES, TERMINAL};
use super::table::{
    ADDRESS_LENGTH, EXECUTES, HANDED_OVER, MAKES, MODES, MODES_HERE, OPENS, PERSONALITIES, REFUSED,
    REFUSED_HERE, SOCKETS, UNHEARD_OF, UNKNOWN,
};

const LOAD_WORD: u16 = 0x20;
const KEEP_BITS: u16 = 0x54;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_GREATER_OR_EQUAL: u16 = 0x35;
const JUMP_IF_BITS_SET: u16 = 0x45;
const RETURN: u16 = 0x06;

pub(super) const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
pub(super) const HAND_OVER: u32 = libc::SECCOMP_RET_USER_NOTIF;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xc000_00b7;
#[cfg(target_arch = "riscv64")]
const NATIVE: u32 = 0xc000_00f3;

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

/// Returns the whole filter.
pub(super) fn assemble(broker: Broker, reads: Reads, walls: IsolationMode) -> Vec<Instruction> {
    let mut program = Program::default();
    program.head();
    if walls == IsolationMode::Landlock {
        landlock_only::add(&mut program);
    }
    for number in UNKNOWN {
        program.answer(number, errno(libc::ENOSYS));
    }
    for number in REFUSED.into_iter().chain(REFUSED_HERE) {
        program.answer(number, errno(libc::EPERM));
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
                // This is common for directories, and only the broker can tell the type of the file.
                body.if_bits(libc::S_ISGID, looked_at);
            }
        });
    }
    for (number, flags, mode) in OPENS {
        program.on(number, |body| {
            opens(body, (flags, mode), looked_at);
            if reads.are_judged() {
                // Opening with O_PATH or only a directory reads no file; without mounts, only the broker hides
                // directories.
                let passing = match walls {
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

/// `O_TMPFILE` without the bits of `O_DIRECTORY` in it.
const UNNAMED: i32 = libc::O_TMPFILE & !libc::O_DIRECTORY;

pub(super) fn no_set_user_id(body: &mut Program, mode: u32) {
    body.load(argument(mode));
    body.if_bits(libc::S_ISUID, errno(libc::EPERM));
}

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

#[derive(Default)]
pub(super) struct Program(Vec<Instruction>);

impl Program {
    /// Kills calls of another architecture, whose numbers mean other calls; no honest program mixes them.
    fn head(&mut self) {
        self.load(ARCHITECTURE);
        self.unless_equal(NATIVE, KILL);
        self.load(NUMBER);
        // This includes the x32 interface.
        self.push(JUMP_IF_GREATER_OR_EQUAL, 0, 1, call(UNHEARD_OF));
        self.give(errno(libc::ENOSYS));
    }

    pub(super) fn answer(&mut self, number: libc::c_long, answer: u32) {
        self.if_equal(call(number), answer);
    }

    /// Calls that `body` does not answer are allowed: the number is no longer loaded after it.
    pub(super) fn on(&mut self, number: libc::c_long, body: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        body(&mut inner);
        inner.give(ALLOW);
        let skipped = u8::try_from(inner.0.len()).unwrap_or(u8::MAX);
        self.push(JUMP_IF_EQUAL, 0, skipped, call(number));
        self.0.extend(inner.0);
    }

    /// `body` must always answer; if the bits are not set, the same word stays loaded.
    fn on_bits(&mut self, bits: u32, body: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        body(&mut inner);
        let skipped = u8::try_from(inner.0.len()).unwrap_or(u8::MAX);
        self.push(JUMP_IF_BITS_SET, 0, skipped, bits);
        self.0.extend(inner.0);
    }

    pub(super) fn load(&mut self, offset: u32) {
        self.push(LOAD_WORD, 0, 0, offset);
    }

    /// Masks the loaded word with these bits.
    pub(super) fn keep_bits(&mut self, bits: u32) {
        self.push(KEEP_BITS, 0, 0, bits);
    }

    pub(super) fn if_equal(&mut self, value: u32, answer: u32) {
        self.push(JUMP_IF_EQUAL, 0, 1, value);
        self.give(answer);
    }

    pub(super) fn if_at_least(&mut self, value: u32, answer: u32) {
        self.push(JUMP_IF_GREATER_OR_EQUAL, 0, 1, value);
        self.give(answer);
    }

    pub(super) fn unless_equal(&mut self, value: u32, answer: u32) {
        self.push(JUMP_IF_EQUAL, 1, 0, value);
        self.give(answer);
    }

    fn if_bits(&mut self, bits: u32, answer: u32) {
        self.push(JUMP_IF_BITS_SET, 0, 1, bits);
        self.give(answer);
    }

    pub(super) fn give(&mut self, answer: u32) {
        self.push(RETURN, 0, 0, answer);
    }

    fn push(&mut self, code: u16, jt: u8, jf: u8, k: u32) {
        self.0.push(Instruction { code, jt, jf, k });
    }
}

/// Returns the offset of the low 32 bits of an argument.
pub(super) fn argument(index: u32) -> u32 {
    let low = if cfg!(target_endian = "little") { 0 } else { 4 };
    16 + 8 * index + low
}

pub(super) fn errno(number: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | low_bits(number)
}

pub(super) fn low_bits(value: i32) -> u32 {
    u32::from_ne_bytes(value.to_ne_bytes())
}

fn call(number: libc::c_long) -> u32 {
    // All numbers of the table are small constants; any other must match nothing.
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
