//! Changes outside the writable places that only a read-only mount prevents (without mounts, only Landlock, which does
//! not bind the broker).
//!
//! After the user has allowed one, the host carries it out in its own view: the broker sees the same read-only mounts
//! as commands. The kernel checks owners and modes first, so a change that would fail anyway is no question.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;

use portcullis_sandbox::{Access as Reach, CallDetails, Judgement, NameAccess};
use rustix::fs::{
    Access, AtFlags, FileType, Mode, OFlags, RenameFlags, StatxFlags, accessat, fstat, statat, statx,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::approval::Question;
use crate::judge::{NameChange, ask};
use crate::outcome::{CallResult, Outcome, Stop};
use crate::pending::PendingCall;
use crate::resolved_name::ResolvedName;
use crate::wire::questions::Outside;
use crate::worker::Worker;

/// Passes opening a file for writing to the host, which decides and asks the user.
pub(super) fn open(
    worker: &Worker,
    pending: &PendingCall,
    place: &ResolvedName,
    (flags, mode): (OFlags, Mode),
) -> CallResult {
    let is_blocked = match kind_of(place) {
        Ok(FileType::RegularFile) if !place.as_directory => file_is_blocked(worker, place),
        Err(Errno::NOENT) if flags.contains(OFlags::CREATE) && !place.as_directory => {
            holder_is_blocked(worker, place)
        }
        Ok(_) | Err(_) => false,
    };
    let outside = || Outside::Open { flags: flags.bits(), mode: masked(worker, pending, mode) };
    ask_if(is_blocked, worker, (NameAccess::Write, CallDetails::Plain, place), outside)
}

pub(super) fn truncate(worker: &Worker, place: &ResolvedName, length: u64) -> CallResult {
    let is_file = kind_of(place) == Ok(FileType::RegularFile) && !place.as_directory;
    let is_blocked = is_file && file_is_blocked(worker, place);
    ask_if(is_blocked, worker, (NameAccess::Write, CallDetails::Plain, place), || Outside::Truncate {
        length,
    })
}

pub(super) fn make_directory(
    worker: &Worker,
    pending: &PendingCall,
    place: &ResolvedName,
    mode: Mode,
) -> CallResult {
    let is_blocked = kind_of(place) == Err(Errno::NOENT) && holder_is_blocked(worker, place);
    let outside = || Outside::MakeDirectory { mode: masked(worker, pending, mode) };
    ask_if(is_blocked, worker, (NameAccess::MakeDirectory, CallDetails::Plain, place), outside)
}

pub(super) fn make_link(worker: &Worker, place: &ResolvedName, target: &CStr) -> CallResult {
    let is_blocked =
        kind_of(place) == Err(Errno::NOENT) && !place.as_directory && holder_is_blocked(worker, place);
    let target = OsStr::from_bytes(target.to_bytes()).to_owned();
    let deed = CallDetails::Symlink(target.clone());
    ask_if(is_blocked, worker, (NameAccess::Write, deed, place), || Outside::MakeLink { target })
}

pub(super) fn remove(worker: &Worker, place: &ResolvedName, flags: AtFlags) -> CallResult {
    let is_directory = flags.contains(AtFlags::REMOVEDIR);
    let fits = kind_of(place).is_ok_and(|kind| (kind == FileType::Directory) == is_directory);
    let is_blocked = fits && may_be_taken(place) && holder_is_blocked(worker, place);
    ask_if(is_blocked, worker, (NameAccess::Remove, CallDetails::Plain, place), || Outside::Remove {
        is_directory,
    })
}

/// Renames a file: the old name is removed and the new one is written, with a question for each; there is only one
/// question if both are in the same directory.
pub(super) fn rename(
    worker: &Worker,
    pending: &PendingCall,
    (old, new): (&ResolvedName, &ResolvedName),
    flags: RenameFlags,
) -> CallResult {
    let is_plain = flags.difference(RenameFlags::NOREPLACE).is_empty();
    let replaces = kind_of(new);
    let fits = match &replaces {
        Ok(_) => !flags.contains(RenameFlags::NOREPLACE) && may_be_taken(new),
        Err(error) => *error == Errno::NOENT,
    };
    let is_there = kind_of(old).is_ok() && may_be_taken(old);
    let is_blocked = is_there
        && is_plain
        && fits
        && is_on_one_mount(old, new)
        && holder_is_blocked(worker, old)
        && holder_is_blocked(worker, new);
    if !is_blocked || [old, new].iter().any(|place| !is_asked(worker, place)) {
        return Ok(Outcome::LEFT_TO_THE_KERNEL);
    }
    let away =
        NameChange::new(portcullis_exec_surface::Change::MoveAway, CallDetails::MoveTo(new.path.clone()));
    ask(pending, &away, old, "")?;
    let outside = || Outside::Move { from: old.path.clone(), replaces: replaces.is_ok() };
    ask_if(true, worker, (NameAccess::Write, CallDetails::MoveOf(old.path.clone()), new), outside)
}

/// Gives a file another name (hard link).
pub(super) fn link(
    worker: &Worker,
    pending: &PendingCall,
    (old, new): (&ResolvedName, &ResolvedName),
) -> CallResult {
    let is_blocked = kind_of(old) == Ok(FileType::RegularFile)
        && kind_of(new) == Err(Errno::NOENT)
        && is_on_one_mount(old, new)
        && holder_is_blocked(worker, new);
    if !is_blocked || [old, new].iter().any(|place| !is_asked(worker, place)) {
        return Ok(Outcome::LEFT_TO_THE_KERNEL);
    }
    // A process that may write one name of a file can write the file.
    let source =
        NameChange::new(portcullis_exec_surface::Change::Link, CallDetails::LinkTo(new.path.clone()));
    ask(pending, &source, old, "")?;
    let deed = CallDetails::LinkOf(old.path.clone());
    ask_if(true, worker, (NameAccess::Write, deed, new), || Outside::Link { from: old.path.clone() })
}

fn ask_if(
    is_blocked: bool,
    worker: &Worker,
    (attempt, deed, place): (NameAccess, CallDetails, &ResolvedName),
    outside: impl FnOnce() -> Outside,
) -> CallResult {
    if !is_blocked || !is_asked(worker, place) {
        return Ok(Outcome::LEFT_TO_THE_KERNEL);
    }
    let (path, outside) = (place.path.clone(), Some(outside()));
    Err(Stop::Ask(Box::new(Question {
        attempt,
        deed,
        path,
        rule: "",
        content: None,
        reachable: None,
        outside,
    })))
}

/// Returns true if the host decides about a name outside the places in which names are judged.
///
/// The top of a writable place is such a name: rules allow changing it, but it lies in a directory that commands do not
/// write, and a mount point cannot be replaced, renamed or removed in the sandbox.
fn is_asked(worker: &Worker, place: &ResolvedName) -> bool {
    match worker.broker.names.judge(&place.path) {
        Judgement::Asked => true,
        Judgement::Free => {
            !worker.broker.holds_workspace(&place.path) && !worker.broker.is_masked(&place.path)
        }
        Judgement::Refused => false,
    }
}

fn kind_of(place: &ResolvedName) -> Result<FileType, Errno> {
    let status = statat(&place.directory, &place.name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(status.st_mode))
}

/// Whether only the mount prevents creating and removing names in the directory.
fn holder_is_blocked(worker: &Worker, place: &ResolvedName) -> bool {
    let access = Access::WRITE_OK | Access::EXEC_OK;
    is_blocked(worker, place, accessat(&place.directory, c".", access, AtFlags::EACCESS))
}

/// Whether only the mount prevents writing the file.
fn file_is_blocked(worker: &Worker, place: &ResolvedName) -> bool {
    let access = accessat(&place.directory, &place.name, Access::WRITE_OK, AtFlags::EACCESS);
    is_blocked(worker, place, access)
}

/// Whether only the mount is the obstacle, given the result of the access check. Without mounts the kernel lets the
/// broker do everything that owners and modes permit, so the place decides.
fn is_blocked(worker: &Worker, place: &ResolvedName, access: Result<(), Errno>) -> bool {
    match &worker.broker.places {
        None => access == Err(Errno::ROFS),
        // A hidden file must not become visible through a question.
        Some(places) => access.is_ok() && places.access(&place.path) == Reach::ReadOnly,
    }
}

/// Whether the name may be removed: in a directory with the sticky bit, only the owners of the file and of the
/// directory may.
fn may_be_taken(place: &ResolvedName) -> bool {
    let (Ok(holder), Ok(file)) =
        (fstat(&place.directory), statat(&place.directory, &place.name, AtFlags::SYMLINK_NOFOLLOW))
    else {
        return false;
    };
    let own = geteuid().as_raw();
    holder.st_mode & libc::S_ISVTX == 0 || holder.st_uid == own || file.st_uid == own
}

fn is_on_one_mount(old: &ResolvedName, new: &ResolvedName) -> bool {
    let mount = |place: &ResolvedName| {
        let status = statx(&place.directory, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID);
        status.ok().map(|status| status.stx_mnt_id)
    };
    mount(old).is_some_and(|one| mount(new) == Some(one))
}

fn masked(worker: &Worker, pending: &PendingCall, mode: Mode) -> u32 {
    mode.as_raw_mode() & !worker.broker.processes.mask(&pending.caller)
}
