//! The seccomp filter of the compiler process: it may compute, and use the pipes that it was started with.
//!
//! The filter allows the system calls that the compiler needs and refuses the rest, so the process cannot
//! open files, start programs, connect or send signals. This limits the use of a bug in the compiler. It does
//! not protect against a compromised compiler: the host runs the code that the process returns, and an
//! attacker who controls the compiler can return any code.

use std::io;

use portcullis_sys::descriptor::close_inherited;
use portcullis_sys::process::SingleThread;
use portcullis_sys::seccomp::{Handing, Instruction, load};
use rustix::process::{DumpableBehavior, getpid, set_dumpable_behavior};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};

/// Restricts this process: closes inherited descriptors, drops all capabilities and installs the filter.
///
/// The process must still have only one thread.
///
/// On a kernel without seccomp filters only the limits on memory and time remain, which the caller sets.
pub(super) fn enforce() -> io::Result<()> {
    let Some(single) = SingleThread::prove()? else {
        return Err(io::Error::other("the process has several threads already"));
    };
    close_inherited(&single, 3)?;
    set_no_new_privs(true)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    match load(&filter(getpid().as_raw_nonzero().get().cast_unsigned()), Handing::None) {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL | libc::EPERM)) => {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// System calls that are allowed with any arguments.
const ALLOWED: &[libc::c_long] = &[
    // Memory.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_memfd_create,
    // File descriptors that are already open.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_fcntl,
    libc::SYS_ftruncate,
    libc::SYS_ppoll,
    // Threads.
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_prctl,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Signals.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    // Time, random numbers and limits.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_prlimit64,
    libc::SYS_getrusage,
];

/// Older system calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
const ALLOWED_HERE: &[libc::c_long] = &[libc::SYS_poll, libc::SYS_getrlimit, libc::SYS_setrlimit];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_HERE: &[libc::c_long] = &[];

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xc000_00b7;
#[cfg(target_arch = "riscv64")]
const NATIVE: u32 = 0xc000_00f3;

const LOAD_WORD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_BITS_SET: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
/// Makes libc fall back to the older call, whose flags a filter can check.
const UNKNOWN: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();

/// Returns the filter for the process with the id `own`.
fn filter(own: u32) -> Vec<Instruction> {
    let mut program = vec![
        step(LOAD_WORD, ARCHITECTURE, 0, 0),
        step(JUMP_IF_EQUAL, NATIVE, 1, 0),
        step(RETURN, libc::SECCOMP_RET_KILL_PROCESS, 0, 0),
        step(LOAD_WORD, NUMBER, 0, 0),
    ];
    for call in ALLOWED.iter().chain(ALLOWED_HERE) {
        program.extend([step(JUMP_IF_EQUAL, number(*call), 0, 1), step(RETURN, ALLOW, 0, 0)]);
    }
    program.extend([step(JUMP_IF_EQUAL, number(libc::SYS_clone3), 0, 1), step(RETURN, UNKNOWN, 0, 0)]);
    // Allow new threads, but no new processes.
    let thread = libc::CLONE_THREAD.cast_unsigned();
    on_argument(&mut program, libc::SYS_clone, step(JUMP_IF_BITS_SET, thread, 0, 1));
    // Allow signals to this process only.
    on_argument(&mut program, libc::SYS_tgkill, step(JUMP_IF_EQUAL, own, 0, 1));
    program.push(step(RETURN, REFUSE, 0, 0));
    program
}

/// Allows `call` if `test` holds for its first argument.
fn on_argument(program: &mut Vec<Instruction>, call: libc::c_long, test: Instruction) {
    program.extend([
        step(JUMP_IF_EQUAL, number(call), 0, 4),
        step(LOAD_WORD, FIRST_ARGUMENT, 0, 0),
        test,
        step(RETURN, ALLOW, 0, 0),
        step(RETURN, REFUSE, 0, 0),
    ]);
}

fn step(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code, jt, jf, k }
}

/// Returns the number of a system call as a filter sees it.
fn number(call: libc::c_long) -> u32 {
    // All real numbers fit. The fallback matches no system call.
    u32::try_from(call).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the filter on a call as the kernel would, and returns its answer.
    fn answer(call: libc::c_long, first: u32) -> u32 {
        let (program, mut at, mut word) = (filter(77), 0, 0);
        loop {
            let Instruction { code, jt, jf, k } = program[at];
            at += 1;
            let skip = |holds: bool| usize::from(if holds { jt } else { jf });
            match code {
                LOAD_WORD if k == NUMBER => word = number(call),
                LOAD_WORD if k == ARCHITECTURE => word = NATIVE,
                LOAD_WORD => word = first,
                JUMP_IF_EQUAL => at += skip(word == k),
                JUMP_IF_BITS_SET => at += skip(word & k != 0),
                _ => return k,
            }
        }
    }

    #[test]
    fn nothing_is_opened_started_or_reached() {
        for call in [
            libc::SYS_openat,
            libc::SYS_openat2,
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_kill,
            libc::SYS_ptrace,
            libc::SYS_process_vm_writev,
            libc::SYS_unlinkat,
            libc::SYS_io_uring_setup,
            libc::SYS_bpf,
        ] {
            assert_eq!(answer(call, 0), REFUSE, "{call}");
        }
        assert_eq!(answer(libc::SYS_mmap, 0), ALLOW, "control");
    }

    #[test]
    fn only_threads_and_only_itself() {
        assert_eq!(answer(libc::SYS_clone, libc::CLONE_THREAD.cast_unsigned()), ALLOW);
        assert_eq!(answer(libc::SYS_clone, libc::SIGCHLD.cast_unsigned()), REFUSE);
        assert_eq!(answer(libc::SYS_clone3, 0), UNKNOWN);
        assert_eq!(answer(libc::SYS_tgkill, 77), ALLOW);
        assert_eq!(answer(libc::SYS_tgkill, 78), REFUSE);
    }
}
