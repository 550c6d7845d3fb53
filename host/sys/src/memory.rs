//! Memory of other processes, and memory shared between processes.

use std::ffi::CString;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

/// Page size. Strings are read in chunks that do not cross a page, because the next page may be unmapped.
const PAGE: usize = 4096;

/// Reads a NUL-terminated string of at most `max` bytes, including the NUL, from another process's memory.
///
/// # Errors
/// `EFAULT` when the memory is not mapped, `ENAMETOOLONG` when there is no NUL within `max` bytes, `ESRCH`
/// when the process has ended, `EPERM` when the process may not be inspected.
pub fn read_string(process: i32, address: u64, max: usize) -> io::Result<CString> {
    let mut bytes = Vec::with_capacity(128);
    let mut from =
        usize::try_from(address).map_err(|_too_large| io::Error::from_raw_os_error(libc::EFAULT))?;
    while bytes.len() < max {
        let piece = (PAGE - from % PAGE).min(max - bytes.len());
        let start = bytes.len();
        bytes.resize(start + piece, 0);
        let read = read(process, from, bytes.get_mut(start..).unwrap_or_default())?;
        bytes.truncate(start + read);
        if let Some(end) = bytes.iter().skip(start).position(|byte| *byte == 0) {
            bytes.truncate(start + end);
            return CString::new(bytes).map_err(io::Error::other);
        }
        if read == 0 {
            return Err(io::Error::from_raw_os_error(libc::EFAULT));
        }
        from = from.saturating_add(read);
    }
    Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG))
}

/// Fills `buffer` from another process's memory.
///
/// # Errors
/// `EFAULT` when a part of the memory is not mapped, `ESRCH` when the process has ended, `EPERM` when the
/// process may not be inspected.
pub fn read_exactly(process: i32, address: u64, buffer: &mut [u8]) -> io::Result<()> {
    let fault = || io::Error::from_raw_os_error(libc::EFAULT);
    let from = usize::try_from(address).map_err(|_too_large| fault())?;
    if read(process, from, buffer)? == buffer.len() { Ok(()) } else { Err(fault()) }
}

fn read(process: i32, from: usize, buffer: &mut [u8]) -> io::Result<usize> {
    let ours = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let theirs = libc::iovec { iov_base: ptr::without_provenance_mut(from), iov_len: buffer.len() };
    // SAFETY: `ours` is a writable buffer. `theirs` is in another process, and the kernel checks it.
    let read = unsafe { libc::process_vm_readv(process, &raw const ours, 1, &raw const theirs, 1, 0) };
    usize::try_from(read).map_err(|_negative| io::Error::last_os_error())
}

/// Marks a System V shared memory segment for removal. The kernel removes it after its last detach.
///
/// # Errors
/// `EINVAL` when there is no segment with this id, `EPERM` when it belongs to another user.
pub fn remove_segment(id: i32) -> io::Result<()> {
    // SAFETY: this request does not use the pointer.
    let done = unsafe { libc::shmctl(id, libc::IPC_RMID, ptr::null_mut()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Capacity of a [`SharedNumbers`]: more than the number of commands that processes can have at once.
const NUMBERS: usize = 2048;

/// A set of numbers in memory that a process shares with its later children.
#[derive(Debug)]
pub struct SharedNumbers {
    start: NonNull<AtomicU64>,
}

// SAFETY: the memory behind the pointer is atomic and lives as long as the value.
unsafe impl Send for SharedNumbers {}
// SAFETY: as above.
unsafe impl Sync for SharedNumbers {}

impl SharedNumbers {
    const BYTES: usize = NUMBERS * size_of::<AtomicU64>();

    /// Reserves the memory. The set is empty.
    ///
    /// # Errors
    /// The errno of mmap(2), such as `ENOMEM`.
    pub fn new() -> io::Result<Self> {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps no existing memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), Self::BYTES, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start })
    }

    fn all(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has room for this many numbers and lives as long as `self`. The kernel zeroes
        // it, which is a valid value.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), NUMBERS) }
    }

    /// Adds a number other than 0. Returns false if the set is full.
    pub fn add(&self, number: u64) -> bool {
        let free =
            |slot: &&AtomicU64| slot.compare_exchange(0, number, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        self.all().iter().find(free).is_some()
    }

    /// Removes a number.
    pub fn remove(&self, number: u64) {
        let same =
            |slot: &&AtomicU64| slot.compare_exchange(number, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        // Only the process that added a number removes it, so it is present once or not at all.
        let _ = self.all().iter().find(same);
    }

    /// Returns the first number for which `wanted` holds.
    pub fn find(&self, wanted: impl Fn(u64) -> bool) -> Option<u64> {
        self.all()
            .iter()
            .map(|slot| slot.load(Ordering::Acquire))
            .find(|number| *number != 0 && wanted(*number))
    }
}

impl Drop for SharedNumbers {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping that `new` made, and no borrows of it are left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), Self::BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> i32 {
        i32::try_from(std::process::id()).expect("small")
    }

    #[test]
    fn strings_are_read_up_to_their_end() {
        let text = c"some text";
        let address = u64::try_from(text.as_ptr().addr()).expect("an address");
        assert_eq!(read_string(own(), address, 100).expect("read").as_c_str(), text);
        let cut = read_string(own(), address, 4).expect_err("too long");
        assert_eq!(cut.raw_os_error(), Some(libc::ENAMETOOLONG));
        assert_eq!(read_string(own(), 8, 100).expect_err("none").raw_os_error(), Some(libc::EFAULT));
    }

    #[test]
    fn a_string_may_end_with_the_last_page() {
        let long = CString::new(vec![b'x'; 3 * PAGE]).expect("no NUL");
        let address = u64::try_from(long.as_ptr().addr()).expect("an address");
        assert_eq!(read_string(own(), address, 4 * PAGE).expect("read"), long);
    }

    #[test]
    fn numbers_come_and_go() {
        let numbers = SharedNumbers::new().expect("memory");
        assert!(numbers.add(7) && numbers.add(9));
        assert_eq!(numbers.find(|number| number > 7), Some(9));
        numbers.remove(9);
        assert_eq!(numbers.find(|number| number > 7), None);
    }
}
