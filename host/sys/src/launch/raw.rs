//! System calls without libc, for processes that share memory with their parent.
//!
//! The wrappers of libc write `errno`, which all these processes would share. These functions touch only
//! registers.

use std::ffi::c_void;

/// The function that a process made by [`clone_onto`] runs. It ends with [`exit`] or `execve`.
pub(super) type Entry = unsafe extern "C" fn(*mut c_void) -> !;

/// Makes a system call and returns the kernel's answer. Values from -4095 to -1 are errors.
///
/// # Safety
/// Arguments that are addresses must be valid for the call's use of them.
#[inline(always)]
pub(super) unsafe fn call(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let mut answer: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller vouches for the addresses; the kernel changes only rax, rcx and r11 (syscall(2)).
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            out("rcx") _, out("r11") _,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the caller vouches for the addresses; the kernel changes only x0 (syscall(2)).
    unsafe {
        std::arch::asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") a => answer,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    #[cfg(target_arch = "riscv64")]
    // SAFETY: the caller vouches for the addresses; the kernel changes only a0 (syscall(2)).
    unsafe {
        std::arch::asm!(
            "ecall",
            in("a7") number,
            inlateout("a0") a => answer,
            in("a1") b, in("a2") c, in("a3") d, in("a4") e, in("a5") f,
            options(nostack),
        );
    }
    answer.cast_signed()
}

/// Creates a process that runs `entry` on its own stack, and returns its pid or an error as [`call`] does.
///
/// The process has no thread-local storage of its own.
///
/// # Safety
/// `flags` must contain `CLONE_VM`, and no flag that needs further arguments except `CLONE_PIDFD`, for which
/// `pidfd` must be writable. `stack` must be the upper end, aligned to 16, of memory that has no other user
/// until the process has ended or called `execve`. `entry` must be callable with `argument` there and must
/// not return. It must not use thread-local storage: no allocation, no `errno`, no panic.
pub(super) unsafe fn clone_onto(
    flags: usize,
    stack: usize,
    pidfd: *mut i32,
    entry: Entry,
    argument: *mut c_void,
) -> isize {
    let mut answer: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: in this process it is an ordinary call that changes rax, rcx and r11. The new process continues
    // after it with the same registers except rax and the stack pointer; it calls `entry` and never returns
    // here.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") number(libc::SYS_clone) => answer,
            in("rdi") flags, in("rsi") stack, in("rdx") pidfd, in("r10") 0_usize, in("r8") 0_usize,
            in("r12") argument, in("r13") entry,
            out("rcx") _, out("r11") _,
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above, with x0 as the only register that changes in this process.
    unsafe {
        std::arch::asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x20",
            "blr x21",
            "brk #1",
            "2:",
            in("x8") number(libc::SYS_clone),
            inlateout("x0") flags => answer,
            in("x1") stack, in("x2") pidfd, in("x3") 0_usize, in("x4") 0_usize,
            in("x20") argument, in("x21") entry,
        );
    }
    #[cfg(target_arch = "riscv64")]
    // SAFETY: as above, with a0 as the only register that changes in this process.
    unsafe {
        std::arch::asm!(
            "ecall",
            "bnez a0, 2f",
            "mv a0, s2",
            "jalr s3",
            "unimp",
            "2:",
            in("a7") number(libc::SYS_clone),
            inlateout("a0") flags => answer,
            in("a1") stack, in("a2") pidfd, in("a3") 0_usize, in("a4") 0_usize,
            in("s2") argument, in("s3") entry,
        );
    }
    answer.cast_signed()
}

/// Ends this process.
pub(super) fn exit(code: usize) -> ! {
    loop {
        // SAFETY: the call takes no address.
        unsafe { call(number(libc::SYS_exit_group), [code, 0, 0, 0, 0, 0]) };
    }
}

/// Returns the errno of an answer.
pub(super) fn errno(answer: isize) -> Option<i32> {
    if answer >= 0 { None } else { i32::try_from(answer.wrapping_neg()).ok() }
}

/// Returns the number of a system call as a register value.
#[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "they are small and positive")]
pub(super) const fn number(call: libc::c_long) -> usize {
    call as usize
}

/// Returns a small number, such as a descriptor or a set of flags, as a register value.
#[expect(clippy::cast_sign_loss, reason = "the kernel looks at the lower half, where nothing changes")]
pub(super) const fn word(value: i32) -> usize {
    value as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_errors_are_told_apart() {
        // SAFETY: the call takes no arguments.
        let own = unsafe { call(number(libc::SYS_getpid), [0; 6]) };
        assert_eq!(u32::try_from(own), Ok(std::process::id()));
        assert_eq!(errno(own), None);
        // SAFETY: the call takes no address.
        let error = unsafe { call(number(libc::SYS_close), [word(-1), 0, 0, 0, 0, 0]) };
        assert_eq!(errno(error), Some(libc::EBADF));
    }

    #[test]
    fn negative_words_arrive_as_they_are() {
        // AT_FDCWD and an absolute path: the test is that the kernel accepts the number.
        let arguments = [word(libc::AT_FDCWD), c"/".as_ptr().addr(), 0, 0, 0, 0];
        // SAFETY: the path is a NUL-terminated literal.
        let answer = unsafe { call(number(libc::SYS_faccessat), arguments) };
        assert_eq!(errno(answer), None);
    }
}
