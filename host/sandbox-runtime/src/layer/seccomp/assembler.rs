//! Assembles BPF instructions for seccomp(2).
//!
//! By hand, because a filter of `seccompiler` knows two answers, no ranges and no masks in exclusions: this one would
//! be five filters that execute twice the instructions for openat(2).

use portcullis_sys::seccomp::Instruction;

use super::table::UNHEARD_OF;

pub(super) const LOAD_WORD: u16 = 0x20;
pub(super) const KEEP_BITS: u16 = 0x54;
pub(super) const JUMP_IF_EQUAL: u16 = 0x15;
pub(super) const JUMP_IF_GREATER_OR_EQUAL: u16 = 0x35;
pub(super) const JUMP_IF_BITS_SET: u16 = 0x45;
pub(super) const RETURN: u16 = 0x06;

pub(super) const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
pub(super) const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
pub(super) const HAND_OVER: u32 = libc::SECCOMP_RET_USER_NOTIF;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

#[cfg(target_arch = "x86_64")]
pub(super) const NATIVE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub(super) const NATIVE: u32 = 0xc000_00b7;
#[cfg(target_arch = "riscv64")]
pub(super) const NATIVE: u32 = 0xc000_00f3;

/// A filter, or a part of one.
#[derive(Default)]
pub(super) struct Program(pub(super) Vec<Instruction>);

impl Program {
    /// Kills calls of another architecture, whose numbers mean other calls; no honest program mixes them.
    pub(super) fn head(&mut self) {
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
    pub(super) fn on_bits(&mut self, bits: u32, body: impl FnOnce(&mut Self)) {
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

    pub(super) fn if_bits(&mut self, bits: u32, answer: u32) {
        self.push(JUMP_IF_BITS_SET, 0, 1, bits);
        self.give(answer);
    }

    pub(super) fn give(&mut self, answer: u32) {
        self.push(RETURN, 0, 0, answer);
    }

    pub(super) fn push(&mut self, code: u16, jt: u8, jf: u8, k: u32) {
        self.0.push(Instruction { code, jt, jf, k });
    }
}

/// Returns the offset of the low 32 bits of an argument.
pub(super) fn argument(index: u32) -> u32 {
    let low = if cfg!(target_endian = "little") { 0 } else { 4 };
    16 + 8 * index + low
}

/// Returns the offset of the high 32 bits of an argument.
pub(super) fn upper_half(index: u32) -> u32 {
    argument(index) ^ 4
}

pub(super) fn errno(number: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | low_bits(number)
}

pub(super) fn low_bits(value: i32) -> u32 {
    u32::from_ne_bytes(value.to_ne_bytes())
}

pub(super) fn call(number: libc::c_long) -> u32 {
    // All numbers of the table are small constants; any other must match nothing.
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub(super) fn no_set_user_id(body: &mut Program, mode: u32) {
    body.load(argument(mode));
    body.if_bits(libc::S_ISUID, errno(libc::EPERM));
}
