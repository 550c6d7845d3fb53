//! Starts the keeper in the control group that the host has created for its sandbox.
//!
//! It starts in the group instead of being moved there: no wait is needed, and it is never outside.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use portcullis_sys::process::{CloneFlags, Cloned, SingleThread, clone, clone_into};
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::arguments::IN_GROUP;

/// Moves the group from standard output to a descriptor that no command can inherit; `None` if there is no group.
pub(super) fn take() -> io::Result<Option<OwnedFd>> {
    if !std::env::args_os().any(|argument| argument == IN_GROUP) {
        return Ok(None);
    }
    let group = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let nothing = openat(CWD, "/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdout(nothing)?;
    Ok(Some(group))
}

/// Clones this process into the group, if there is one; neither process has the group open afterwards.
///
/// Also returns the errno for which the clone is not in that group, or 0: a sandbox without a group is still useful.
pub(super) fn clone_keeper(
    single: &SingleThread,
    flags: CloneFlags,
    group: Option<OwnedFd>,
) -> io::Result<(Cloned, i32)> {
    let Some(group) = group else { return Ok((clone(single, flags)?, 0)) };
    match clone_into(single, flags, group.as_fd()) {
        Ok(cloned) => Ok((cloned, 0)),
        // If the group was not the cause of the error, this fails as well.
        Err(error) => Ok((clone(single, flags)?, error.raw_os_error().unwrap_or(libc::EINVAL))),
    }
}
