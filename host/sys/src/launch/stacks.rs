//! Memory to run on.

use std::io;
use std::ptr::{self, NonNull};

/// What an init and its command need until the command replaces itself: a few calls deep, also unoptimised.
const BYTES: usize = 64 * 1024;
/// Not less than a page of any processor.
const GUARD_BYTES: usize = 64 * 1024;
/// Each stack has a guard below it, so that an overflow ends the process instead of spoiling memory.
const ALL_BYTES: usize = 2 * (GUARD_BYTES + BYTES);

/// Two stacks, for an init and its command; they can be used again when both have ended.
#[derive(Debug)]
pub struct Stacks {
    start: NonNull<libc::c_void>,
}

impl Stacks {
    /// Reserves the memory.
    ///
    /// # Errors
    /// `ENOMEM` and the like.
    pub fn new() -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
        // SAFETY: a new mapping where the kernel likes it takes nothing from anybody.
        let start = unsafe { libc::mmap(ptr::null_mut(), ALL_BYTES, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        let stacks = Self { start };
        for top in [stacks.of_init(), stacks.of_command()] {
            let bottom = start.as_ptr().with_addr(top - BYTES);
            // SAFETY: these pages belong to the mapping just made, and nothing refers to them yet.
            let result = unsafe { libc::mprotect(bottom, BYTES, libc::PROT_READ | libc::PROT_WRITE) };
            if result < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(stacks)
    }

    /// Returns the upper end of the first.
    pub(super) fn of_init(&self) -> usize {
        self.start.addr().get() + GUARD_BYTES + BYTES
    }

    /// Returns the upper end of the second.
    pub(super) fn of_command(&self) -> usize {
        self.start.addr().get() + ALL_BYTES
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping that `new` made, and its owner goes; who runs on it keeps it alive.
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
