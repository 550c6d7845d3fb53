//! File handles, which identify a file on its file system for as long as it exists.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Size of the longest handle (`MAX_HANDLE_SZ`).
const LONGEST: usize = 128;

/// `struct file_handle` with room for the longest handle.
#[repr(C)]
struct Buffer {
    bytes: u32,
    kind: i32,
    handle: [u8; LONGEST],
}

/// Returns the handle of `name` in `holder`, or of `holder` itself if the name is empty.
///
/// Does not follow symlinks.
///
/// Most file systems include a generation number, so a new file that reuses an inode number has another
/// handle. See name_to_handle_at(2).
///
/// # Errors
/// `EOPNOTSUPP` when the file system has no handles.
pub fn file_handle(holder: impl AsFd, name: &CStr) -> io::Result<Vec<u8>> {
    let capacity = u32::try_from(LONGEST).unwrap_or_default();
    let mut buffer = Buffer { bytes: capacity, kind: 0, handle: [0; LONGEST] };
    let mut mount = 0;
    // SAFETY: the name is NUL-terminated. The kernel writes one number, and at most `bytes` bytes of the
    // handle, which is the capacity of the buffer.
    let result = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            holder.as_fd().as_raw_fd(),
            name.as_ptr(),
            &raw mut buffer,
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let length = usize::try_from(buffer.bytes).unwrap_or(LONGEST).min(LONGEST);
    let handle = buffer.handle.get(..length).unwrap_or_default();
    Ok([&buffer.kind.to_ne_bytes(), handle].concat())
}
