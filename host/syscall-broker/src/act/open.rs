//! Opening files for writing.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portcullis_exec_surface::git::Content;
use portcullis_exec_surface::{Change, Rule};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

use super::give::{give, only_reads, reads, writes};
use super::host_changes;
use super::open_for_read::open_to_read;
use super::pipes::wait_for_reader;
use super::read_permission::{permit_reading, permit_reading_of};
use super::terminals::{self, Terminal};
use crate::judge::{Allowed, ask};
use crate::outcome::{CallResult, Outcome, Stop};
use crate::pending::PendingCall;
use crate::resolve::PathTarget;
use crate::resolved_name::{LastLink, ResolvedName};
use crate::syscalls::PathArgument;
use crate::worker::Worker;

/// The number of attempts to open a name at which symbolic links keep appearing.
const ATTEMPTS: usize = 8;
/// How often, and after which pause, a file is opened again on which another call holds a lease.
const LEASE_TRIES: usize = 1_000;
const LEASE_PAUSE: Duration = Duration::from_millis(1);
/// The bits of `O_TMPFILE` without `O_DIRECTORY`.
const UNNAMED: OFlags = OFlags::TMPFILE.difference(OFlags::DIRECTORY);

/// Opens a file for a command; creates it if the flags say so.
pub(crate) fn open(
    worker: &Worker,
    pending: &PendingCall,
    at: PathArgument,
    flags: u32,
    mode: u32,
) -> CallResult {
    let flags = OFlags::from_bits_retain(flags);
    if flags.contains(OFlags::PATH) {
        return Ok(Outcome::LEFT_TO_THE_KERNEL);
    }
    let mode = Mode::from_raw_mode(mode & 0o7777);
    let path = pending.path(at)?;
    if flags.contains(UNNAMED) {
        return open_unnamed(worker, pending, at.directory, &path, (flags, mode));
    }
    if worker.broker.places.is_some()
        && writes(flags)
        && let Some(terminal) = Terminal::named(&path)
    {
        return terminals::open(worker, pending, terminal, flags);
    }
    if worker.broker.reads.are_judged() {
        worker.broker.processes.note_start(&pending.caller);
        if only_reads(flags) {
            return open_to_read(worker, pending, (at, &path), (flags, mode));
        }
    }
    let last = match flags.contains(OFlags::NOFOLLOW) || flags.contains(OFlags::CREATE | OFlags::EXCL) {
        true => LastLink::Keep,
        false => LastLink::Follow,
    };
    for _ in 0..ATTEMPTS {
        match worker.broker.resolve(&pending.caller, at.directory, &path, last)? {
            PathTarget::Descriptor(number) => return open_anew(worker, pending, number, flags),
            PathTarget::Name(place) if worker.broker.is_judged(&place.path) && !place.as_directory => {
                match open_name(worker, pending, place, (flags, mode)) {
                    // A link has appeared where there was none.
                    Err(Stop::Error(Errno::LOOP)) if last == LastLink::Follow => {}
                    attempt => return attempt,
                }
            }
            PathTarget::Name(place) if writes(flags) => {
                if reads(flags) {
                    permit_reading_of(worker, pending, &place.path)?;
                }
                return host_changes::open(worker, pending, &place, (flags, mode));
            }
            PathTarget::Name(_) | PathTarget::Elsewhere => return Ok(Outcome::LEFT_TO_THE_KERNEL),
        }
    }
    Err(Errno::LOOP.into())
}

fn open_name(
    worker: &Worker,
    pending: &PendingCall,
    place: ResolvedName,
    (flags, mode): (OFlags, Mode),
) -> CallResult {
    if reads(flags) {
        permit_reading_of(worker, pending, &place.path)?;
    }
    match worker.permit(pending, Change::Write, &place) {
        Ok(Allowed::Plain) => {}
        // The kernel lets the command read a file that exists; Landlock prevents it from creating one.
        Ok(_) | Err(Stop::Error(_) | Stop::Refused(_)) if !writes(flags) => {
            return Ok(Outcome::LEFT_TO_THE_KERNEL);
        }
        Ok(Allowed::ByContent(_, content)) if content.may_be_unseen() => {}
        Ok(Allowed::ByContent(rule, content))
            if is_pointer(content) || is_new_in_own(worker, pending, &place, (content, flags)) =>
        {
            return open_staged(worker, pending, place, (rule, content), (flags, mode));
        }
        // Git renames its other files into place; writing one in place leads to a question.
        Ok(Allowed::ByContent(rule, _)) => ask(pending, &Change::Write.into(), &place, rule.id)?,
        Ok(Allowed::Below) => return Err(Errno::ACCESS.into()),
        Err(stop) => return Err(stop),
    }
    // A file that this call itself creates has no other names.
    if writes(flags) && !flags.contains(OFlags::CREATE | OFlags::EXCL) {
        worker.permit_shared(pending, &place)?;
    }
    if flags.contains(OFlags::CREATE) {
        worker.take_mask_of(pending);
    }
    worker.check_still_waiting(pending)?;
    if writes(flags) || flags.contains(OFlags::CREATE) {
        worker.record(pending, &place)?;
    }
    // The flags keep this thread from blocking, and from following a link.
    let sure = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    match open_leased(&place, sure, mode) {
        Ok(file) => give(worker.broker, pending, file, flags),
        Err(Errno::NXIO) if !flags.contains(OFlags::NONBLOCK) => {
            wait_for_reader(worker, pending, &place, flags)
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens a file without waiting, except for a lease: another call holds one while it removes the file.
pub(super) fn open_leased(place: &ResolvedName, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    for _ in 0..LEASE_TRIES {
        match openat(&place.directory, &place.name, flags, mode) {
            Err(Errno::AGAIN) => std::thread::sleep(LEASE_PAUSE),
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

/// Whether git writes a file of this kind in place.
fn is_pointer(content: Content) -> bool {
    matches!(content, Content::GitFile | Content::CommonDirectory | Content::WayBack)
}

/// Whether the call creates such a file, or writes it anew, in a directory that its command has made: cargo writes the
/// settings of a new repository in place, and git the options of an operation that it begins.
fn is_new_in_own(
    worker: &Worker,
    pending: &PendingCall,
    place: &ResolvedName,
    (content, flags): (Content, OFlags),
) -> bool {
    let is_written_in_place = matches!(
        content,
        Content::Config | Content::ApplyOptions | Content::Strategy | Content::StrategyOptions
    );
    let is_anew = || {
        let exists = statat(&place.directory, &place.name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if exists { flags.contains(OFlags::TRUNC) } else { flags.contains(OFlags::CREATE) }
    };
    let broker = worker.broker;
    let is_own = || {
        let command = broker.processes.command(&pending.caller);
        command.is_some_and(|command| broker.known.holds(command, &place.directory, 0, None))
    };
    writes(flags) && is_written_in_place && is_anew() && is_own()
}

/// Creates a file without a name; the name that it gets later is judged then.
fn open_unnamed(
    worker: &Worker,
    pending: &PendingCall,
    directory: i32,
    path: &CStr,
    (flags, mode): (OFlags, Mode),
) -> CallResult {
    let Ok((holder, path)) = worker.broker.resolve_directory(&pending.caller, directory, path) else {
        return Ok(Outcome::LEFT_TO_THE_KERNEL);
    };
    if !worker.broker.judged.iter().any(|place| path.starts_with(place)) {
        return Ok(Outcome::LEFT_TO_THE_KERNEL);
    }
    worker.take_mask_of(pending);
    worker.check_still_waiting(pending)?;
    let sure = (flags - OFlags::NOFOLLOW) | OFlags::CLOEXEC;
    let file = worker.broker.processes.open_anew(&holder, sure, mode)?;
    give(worker.broker, pending, file, flags | OFlags::NONBLOCK)
}

/// Opens a file that is judged by its content, as a staged file.
fn open_staged(
    worker: &Worker,
    pending: &PendingCall,
    place: ResolvedName,
    (rule, content): (&'static Rule, Content),
    (flags, mode): (OFlags, Mode),
) -> CallResult {
    let exists = statat(&place.directory, &place.name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    match exists {
        true if flags.contains(OFlags::CREATE | OFlags::EXCL) => return Err(Errno::EXIST.into()),
        true if !flags.contains(OFlags::TRUNC) => return Err(Errno::ACCESS.into()),
        false if !flags.contains(OFlags::CREATE) => return Err(Errno::NOENT.into()),
        true | false => {}
    }
    let mask = worker.broker.processes.mask(&pending.caller);
    worker.check_still_waiting(pending)?;
    let mode = Mode::from_raw_mode(mode.as_raw_mode() & !mask);
    let file = worker.broker.stage(pending, place, (rule, content), (flags, mode))?;
    give(worker.broker, pending, file, flags | OFlags::NONBLOCK)
}

/// Judges a change of an open file by the current name of the file. If the name leads to another file, the names of the
/// open file are unknown, and the change is refused.
pub(super) fn permit_open(
    worker: &Worker,
    pending: &PendingCall,
    open: &OwnedFd,
    path: &Path,
) -> Result<(), Stop> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::ACCESS.into());
    };
    let directory = openat(CWD, parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let directory = directory.map_err(|_gone| Errno::ACCESS)?;
    let name = CString::new(name.as_bytes()).map_err(|_nul| Errno::INVAL)?;
    let there = statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(|_gone| Errno::ACCESS)?;
    let held = fstat(open)?;
    if (there.st_dev, there.st_ino) != (held.st_dev, held.st_ino) {
        return Err(Errno::ACCESS.into());
    }
    let place = ResolvedName { directory, name, path: path.to_owned(), as_directory: false };
    worker.permit_plain(pending, Change::Write, &place)?;
    worker.permit_shared(pending, &place)?;
    Ok(worker.record(pending, &place)?)
}

/// Reopens a file that the caller has open, under its current name.
fn open_anew(worker: &Worker, pending: &PendingCall, number: i32, flags: OFlags) -> CallResult {
    let Ok(open) = worker.broker.processes.open_link(&pending.caller, &format!("fd/{number}")) else {
        return Ok(Outcome::LEFT_TO_THE_KERNEL);
    };
    let status = fstat(&open)?;
    let path = PathBuf::from(OsStr::from_bytes(&worker.broker.processes.path_of(&open)?));
    // Pipes, terminals and files elsewhere: the kernel decides.
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile || !worker.broker.is_judged(&path) {
        return Ok(Outcome::LEFT_TO_THE_KERNEL);
    }
    if worker.broker.check_mount(&pending.caller, &open).is_err() {
        return Ok(Outcome::LEFT_TO_THE_KERNEL);
    }
    if reads(flags) {
        permit_reading(worker, pending, &open)?;
    }
    // A file without a name is subject to no rule over names.
    if status.st_nlink > 0 && writes(flags) {
        permit_open(worker, pending, &open, &path)?;
    }
    worker.check_still_waiting(pending)?;
    let made = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let sure = (flags - made) | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = worker.broker.processes.open_anew(&open, sure, Mode::empty())?;
    give(worker.broker, pending, file, flags | OFlags::NONBLOCK)
}
