//! Stacks for the init and the command.

use std::io;
use std::ptr::{self, NonNull};

/// Size of one stack. The init and the command only make a few nested calls, even in unoptimised builds.
const BYTES: usize = 64 * 1024;
/// Size of a guard: at least one page on every architecture.
const GUARD_BYTES: usize = 64 * 1024;
/// Size of both stacks.
///
/// Each has a guard below it, so that an overflow ends the process instead of corrupting memory.
const ALL_BYTES: usize = 2 * (GUARD_BYTES + BYTES);

/// Two stacks, for an init and its command. They can be reused when both processes have ended.
#[derive(Debug)]
pub struct Stacks {
    start: NonNull<libc::c_void>,
}

impl Stacks {
    /// Reserves the memory.
    ///
    /// # Errors
    /// The errno of mmap(2), such as `ENOMEM`.
    pub fn new() -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps no existing memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), ALL_BYTES, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        let stacks = Self { start };
        for top in [stacks.of_init(), stacks.of_command()] {
            let bottom = start.as_ptr().with_addr(top - BYTES);
            // SAFETY: these pages belong to the new mapping, and no references to them exist yet.
            let result = unsafe { libc::mprotect(bottom, BYTES, libc::PROT_READ | libc::PROT_WRITE) };
            if result < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(stacks)
    }

    /// Returns the upper end of the init's stack.
    pub(super) fn of_init(&self) -> usize {
        self.start.addr().get() + GUARD_BYTES + BYTES
    }

    /// Returns the upper end of the command's stack.
    pub(super) fn of_command(&self) -> usize {
        self.start.addr().get() + ALL_BYTES
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping that `new` made, and its owner is dropped. A process that runs on
        // it keeps it alive.
        unsafe { libc::munmap(self.start.as_ptr(), ALL_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_aligned_and_apart() {
        let stacks = Stacks::new().expect("memory");
        assert_eq!((stacks.of_init() % 16, stacks.of_command() % 16), (0, 0));
        assert_eq!(stacks.of_command() - stacks.of_init(), GUARD_BYTES + BYTES);
    }
}
