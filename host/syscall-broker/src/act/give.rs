//! Passes an opened file to the caller.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, fcntl_setfl, fstat};
use rustix::io::Errno;

use crate::broker::Broker;
use crate::outcome::{CallResult, Outcome};
use crate::pending::PendingCall;

/// The rights to execute a file.
pub(super) const EXECUTABLE: Mode = Mode::XUSR.union(Mode::XGRP).union(Mode::XOTH);

/// Passes a file to the caller, with the flags that it asked for.
pub(crate) fn give(broker: &Broker, pending: &PendingCall, file: OwnedFd, flags: OFlags) -> CallResult {
    // The last check before the caller gets the file: it applies to the file itself, whatever path led to it.
    if reads(flags) && broker.is_kept_back(&file)? {
        return Err(Errno::ACCESS.into());
    }
    if !flags.contains(OFlags::NONBLOCK) {
        let kept = OFlags::APPEND | OFlags::DIRECT | OFlags::NOATIME;
        fcntl_setfl(&file, flags & kept)?;
    }
    let close_on_exec = flags.contains(OFlags::CLOEXEC);
    let given = match writes(flags) && is_waited_for(&file)? {
        true => broker.listener.give_away(pending.call.id, file, close_on_exec),
        false => broker.listener.give(pending.call.id, file.as_fd(), close_on_exec),
    };
    match given {
        Ok(()) => Ok(Outcome::Done),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT) => Ok(Outcome::Done),
            number => Err(Errno::from_raw_os_error(number.unwrap_or(libc::EMFILE)).into()),
        },
    }
}

/// Whether other processes notice that a file is open for writing anywhere: a program cannot be executed meanwhile, and
/// readers of a pipe see no end of file.
fn is_waited_for(file: &OwnedFd) -> Result<bool, Errno> {
    let mode = fstat(file)?.st_mode;
    let is_executable = Mode::from_raw_mode(mode).intersects(EXECUTABLE);
    Ok(match FileType::from_raw_mode(mode) {
        FileType::Fifo => true,
        FileType::RegularFile => is_executable,
        FileType::Directory
        | FileType::Symlink
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => false,
    })
}

/// Whether a call opens a file for reading.
pub(super) fn reads(flags: OFlags) -> bool {
    flags & OFlags::RWMODE != OFlags::WRONLY
}

/// Whether a call opens a file for writing.
pub(super) fn writes(flags: OFlags) -> bool {
    flags & OFlags::RWMODE != OFlags::RDONLY || flags.contains(OFlags::TRUNC)
}

/// Whether a call opens a file only for reading. The check uses nothing but the flags.
pub(super) fn only_reads(flags: OFlags) -> bool {
    flags & OFlags::RWMODE == OFlags::RDONLY && !flags.contains(OFlags::TRUNC)
}
