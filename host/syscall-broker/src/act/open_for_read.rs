//! Opening files for reading, if rules over names hide files from reading.
//!
//! The broker executes every such call and leaves none to the kernel, which would look the path up again.

use std::ffi::CStr;
use std::os::fd::OwnedFd;

use portcullis_exec_surface::Change;
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fstat, major, minor, openat};
use rustix::io::Errno;

use super::give::give;
use super::pipes::wait_for_writer;
use super::read_permission::{permit_reading, permit_reading_of};
use crate::outcome::CallResult;
use crate::pending::PendingCall;
use crate::resolve::PathTarget;
use crate::resolve_for_read::FoundFile;
use crate::resolved_name::LastLink;
use crate::syscalls::PathArgument;
use crate::worker::Worker;

/// Major and minor number of `/dev/tty`, which means a different device for each process.
const OWN_TERMINAL: (u32, u32) = (5, 0);
/// The first of the eight major numbers of terminals in `/dev/pts`.
const TERMINALS: u32 = 136;
/// The flags of a call that matter for an existing file that is only read.
const COUNTING: OFlags =
    OFlags::DIRECTORY.union(OFlags::DIRECT).union(OFlags::NOATIME).union(OFlags::NONBLOCK);

/// Opens a file for a command that reads it.
pub(super) fn open_to_read(
    worker: &Worker,
    pending: &PendingCall,
    (at, path): (PathArgument, &CStr),
    (flags, mode): (OFlags, Mode),
) -> CallResult {
    let broker = worker.broker;
    let is_kept = flags.contains(OFlags::NOFOLLOW) || flags.contains(OFlags::CREATE | OFlags::EXCL);
    let last = if is_kept { LastLink::Keep } else { LastLink::Follow };
    let node = match broker.find(&pending.caller, at.directory, path, last) {
        Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => {
            return make(worker, pending, (at, path), (flags, mode));
        }
        Ok(_) if flags.contains(OFlags::CREATE | OFlags::EXCL) => return Err(Errno::EXIST.into()),
        found => found?,
    };
    match node {
        FoundFile::PathTarget(node) => open_node(worker, pending, &node, flags),
        FoundFile::Descriptor(number) => open_own(worker, pending, number, flags),
    }
}

/// Opens a file that was found by its name.
fn open_node(worker: &Worker, pending: &PendingCall, node: &OwnedFd, flags: OFlags) -> CallResult {
    let status = fstat(node)?;
    // A file that was opened with `O_PATH` may be hidden, too.
    worker.broker.check_in_sight(&pending.caller, node)?;
    match FileType::from_raw_mode(status.st_mode) {
        FileType::Symlink if flags.contains(OFlags::DIRECTORY) => return Err(Errno::NOTDIR.into()),
        FileType::Symlink => return Err(Errno::LOOP.into()),
        FileType::Socket => return Err(Errno::NXIO.into()),
        // The caller's terminal, never one of the broker.
        FileType::CharacterDevice if (major(status.st_rdev), minor(status.st_rdev)) == OWN_TERMINAL => {
            let terminal = own_terminal(worker, pending)?;
            return open_found(worker, pending, &terminal, flags);
        }
        FileType::Directory if flags.contains(OFlags::CREATE) => return Err(Errno::ISDIR.into()),
        FileType::Fifo if !flags.contains(OFlags::NONBLOCK) => {
            permit_reading(worker, pending, node)?;
            return wait_for_writer(worker, pending, node, flags);
        }
        FileType::RegularFile | FileType::Fifo => permit_reading(worker, pending, node)?,
        FileType::Directory | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {}
    }
    worker.check_still_waiting(pending)?;
    open_found(worker, pending, node, flags)
}

fn open_found(worker: &Worker, pending: &PendingCall, node: &OwnedFd, flags: OFlags) -> CallResult {
    let broker = worker.broker;
    let sure = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = broker.processes.open_anew(node, flags & COUNTING | sure, Mode::empty())?;
    give(broker, pending, file, flags)
}

/// Reopens a file that the caller has open. Its number is looked up only once: it could mean another file a moment
/// later.
fn open_own(worker: &Worker, pending: &PendingCall, number: i32, flags: OFlags) -> CallResult {
    let processes = &worker.broker.processes;
    let own = processes.descriptor(&pending.caller, number).map_err(|error| match error {
        Errno::BADF => Errno::NOENT,
        error => error,
    })?;
    let has = fcntl_getfl(&own)?;
    let is_open_to_read = has & OFlags::RWMODE != OFlags::WRONLY && !has.contains(OFlags::PATH);
    let node = processes.open_anew(&own, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    // While this descriptor of a pipe is open here, the reader at the other end sees no end of file.
    drop(own);
    match FileType::from_raw_mode(fstat(&node)?.st_mode) {
        // The caller holds one end of an anonymous pipe, so opening it does not block.
        FileType::Fifo if !processes.path_of(&node)?.starts_with(b"/") => {
            open_found(worker, pending, &node, flags)
        }
        FileType::RegularFile | FileType::Fifo
            if worker.broker.check_seen(&pending.caller, &node).is_err() =>
        {
            // A file that the command got as a descriptor, or that exists in memory only: it can be reopened for what
            // it is open for.
            if is_open_to_read {
                open_found(worker, pending, &node, flags)
            } else {
                Err(Errno::ACCESS.into())
            }
        }
        FileType::RegularFile
        | FileType::Fifo
        | FileType::Directory
        | FileType::Symlink
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Socket
        | FileType::Unknown => open_node(worker, pending, &node, flags),
    }
}

/// Creates a file that is opened for reading, such as a lock file.
fn make(
    worker: &Worker,
    pending: &PendingCall,
    (at, path): (PathArgument, &CStr),
    (flags, mode): (OFlags, Mode),
) -> CallResult {
    let broker = worker.broker;
    let PathTarget::Name(place) = broker.resolve(&pending.caller, at.directory, path, LastLink::Follow)?
    else {
        return Err(Errno::ACCESS.into());
    };
    if place.as_directory {
        return Err(Errno::ISDIR.into());
    }
    if broker.is_judged(&place.path) {
        worker.permit_plain(pending, Change::Write, &place)?;
    } else if !broker.is_free(&place.path) {
        return Err(Errno::ROFS.into());
    }
    permit_reading_of(worker, pending, &place.path)?;
    worker.take_mask_of(pending);
    worker.check_still_waiting(pending)?;
    let sure = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(&place.directory, &place.name, flags & COUNTING | sure, mode)?;
    give(broker, pending, file, flags)
}

/// Opens the caller's own terminal with `O_PATH`.
fn own_terminal(worker: &Worker, pending: &PendingCall) -> Result<OwnedFd, Errno> {
    let processes = &worker.broker.processes;
    let (major, minor) = processes.terminal(&pending.caller).ok_or(Errno::NXIO)?;
    let number = match major.checked_sub(TERMINALS) {
        Some(group @ 0..8) => group * 256 + minor,
        _ => return Err(Errno::NXIO),
    };
    let path = format!("dev/pts/{number}");
    openat(processes.root(&pending.caller)?, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}
