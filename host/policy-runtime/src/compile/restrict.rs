//! The seccomp filter of the compiler process: it may compute, and use the pipes that it was started with.
//!
//! The filter allows the system calls that the compiler needs and refuses the rest, so the process cannot
//! open files, start programs, connect or send signals. This limits the use of a bug in the compiler. It does
//! not protect against a compromised compiler: the host runs the code that the process returns, and an
//! attacker who controls the compiler can return any code.

use std::collections::BTreeMap;
use std::io;

use portcullis_sys::descriptor::close_inherited;
use portcullis_sys::process::SingleThread;
use rustix::process::{DumpableBehavior, getpid, set_dumpable_behavior};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter,
};

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
    let own = getpid().as_raw_nonzero().get().cast_unsigned();
    for filter in filters(own).map_err(io::Error::other)? {
        match apply_filter(&filter) {
            Err(Error::Seccomp(error)) if is_unsupported(&error) => return Ok(()),
            applied => applied.map_err(io::Error::other)?,
        }
    }
    Ok(())
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL | libc::EPERM))
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

/// Returns the filters for the process with the id `own`, in the order in which they are installed.
fn filters(own: u32) -> Result<[BpfProgram; 2], BackendError> {
    let thread = u64::from(libc::CLONE_THREAD.cast_unsigned());
    let mut rules = always(ALLOWED.iter().chain(ALLOWED_HERE));
    rules.extend([
        // New threads, but no new processes.
        (libc::SYS_clone, on_argument(SeccompCmpOp::MaskedEq(thread), thread)?),
        // Signals to this process only.
        (libc::SYS_tgkill, on_argument(SeccompCmpOp::Eq, own.into())?),
        // Answered by the other filter.
        (libc::SYS_clone3, Vec::new()),
    ]);
    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    // Makes libc fall back to `clone`, whose flags a filter can check.
    let unknown = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    Ok([
        program(always([&libc::SYS_clone3]), SeccompAction::Allow, unknown)?,
        program(rules, refuse, SeccompAction::Allow)?,
    ])
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn program(rules: Rules, others: SeccompAction, matching: SeccompAction) -> Result<BpfProgram, BackendError> {
    SeccompFilter::new(rules, others, matching, std::env::consts::ARCH.try_into()?)?.try_into()
}

/// Returns rules that match these calls with any arguments.
fn always<'c>(calls: impl IntoIterator<Item = &'c libc::c_long>) -> Rules {
    calls.into_iter().map(|call| (*call, Vec::new())).collect()
}

/// Returns a rule on the first argument of a call.
fn on_argument(comparison: SeccompCmpOp, value: u64) -> Result<Vec<SeccompRule>, BackendError> {
    let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, comparison, value)?;
    Ok(vec![SeccompRule::new(vec![condition])?])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
    const UNKNOWN: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();

    /// Runs the filters on a call as the kernel would, and returns their answer.
    fn answer(call: libc::c_long, first: u32) -> u32 {
        let answers = filters(77).unwrap().map(|filter| answer_of(&filter, call, first));
        answers.into_iter().find(|answer| *answer != ALLOW).unwrap_or(ALLOW)
    }

    fn answer_of(program: &BpfProgram, call: libc::c_long, first: u32) -> u32 {
        const NATIVE: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
        let (mut at, mut word) = (0, 0);
        loop {
            let instruction = &program[at];
            let k = instruction.k;
            at += 1;
            let skip = |holds: bool| usize::from(if holds { instruction.jt } else { instruction.jf });
            match (u32::from(instruction.code), k) {
                // The call, the architecture, and the first argument.
                (0x20, 0) => word = u32::try_from(call).unwrap(),
                (0x20, 4) => word = NATIVE,
                (0x20, 16) => word = first,
                (0x54, _) => word &= k,
                (0x05, _) => at += usize::try_from(k).unwrap(),
                (0x15, _) => at += skip(word == k),
                (0x06, _) => return k,
                other => panic!("{other:?}"),
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
