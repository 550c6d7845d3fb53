//! Starting the keeper in the control group that the host has made for its sandbox.
//!
//! It starts there, and is not moved: nobody has to wait for that, and there is no moment in which it is outside.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use portcullis_sys::process::{CloneFlags, Cloned, SingleThread, clone, clone_into};
use rustix::fs::{CWD, Mode, OFlags, openat};

/// The argument, after the usual ones, of a keeper whose standard output is the directory of its group.
pub(crate) const IN_GROUP: &str = "in-group";

/// Moves the group from standard output to where no command can inherit it; nothing where none was made.
pub(super) fn take() -> io::Result<Option<OwnedFd>> {
    if !std::env::args_os().any(|argument| argument == IN_GROUP) {
        return Ok(None);
    }
    let group = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let nothing = openat(CWD, "/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdout(nothing)?;
    Ok(Some(group))
}

/// Makes a copy of this process, in the group where there is one; neither has it open afterwards.
///
/// With it comes why the copy is not in that group, 0 where it is: without one a sandbox is as good as any.
pub(super) fn clone_keeper(
    single: &SingleThread,
    flags: CloneFlags,
    group: Option<OwnedFd>,
) -> io::Result<(Cloned, i32)> {
    let Some(group) = group else { return Ok((clone(single, flags)?, 0)) };
    match clone_into(single, flags, group.as_fd()) {
        Ok(cloned) => Ok((cloned, 0)),
        // Where it was not the group that was refused, this is refused as well.
        Err(error) => Ok((clone(single, flags)?, error.raw_os_error().unwrap_or(libc::EINVAL))),
    }
}
