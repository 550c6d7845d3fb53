//! Renaming files and creating hard links.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use portcullis_exec_surface::Change;
use portcullis_exec_surface::git::Content;
use portcullis_sandbox::{CallDetails, Judgement};
use rustix::fs::{AtFlags, FileType, RenameFlags, fstat, linkat, readlinkat, renameat_with, statat};
use rustix::io::Errno;

use super::host_changes;
use super::open::permit_open;
use super::reachable::{is_users_place, permit_directory, permit_link, permit_surroundings, stands_users};
use super::read_permission::{permit_reading, permit_reading_of};
use super::relative_links::permit_leading;
use crate::displaced::{Departure, Displaced};
use crate::identity::Moving;
use crate::judge::{Allowed, NameChange};
use crate::outcome::{CallResult, Outcome, Stop};
use crate::pending::PendingCall;
use crate::repository::{LEVELS, for_each_name, read};
use crate::resolve::PathTarget;
use crate::resolved_name::{LastLink, ResolvedName, change_for, kind_of};
use crate::syscalls::PathArgument;
use crate::user_places::Reached;
use crate::worker::Worker;

/// The number of names that are examined in a moved directory, if its new path matters; one with more cannot be moved.
const LOOKED_AT: usize = 50_000;

/// Renames a file or directory; no other call changes names meanwhile.
pub(crate) fn rename(
    worker: &Worker,
    pending: &PendingCall,
    from: PathArgument,
    to: PathArgument,
    flags: u32,
) -> CallResult {
    let broker = worker.broker;
    let (old, new) = (pending.path(from)?, pending.path(to)?);
    let old = broker.resolve(&pending.caller, from.directory, &old, LastLink::Keep)?;
    let new = broker.resolve(&pending.caller, to.directory, &new, LastLink::Keep)?;
    let (PathTarget::Name(old), PathTarget::Name(new)) = (old, new) else {
        return Ok(Outcome::LEFT_TO_THE_KERNEL);
    };
    let flags = RenameFlags::from_bits_retain(flags);
    // Each place that commands may write has a mount of its own, so a rename from one to another fails in the kernel as
    // well.
    match (broker.is_judged(&old.path), broker.is_judged(&new.path)) {
        (true, true) => {}
        (false, false) => return host_changes::rename(worker, pending, (&old, &new), flags),
        (true, false) | (false, true) => return apart(worker),
    }
    if broker.is_pinned(&old.path) || broker.is_pinned(&new.path) {
        return Err(Errno::BUSY.into());
    }
    // The flag would create a device file.
    if flags.contains(RenameFlags::WHITEOUT) {
        return Err(Errno::INVAL.into());
    }
    // mv(1) tries this first: there must be no question about a rename that the kernel would refuse.
    if flags.contains(RenameFlags::NOREPLACE) {
        kind_of(old.directory.as_fd(), &old.name)?;
        if kind_of(new.directory.as_fd(), &new.name).is_ok() {
            return Err(Errno::EXIST.into());
        }
    }
    let kind = if flags.contains(RenameFlags::EXCHANGE) { Move::Exchange } else { Move::One };
    let mut reached = vec![permit_move(worker, pending, &old, &new, kind)?];
    if kind == Move::Exchange {
        reached.push(permit_move(worker, pending, &new, &old, kind)?);
    }
    worker.check_still_waiting(pending)?;
    let is_directory = kind_of(old.directory.as_fd(), &old.name) == Ok(FileType::Directory);
    let (from, to) = (Displaced::from(worker, &old)?, Displaced::from(worker, &new)?);
    let announced = worker.record_move(pending, (&old, &new), kind == Move::Exchange);
    let announced = match announced {
        Ok(announced) => announced,
        Err(error) => {
            from.undo(broker);
            to.undo(broker);
            return Err(error.into());
        }
    };
    // Recorded before the rename: if a user's place cannot be recorded, the rename must not happen.
    let told = reached.iter().try_for_each(|reached| broker.known.add(reached));
    let renamed =
        told.and_then(|()| renameat_with(&old.directory, old.given(), &new.directory, new.given(), flags));
    if let Err(error) = renamed {
        worker.record_no_move(announced);
        from.undo(broker);
        to.undo(broker);
        return Err(error.into());
    }
    announced.done();
    from.finish(broker, Departure::Moved);
    to.finish(broker, if kind == Move::Exchange { Departure::Moved } else { Departure::Removed });
    if !is_directory {
        broker.note_removed(&old);
    }
    Ok(Outcome::SUCCESS)
}

/// Different places are on different mounts, so the kernel returns `EXDEV`; without mounts the broker returns the same
/// error, and programs copy the file instead.
fn apart(worker: &Worker) -> CallResult {
    if worker.broker.places.is_some() { Err(Errno::XDEV.into()) } else { Ok(Outcome::LEFT_TO_THE_KERNEL) }
}

/// Judges giving the file at `old` the name `new`, and prepares the file for it if necessary. Returns the user's places
/// that the rename adds.
fn permit_move(
    worker: &Worker,
    pending: &PendingCall,
    old: &ResolvedName,
    new: &ResolvedName,
    kind: Move,
) -> Result<Reached, Stop> {
    let what = kind_of(old.directory.as_fd(), &old.name)?;
    permit_socket(worker, what, old)?;
    // The new name accepts neither links nor files with several names. A file from a place without that rule may be
    // either, so programs have to copy it.
    if worker.broker.names.is_plain(&new.path) && !worker.broker.names.is_plain(&old.path) {
        return Err(Errno::XDEV.into());
    }
    // Under its new name the file could be read.
    permit_reading_of(worker, pending, &old.path)?;
    let away =
        if what == FileType::Directory { CallDetails::MoveTo(new.path.clone()) } else { CallDetails::Plain };
    worker.permit_plain(pending, NameChange::new(Change::MoveAway, away), old)?;
    let doing = doing_for(what, old)?;
    let allowed = worker.permit(pending, doing.clone(), new)?;
    if let Allowed::ByContent(rule, content) = allowed {
        // If two files were exchanged, one would lose its name before it has that of the other.
        return match kind {
            Move::Exchange => Err(Errno::ACCESS.into()),
            Move::One => {
                worker.broker.install(pending, (rule, content), old, new).map(|()| Reached::default())
            }
        };
    }
    if what == FileType::Directory {
        move_directory(worker, pending, (old, new), &doing, &allowed)
    } else {
        permit_link(worker, pending, &doing, new)
    }
}

/// Refuses another name for a socket that no command here has bound: a program of the host may listen on it, and the
/// next sandbox hides it by its name.
fn permit_socket(worker: &Worker, kind: FileType, old: &ResolvedName) -> Result<(), Errno> {
    let is_foreign = kind == FileType::Socket && !worker.broker.own_sockets.holds(&old.directory, &old.name);
    if is_foreign { Err(Errno::PERM) } else { Ok(()) }
}

/// Judges the content of a directory that moves.
fn move_directory(
    worker: &Worker,
    pending: &PendingCall,
    (old, new): (&ResolvedName, &ResolvedName),
    doing: &NameChange,
    allowed: &Allowed,
) -> Result<Reached, Stop> {
    let links = permit_leading(worker, pending, old, new)?;
    worker.examine_part(old, new)?;
    let is_alike = || {
        worker.broker.names.is_alike_below(&old.path, &new.path)
            && !worker.leaves_free_place(pending, old, new)
    };
    let replaces = is_users_place(worker.broker, new);
    let mut moving = Moving::new(&old.directory, &old.name, new.directory.as_fd())?;
    moving.replaces = replaces;
    if *allowed == Allowed::Below || replaces || !is_alike() {
        let mut walk = Walk { worker, pending, moving: &moving, left: LOOKED_AT, levels_left: LEVELS };
        walk.below(old.directory.as_fd(), &old.name, (&old.path, &new.path))?;
    }
    let mut reached = if replaces {
        permit_directory(worker, pending, doing, (old, new), &moving)?
    } else if stands_users(worker.broker, old) {
        permit_surroundings(worker, pending, doing, new, (&moving, &links))?
    } else {
        Reached::default()
    };
    // A directory from a user's place no longer counts as a command's own, wherever it is.
    if worker.broker.known.cover(old, None) {
        reached.directories.push(moving.identity().clone());
    }
    Ok(reached)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    One,
    Exchange,
}

/// Returns the change that giving the file at `old` another name means.
fn doing_for(kind: FileType, old: &ResolvedName) -> Result<NameChange, Errno> {
    let deed = match kind {
        FileType::Symlink => {
            let target = readlinkat(&old.directory, &old.name, Vec::new())?;
            CallDetails::Symlink(OsStr::from_bytes(target.to_bytes()).to_owned())
        }
        FileType::Directory => CallDetails::MoveOf(old.path.clone()),
        FileType::RegularFile => CallDetails::Plain,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => CallDetails::Special,
    };
    Ok(NameChange::new(change_for(kind), deed))
}

/// A walk over the names below a moved directory, each of which gets another path.
struct Walk<'a> {
    worker: &'a Worker,
    pending: &'a PendingCall,
    moving: &'a Moving<'a>,
    left: usize,
    levels_left: usize,
}

impl Walk<'_> {
    fn below(&mut self, holder: BorrowedFd<'_>, name: &CStr, paths: (&Path, &Path)) -> Result<(), Stop> {
        self.levels_left = self.levels_left.checked_sub(1).ok_or(Errno::NAMETOOLONG)?;
        let mut stop = None;
        let walked = for_each_name(holder, name, |open, name| {
            self.name(open, name, paths).map_err(|why| {
                stop = Some(why);
                Errno::CANCELED
            })
        });
        self.levels_left += 1;
        match (stop, walked) {
            (Some(stop), _) => Err(stop),
            (None, walked) => Ok(walked?),
        }
    }

    fn name(&mut self, holder: BorrowedFd<'_>, name: &CStr, paths: (&Path, &Path)) -> Result<(), Stop> {
        self.left = self.left.checked_sub(1).ok_or(Errno::ACCESS)?;
        let component = OsStr::from_bytes(name.to_bytes());
        let place = |path: &Path| -> Result<ResolvedName, Errno> {
            let directory = rustix::io::dup(holder)?;
            Ok(ResolvedName {
                directory,
                name: name.to_owned(),
                path: path.join(component),
                as_directory: false,
            })
        };
        let (old, new) = (place(paths.0)?, place(paths.1)?);
        let kind = kind_of(holder, name)?;
        if self.worker.broker.names.judge(&old.path) != Judgement::Free {
            return Err(Errno::ACCESS.into());
        }
        permit_reading_of(self.worker, self.pending, &old.path)?;
        if kind == FileType::Directory {
            self.worker.plain(self.pending, &Change::MakeDirectory.into(), &new, Some(self.moving))?;
            return self.below(holder, name, (&old.path, &new.path));
        }
        match self.worker.permit_moving(self.pending, &doing_for(kind, &old)?, &new, Some(self.moving))? {
            Allowed::ByContent(_, content) => self.judge(content, &old, &new),
            Allowed::Plain | Allowed::Below => Ok(()),
        }
    }

    /// Judges a file by its content. If it is of the same kind in both places, it was judged when it was written, and
    /// [`permit_leading`] judges whether it leads elsewhere after the move.
    fn judge(&self, content: Content, old: &ResolvedName, new: &ResolvedName) -> Result<(), Stop> {
        let before = self.worker.permit(self.pending, Change::Install, old);
        if matches!(before, Ok(Allowed::ByContent(_, known)) if known == content) {
            return Ok(());
        }
        let broker = self.worker.broker;
        let text = read(old.directory.as_fd(), &old.name, content)?.ok_or(Errno::NOENT)?;
        if !broker.is_harmless(content, &new.path, (None, &text)) {
            return Err(Errno::ACCESS.into());
        }
        Ok(broker.replace_by_copy(old.directory.as_fd(), &old.name, &text)?)
    }
}

/// Creates a hard link. A process that may write one name of a file can write the file, so both names are judged.
pub(crate) fn link(
    worker: &Worker,
    pending: &PendingCall,
    from: PathArgument,
    to: PathArgument,
    flags: u32,
) -> CallResult {
    let broker = worker.broker;
    let (old, new) = (pending.path(from)?, pending.path(to)?);
    let flags = AtFlags::from_bits_retain(flags);
    let PathTarget::Name(new) = broker.resolve(&pending.caller, to.directory, &new, LastLink::Keep)? else {
        return Ok(Outcome::LEFT_TO_THE_KERNEL);
    };
    if !broker.is_judged(&new.path) {
        return match broker.resolve(&pending.caller, from.directory, &old, last_of(flags))? {
            PathTarget::Name(old) if !broker.is_judged(&old.path) => {
                host_changes::link(worker, pending, (&old, &new))
            }
            PathTarget::Name(_) => apart(worker),
            PathTarget::Descriptor(_) | PathTarget::Elsewhere => Ok(Outcome::LEFT_TO_THE_KERNEL),
        };
    }
    if old.is_empty() && flags.contains(AtFlags::EMPTY_PATH) {
        return link_open(worker, pending, from.directory, &new);
    }
    let last = last_of(flags);
    match broker.resolve(&pending.caller, from.directory, &old, last)? {
        PathTarget::Descriptor(number) if last == LastLink::Follow => {
            link_open(worker, pending, number, &new)
        }
        PathTarget::Descriptor(_) | PathTarget::Elsewhere => Ok(Outcome::LEFT_TO_THE_KERNEL),
        PathTarget::Name(old) if !broker.is_judged(&old.path) => apart(worker),
        PathTarget::Name(old) => {
            let status = statat(&old.directory, &old.name, AtFlags::SYMLINK_NOFOLLOW)?;
            let kind = FileType::from_raw_mode(status.st_mode);
            // No other call may be about to write through the new name after finding another file there; and between
            // the check of a link's place and its creation, the file there must not be removed.
            if status.st_nlink > 1 || kind == FileType::Symlink {
                worker.must_be_alone()?;
            }
            permit_socket(worker, kind, &old)?;
            permit_reading_of(worker, pending, &old.path)?;
            let source = NameChange::new(Change::Link, CallDetails::LinkTo(new.path.clone()));
            worker.permit_plain(pending, source, &old)?;
            let mut doing = doing_for(kind, &old)?;
            if kind == FileType::RegularFile {
                doing.deed = CallDetails::LinkOf(old.path.clone());
            }
            match worker.permit(pending, doing.clone(), &new)? {
                Allowed::Plain => {}
                Allowed::ByContent(rule, content) => {
                    return worker.copy_in_place_of_link(pending, (rule, content), (&old, &new));
                }
                Allowed::Below => return Err(Errno::ACCESS.into()),
            }
            let reached = permit_link(worker, pending, &doing, &new)?;
            worker.check_still_waiting(pending)?;
            broker.known.add(&reached)?;
            // What is changed by the new name is changed by the old.
            worker.record(pending, &old)?;
            worker.record(pending, &new)?;
            linkat(&old.directory, &old.name, &new.directory, new.given(), AtFlags::empty())?;
            broker.linked.note(&new.directory, &new.name, status.st_nlink);
            Ok(Outcome::SUCCESS)
        }
    }
}

fn last_of(flags: AtFlags) -> LastLink {
    if flags.contains(AtFlags::SYMLINK_FOLLOW) { LastLink::Follow } else { LastLink::Keep }
}

/// Gives a name to a file that the caller has open.
fn link_open(worker: &Worker, pending: &PendingCall, number: i32, new: &ResolvedName) -> CallResult {
    let broker = worker.broker;
    let own = broker.processes.descriptor(&pending.caller, number)?;
    let status = fstat(&own)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(Errno::PERM.into());
    }
    let mut doing = NameChange::from(Change::Install);
    if status.st_nlink > 0 {
        worker.must_be_alone()?;
        let path = PathBuf::from(OsStr::from_bytes(&broker.processes.path_of(&own)?));
        if !broker.is_judged(&path) {
            return Err(Errno::ACCESS.into());
        }
        permit_open(worker, pending, &own, &path)?;
        doing.deed = CallDetails::LinkOf(path);
    }
    permit_reading(worker, pending, &own)?;
    worker.permit_plain(pending, doing, new)?;
    worker.check_still_waiting(pending)?;
    worker.record(pending, new)?;
    let number = CString::new(own.as_raw_fd().to_string()).map_err(|_nul| Errno::INVAL)?;
    let follow = AtFlags::SYMLINK_FOLLOW;
    linkat(broker.processes.own_descriptors(), &number, &new.directory, new.given(), follow)?;
    broker.linked.note(&new.directory, &new.name, status.st_nlink);
    Ok(Outcome::SUCCESS)
}
