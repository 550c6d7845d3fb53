//! System calls that are passed to the broker, decoded from registers.

use portcullis_sys::notify::Call;

/// A path argument of a call: a directory descriptor, and the address of the text in the caller's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathArgument {
    pub(crate) directory: i32,
    pub(crate) text: u64,
}

/// A decoded system call. A new kind must be added here, to the filter's table, and to the worker, which dispatches
/// each kind to its implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syscall {
    Open {
        at: PathArgument,
        flags: u32,
        mode: u32,
    },
    MakeDirectory {
        at: PathArgument,
        mode: u32,
    },
    MakeNode {
        at: PathArgument,
        mode: u32,
    },
    MakeLink {
        target: u64,
        at: PathArgument,
    },
    Link {
        from: PathArgument,
        to: PathArgument,
        flags: u32,
    },
    Rename {
        from: PathArgument,
        to: PathArgument,
        flags: u32,
    },
    Remove {
        at: PathArgument,
        flags: u32,
    },
    Truncate {
        at: PathArgument,
        length: u64,
    },
    Bind {
        socket: i32,
        address: u64,
        length: u64,
    },
    Execute {
        at: PathArgument,
        flags: u32,
    },
    Connect {
        socket: i32,
        address: u64,
        length: u64,
    },
    ChangeMask,
    /// With mounts, not of an open file, except to a mode with the set-group-id bit.
    ChangeMode {
        target: Target,
        mode: u32,
    },
    /// Only without mounts.
    ChangeOwner {
        target: Target,
        user: u32,
        group: u32,
    },
    /// With mounts, not of an open file.
    ChangeTimes {
        target: Target,
        times: Times,
    },
    /// Only with mounts, and not of an open file.
    ChangeAttributes {
        target: Target,
    },
}

/// An existing file, as a call names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Path { at: PathArgument, flags: u32 },
    Descriptor(i32),
}

/// The address and format of two times in the caller's memory, or the current time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    Now,
    /// Two `struct timespec`.
    Nanoseconds(u64),
    /// Two `struct timeval`.
    Microseconds(u64),
    /// Two times in seconds.
    Seconds(u64),
}

impl Times {
    fn at(address: u64, form: fn(u64) -> Self) -> Self {
        if address == 0 { Self::Now } else { form(address) }
    }
}

/// Returns the target of a call; without a path it is the descriptor itself.
fn target(directory: u64, text: u64, flags: u64) -> Target {
    if text == 0 {
        return Target::Descriptor(descriptor(directory));
    }
    Target::Path { at: at(directory, text), flags: low(flags) }
}

/// Returns the lower half of a register as a file descriptor, as the kernel does.
fn descriptor(register: u64) -> i32 {
    i32::from_ne_bytes(low(register).to_ne_bytes())
}

/// Returns the lower half of a register.
#[expect(clippy::cast_possible_truncation, reason = "the kernel does not look at the upper half either")]
fn low(register: u64) -> u32 {
    register as u32
}

fn here(text: u64) -> PathArgument {
    PathArgument { directory: libc::AT_FDCWD, text }
}

fn at(directory: u64, text: u64) -> PathArgument {
    PathArgument { directory: descriptor(directory), text }
}

impl Syscall {
    /// Decodes a call; `None` for one that no filter should pass on.
    pub(crate) fn decode(call: &Call) -> Option<Self> {
        let [a, b, c, d, e, _] = call.arguments;
        Some(match call.number {
            libc::SYS_openat => Self::Open { at: at(a, b), flags: low(c), mode: low(d) },
            libc::SYS_mkdirat => Self::MakeDirectory { at: at(a, b), mode: low(c) },
            libc::SYS_mknodat => Self::MakeNode { at: at(a, b), mode: low(c) },
            libc::SYS_symlinkat => Self::MakeLink { target: a, at: at(b, c) },
            libc::SYS_linkat => Self::Link { from: at(a, b), to: at(c, d), flags: low(e) },
            libc::SYS_renameat2 => Self::Rename { from: at(a, b), to: at(c, d), flags: low(e) },
            libc::SYS_unlinkat => Self::Remove { at: at(a, b), flags: low(c) },
            libc::SYS_truncate => Self::Truncate { at: here(a), length: b },
            libc::SYS_bind => Self::Bind { socket: descriptor(a), address: b, length: c },
            libc::SYS_execve => Self::Execute { at: here(a), flags: 0 },
            libc::SYS_execveat => Self::Execute { at: at(a, b), flags: low(e) },
            libc::SYS_connect => Self::Connect { socket: descriptor(a), address: b, length: c },
            libc::SYS_umask => Self::ChangeMask,
            libc::SYS_fchmod => Self::ChangeMode { target: Target::Descriptor(descriptor(a)), mode: low(b) },
            libc::SYS_fchmodat => {
                Self::ChangeMode { target: Target::Path { at: at(a, b), flags: 0 }, mode: low(c) }
            }
            portcullis_sys::SYS_FCHMODAT2 => {
                Self::ChangeMode { target: Target::Path { at: at(a, b), flags: low(d) }, mode: low(c) }
            }
            libc::SYS_fchown => {
                let target = Target::Descriptor(descriptor(a));
                Self::ChangeOwner { target, user: low(b), group: low(c) }
            }
            libc::SYS_fchownat => {
                let target = Target::Path { at: at(a, b), flags: low(e) };
                Self::ChangeOwner { target, user: low(c), group: low(d) }
            }
            libc::SYS_setxattr | libc::SYS_removexattr => {
                Self::ChangeAttributes { target: Target::Path { at: here(a), flags: 0 } }
            }
            libc::SYS_lsetxattr | libc::SYS_lremovexattr => {
                let flags = libc::AT_SYMLINK_NOFOLLOW.cast_unsigned();
                Self::ChangeAttributes { target: Target::Path { at: here(a), flags } }
            }
            portcullis_sys::SYS_SETXATTRAT | portcullis_sys::SYS_REMOVEXATTRAT => {
                Self::ChangeAttributes { target: target(a, b, c) }
            }
            libc::SYS_utimensat => {
                Self::ChangeTimes { target: target(a, b, d), times: Times::at(c, Times::Nanoseconds) }
            }
            _ => return Self::of_older(call),
        })
    }

    #[cfg(not(target_arch = "riscv64"))]
    fn of_older(call: &Call) -> Option<Self> {
        let [a, b, c, d, ..] = call.arguments;
        match call.number {
            libc::SYS_renameat => Some(Self::Rename { from: at(a, b), to: at(c, d), flags: 0 }),
            _ => Self::of_oldest(call),
        }
    }

    #[cfg(target_arch = "riscv64")]
    fn of_older(call: &Call) -> Option<Self> {
        Self::of_oldest(call)
    }

    #[cfg(target_arch = "x86_64")]
    fn of_oldest(call: &Call) -> Option<Self> {
        let [a, b, c, ..] = call.arguments;
        Some(match call.number {
            libc::SYS_open => Self::Open { at: here(a), flags: low(b), mode: low(c) },
            libc::SYS_creat => {
                let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
                Self::Open { at: here(a), flags: flags.cast_unsigned(), mode: low(b) }
            }
            libc::SYS_mkdir => Self::MakeDirectory { at: here(a), mode: low(b) },
            libc::SYS_mknod => Self::MakeNode { at: here(a), mode: low(b) },
            libc::SYS_symlink => Self::MakeLink { target: a, at: here(b) },
            libc::SYS_link => Self::Link { from: here(a), to: here(b), flags: 0 },
            libc::SYS_rename => Self::Rename { from: here(a), to: here(b), flags: 0 },
            libc::SYS_unlink => Self::Remove { at: here(a), flags: 0 },
            libc::SYS_chmod => {
                Self::ChangeMode { target: Target::Path { at: here(a), flags: 0 }, mode: low(b) }
            }
            libc::SYS_chown | libc::SYS_lchown => {
                let flags = if call.number == libc::SYS_lchown { libc::AT_SYMLINK_NOFOLLOW } else { 0 };
                let target = Target::Path { at: here(a), flags: flags.cast_unsigned() };
                Self::ChangeOwner { target, user: low(b), group: low(c) }
            }
            libc::SYS_futimesat => {
                Self::ChangeTimes { target: target(a, b, 0), times: Times::at(c, Times::Microseconds) }
            }
            libc::SYS_utimes => Self::ChangeTimes {
                target: Target::Path { at: here(a), flags: 0 },
                times: Times::at(b, Times::Microseconds),
            },
            libc::SYS_utime => Self::ChangeTimes {
                target: Target::Path { at: here(a), flags: 0 },
                times: Times::at(b, Times::Seconds),
            },
            libc::SYS_rmdir => Self::Remove { at: here(a), flags: libc::AT_REMOVEDIR.cast_unsigned() },
            _ => return None,
        })
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn of_oldest(_call: &Call) -> Option<Self> {
        None
    }
}

/// Returns true for a system call that the broker carries out.
pub fn is_carried_out(number: libc::c_long) -> bool {
    Syscall::decode(&Call { id: 0, thread: 0, number, arguments: [0; 6] }).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_the_lower_half() {
        let register = 0xdead_beef_ffff_ff9c;
        let call = Call { id: 1, thread: 1, number: libc::SYS_mkdirat, arguments: [register, 7, 0, 0, 0, 0] };
        let at = PathArgument { directory: libc::AT_FDCWD, text: 7 };
        assert_eq!(Syscall::decode(&call), Some(Syscall::MakeDirectory { at, mode: 0 }));
    }
}
