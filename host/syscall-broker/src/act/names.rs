//! Creating and removing single names.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;

use portcullis_exec_surface::Change;
use portcullis_sandbox::CallDetails;
use portcullis_sys::memory::read_exactly;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ftruncate, mkdirat, mknodat, symlinkat, unlinkat};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

use super::host_changes;
use super::locate::{Located, find};
use super::open::open_leased;
use super::reachable::permit_link;
use crate::displaced::{Departure, Displaced};
use crate::identity::identify;
use crate::judge::NameChange;
use crate::outcome::{CallResult, Outcome};
use crate::pending::PendingCall;
use crate::resolve::PathTarget;
use crate::resolved_name::{LastLink, ResolvedName, kind_of};
use crate::syscalls::PathArgument;
use crate::worker::Worker;

/// The size of the path in `struct sockaddr_un`, after two bytes with the address family.
const SOCKET_PATH_BYTES: usize = 108;
const FAMILY_BYTES: usize = 2;

pub(crate) fn make_directory(
    worker: &Worker,
    pending: &PendingCall,
    at: PathArgument,
    mode: u32,
) -> CallResult {
    let place = match find(worker, pending, at, LastLink::Keep)? {
        Located::Judged(place) => place,
        Located::Outside(place) => {
            return host_changes::make_directory(worker, pending, &place, Mode::from_raw_mode(mode & 0o7777));
        }
        Located::Elsewhere => return Ok(Outcome::LEFT_TO_THE_KERNEL),
    };
    worker.permit_plain(pending, Change::MakeDirectory, &place)?;
    worker.take_mask_of(pending);
    worker.check_still_waiting(pending)?;
    worker.record(pending, &place)?;
    mkdirat(&place.directory, place.given(), Mode::from_raw_mode(mode & 0o7777))?;
    note_made(worker, pending, &place);
    Ok(Outcome::SUCCESS)
}

/// Records a directory that was just made. In a user's place it counts as the user's from the beginning. This is
/// checked after the directory exists, and so after a previous file at this name was recorded and removed.
fn note_made(worker: &Worker, pending: &PendingCall, place: &ResolvedName) {
    let broker = worker.broker;
    let Ok(made) = identify(&place.directory, &place.name) else { return };
    if broker.known.cover(place, None) {
        return;
    }
    broker.known.note_made(made.clone());
    if let Some(command) = broker.processes.command(&pending.caller) {
        broker.known.note_own(command, made, |command| broker.processes.is_running(command));
    }
}

pub(crate) fn make_node(worker: &Worker, pending: &PendingCall, at: PathArgument, mode: u32) -> CallResult {
    let Located::Judged(place) = find(worker, pending, at, LastLink::Keep)? else {
        return Ok(Outcome::LEFT_TO_THE_KERNEL);
    };
    let kind = match mode & libc::S_IFMT {
        0 | libc::S_IFREG => FileType::RegularFile,
        libc::S_IFIFO => FileType::Fifo,
        libc::S_IFSOCK => FileType::Socket,
        // Only root may create device files.
        _ => return Err(Errno::PERM.into()),
    };
    let change = if kind == FileType::RegularFile { Change::Write } else { Change::Special };
    worker.permit_plain(pending, change, &place)?;
    worker.take_mask_of(pending);
    worker.check_still_waiting(pending)?;
    worker.record(pending, &place)?;
    mknodat(&place.directory, place.given(), kind, Mode::from_raw_mode(mode & 0o7777), 0)?;
    Ok(Outcome::SUCCESS)
}

pub(crate) fn make_link(worker: &Worker, pending: &PendingCall, target: u64, at: PathArgument) -> CallResult {
    let place = match find(worker, pending, at, LastLink::Keep)? {
        Located::Judged(place) => place,
        Located::Outside(place) => return host_changes::make_link(worker, &place, &pending.text(target)?),
        Located::Elsewhere => return Ok(Outcome::LEFT_TO_THE_KERNEL),
    };
    let target = pending.text(target)?;
    // The name is free, so the file that was there before has been recorded.
    if kind_of(place.directory.as_fd(), &place.name).is_ok() {
        return Err(Errno::EXIST.into());
    }
    let doing = NameChange::new(
        Change::Symlink,
        CallDetails::Symlink(OsStr::from_bytes(target.to_bytes()).to_owned()),
    );
    worker.permit_plain(pending, doing.clone(), &place)?;
    let reached = permit_link(worker, pending, &doing, &place)?;
    worker.check_still_waiting(pending)?;
    worker.record(pending, &place)?;
    worker.broker.known.add(&reached)?;
    symlinkat(&target, &place.directory, place.given())?;
    if let Ok(made) = identify(&place.directory, &place.name) {
        worker.broker.known.note_made(made);
    }
    Ok(Outcome::SUCCESS)
}

pub(crate) fn remove(worker: &Worker, pending: &PendingCall, at: PathArgument, flags: u32) -> CallResult {
    let flags = AtFlags::from_bits_retain(flags);
    let place = match find(worker, pending, at, LastLink::Keep)? {
        Located::Judged(place) => place,
        Located::Outside(place) => return host_changes::remove(worker, &place, flags),
        Located::Elsewhere => return Ok(Outcome::LEFT_TO_THE_KERNEL),
    };
    if worker.broker.is_pinned(&place.path) {
        return Err(Errno::BUSY.into());
    }
    worker.permit_plain(pending, Change::Remove, &place)?;
    worker.check_still_waiting(pending)?;
    let spared = worker.record_removal(pending, &place)?;
    let taken = Displaced::from(worker, &place)?;
    let removed = unlinkat(&place.directory, place.given(), flags);
    match removed {
        Ok(()) => {
            if let Some(spared) = spared {
                spared.removed();
            }
            taken.finish(worker.broker, Departure::Removed);
        }
        Err(_) => taken.undo(worker.broker),
    }
    removed?;
    if !flags.contains(AtFlags::REMOVEDIR) {
        worker.broker.note_removed(&place);
    }
    Ok(Outcome::SUCCESS)
}

pub(crate) fn truncate(worker: &Worker, pending: &PendingCall, at: PathArgument, length: u64) -> CallResult {
    let place = match find(worker, pending, at, LastLink::Follow)? {
        Located::Judged(place) => place,
        Located::Outside(place) => return host_changes::truncate(worker, &place, length),
        Located::Elsewhere => return Ok(Outcome::LEFT_TO_THE_KERNEL),
    };
    if place.as_directory {
        return Err(Errno::NOTDIR.into());
    }
    worker.permit_plain(pending, Change::Write, &place)?;
    worker.permit_shared(pending, &place)?;
    worker.check_still_waiting(pending)?;
    worker.record(pending, &place)?;
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open_leased(&place, flags, Mode::empty())?;
    // The kernel treats the number as a signed one.
    let length = u64::try_from(i64::from_ne_bytes(length.to_ne_bytes())).map_err(|_negative| Errno::INVAL)?;
    ftruncate(&file, length)?;
    Ok(Outcome::SUCCESS)
}

/// Binds a unix socket to its path; other sockets have no path.
pub(crate) fn bind(
    worker: &Worker,
    pending: &PendingCall,
    socket: i32,
    address: u64,
    length: u64,
) -> CallResult {
    let Some(path) = socket_path(pending, address, length)? else { return Ok(Outcome::LEFT_TO_THE_KERNEL) };
    let broker = worker.broker;
    let place = match broker.resolve(&pending.caller, libc::AT_FDCWD, &path, LastLink::Keep)? {
        PathTarget::Name(place) if broker.is_judged(&place.path) => place,
        PathTarget::Name(_) | PathTarget::Descriptor(_) | PathTarget::Elsewhere => {
            return Ok(Outcome::LEFT_TO_THE_KERNEL);
        }
    };
    worker.permit_plain(pending, Change::Special, &place)?;
    let own = broker.processes.descriptor(&pending.caller, socket)?;
    worker.take_mask_of(pending);
    worker.check_still_waiting(pending)?;
    worker.record(pending, &place)?;
    // The path leads through the descriptor of the judged directory; the address has no room for a longer path.
    let directory = format!("/proc/self/fd/{}/", place.directory.as_raw_fd());
    let path = [directory.as_bytes(), place.name.as_bytes()].concat();
    let address = SocketAddrUnix::new(OsStr::from_bytes(&path)).map_err(|_too_long| Errno::NAMETOOLONG)?;
    rustix::net::bind(&own, &address)?;
    broker.own_sockets.note(&place.directory, &place.name);
    Ok(Outcome::SUCCESS)
}

/// Returns the path in the address of a unix socket, or `None` if the socket gets no name in the file system.
fn socket_path(pending: &PendingCall, address: u64, length: u64) -> Result<Option<CString>, Errno> {
    let length = usize::try_from(length & u64::from(u32::MAX)).map_err(|_too_large| Errno::INVAL)?;
    if length <= FAMILY_BYTES || length > FAMILY_BYTES + SOCKET_PATH_BYTES {
        return Ok(None);
    }
    let mut bytes = vec![0; length];
    read_exactly(pending.call.thread, address, &mut bytes).map_err(|_unreadable| Errno::FAULT)?;
    let Some((family, path)) = bytes.split_at_checked(FAMILY_BYTES) else { return Ok(None) };
    let is_unix = family == u16::try_from(libc::AF_UNIX).unwrap_or_default().to_ne_bytes();
    let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
    if !is_unix || path.is_empty() {
        return Ok(None);
    }
    Ok(CString::new(path).ok())
}
