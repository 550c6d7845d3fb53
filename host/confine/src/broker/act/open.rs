//! Opening files for writing.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use portcullis_exec_surface::Change;
use portcullis_exec_surface::git::Content;
use portcullis_sys::notify::Answer;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fcntl_setfl, fstat, openat, statat};
use rustix::io::Errno;

use super::super::Broker;
use super::super::calls::At;
use super::super::judge::{Allowed, ask};
use super::super::resolve::{Found, LastLink, Place};
use super::super::worker::{Attempt as Ending, Outcome, PendingCall, Stop, Worker, start};
use super::outside;
use super::read::{only_reads, open_to_read, permit_reading, permit_reading_of};
use super::terminals::{self, Terminal};

/// The number of attempts to open a name at which symbolic links keep appearing.
const ATTEMPTS: usize = 8;
/// The pause between two attempts to open a pipe without a reader.
const PIPE_PAUSE: Duration = Duration::from_millis(2);
/// The largest number of pipes that the broker waits for at the same time.
const PIPES: usize = 64;

/// The bits of `O_TMPFILE` without `O_DIRECTORY`.
const UNNAMED: OFlags = OFlags::TMPFILE.difference(OFlags::DIRECTORY);

/// Opens a file for a command; creates it if the flags say so.
pub(crate) fn open(worker: &Worker, pending: &PendingCall, at: At, flags: u32, mode: u32) -> Ending {
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
            Found::Descriptor(number) => return open_anew(worker, pending, number, flags),
            Found::Name(place) if worker.broker.is_judged(&place.path) && !place.as_directory => {
                match open_name(worker, pending, place, (flags, mode)) {
                    // A link has appeared where there was none.
                    Err(Stop::Error(Errno::LOOP)) if last == LastLink::Follow => {}
                    attempt => return attempt,
                }
            }
            Found::Name(place) if writes(flags) => {
                if reads(flags) {
                    permit_reading_of(worker, pending, &place.path)?;
                }
                return outside::open(worker, pending, &place, (flags, mode));
            }
            Found::Name(_) | Found::Elsewhere => return Ok(Outcome::LEFT_TO_THE_KERNEL),
        }
    }
    Err(Errno::LOOP.into())
}

fn reads(flags: OFlags) -> bool {
    flags & OFlags::RWMODE != OFlags::WRONLY
}

fn writes(flags: OFlags) -> bool {
    flags & OFlags::RWMODE != OFlags::RDONLY || flags.contains(OFlags::TRUNC)
}

fn open_name(worker: &Worker, pending: &PendingCall, place: Place, (flags, mode): (OFlags, Mode)) -> Ending {
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
        Ok(Allowed::ByContent(_, content)) if is_pointer(content) => {
            return open_staged(worker, pending, place, content, (flags, mode));
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
    // The flags keep this thread from blocking, and from following a link.
    let sure = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    match openat(&place.directory, &place.name, sure, mode) {
        Ok(file) => give(worker.broker, pending, file, flags),
        Err(Errno::NXIO) if !flags.contains(OFlags::NONBLOCK) => {
            wait_elsewhere(worker, pending, &place, flags)
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether git writes a file of this kind in place.
fn is_pointer(content: Content) -> bool {
    matches!(content, Content::GitFile | Content::CommonDirectory | Content::WayBack)
}

/// Passes a file to the caller, with the flags that it asked for.
pub(crate) fn give(broker: &Broker, pending: &PendingCall, file: OwnedFd, flags: OFlags) -> Ending {
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
    let is_executable = Mode::from_raw_mode(mode).intersects(Mode::XUSR | Mode::XGRP | Mode::XOTH);
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

/// Opens a pipe for writing once a process reads from it, as the kernel does. A separate thread polls, so that no other
/// call waits.
fn wait_elsewhere(worker: &Worker, pending: &PendingCall, place: &Place, flags: OFlags) -> Ending {
    let status = statat(&place.directory, &place.name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::Fifo {
        return Err(Errno::NXIO.into());
    }
    let broker = worker.broker;
    let pending = pending.clone();
    let directory = place.directory.try_clone().map_err(|_no_more| Errno::MFILE)?;
    let name = place.name.clone();
    let waiting = Waiting::begin().ok_or(Errno::AGAIN)?;
    let look = move || {
        let _waiting = waiting;
        // The name may mean another file by then, which was not judged: opening it must do no harm.
        let harmful = OFlags::CREATE | OFlags::TRUNC;
        let sure = (flags - harmful) | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = loop {
            std::thread::sleep(PIPE_PAUSE);
            if !pending.is_waiting(broker) {
                return;
            }
            match openat(&directory, &name, sure, Mode::empty()) {
                Err(Errno::NXIO) => {}
                opened => break opened.and_then(a_pipe),
            }
        };
        let given = opened.map_err(Stop::from).and_then(|file| give(broker, &pending, file, flags));
        if let Err(Stop::Error(error)) = given {
            // A caller that is gone needs no answer.
            drop(broker.listener.answer(pending.call.id, Answer::Error(error.raw_os_error())));
        }
    };
    start(look).map_err(|_no_thread| Errno::AGAIN)?;
    Ok(Outcome::Done)
}

/// Opens a pipe for reading once a process writes to it, as the kernel does. Only a blocking open can wait for that, so
/// each pipe has a thread of its own; a second thread ends the wait when the caller is gone.
pub(super) fn wait_for_writer(
    worker: &Worker,
    pending: &PendingCall,
    node: &OwnedFd,
    flags: OFlags,
) -> Ending {
    let broker = worker.broker;
    let pending = pending.clone();
    let node = Arc::new(node.try_clone().map_err(|_no_more| Errno::MFILE)?);
    let waiting = Waiting::begin().ok_or(Errno::AGAIN)?;
    let is_open = Arc::new(AtomicBool::new(false));
    let watch = {
        let (node, pending, is_open) = (Arc::clone(&node), pending.clone(), Arc::clone(&is_open));
        move || {
            while !is_open.load(Ordering::Acquire) {
                std::thread::sleep(PIPE_PAUSE);
                if !pending.is_waiting(broker) {
                    // Opens the pipe for writing for a moment without writing, which ends the blocking open.
                    let both = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
                    drop(broker.processes.open_anew(&*node, both, Mode::empty()));
                }
            }
        }
    };
    let open = move || {
        let _waiting = waiting;
        let opened = broker.processes.open_anew(&*node, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        is_open.store(true, Ordering::Release);
        let given = opened.map_err(Stop::from).and_then(|file| give(broker, &pending, file, flags));
        if let Err(Stop::Error(error)) = given {
            drop(broker.listener.answer(pending.call.id, Answer::Error(error.raw_os_error())));
        }
    };
    start(open).and_then(|()| start(watch)).map_err(|_no_thread| Errno::AGAIN)?;
    Ok(Outcome::Done)
}

fn a_pipe(file: OwnedFd) -> Result<OwnedFd, Errno> {
    let is_pipe = FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::Fifo;
    if is_pipe { Ok(file) } else { Err(Errno::NXIO) }
}

/// A pipe that the broker waits for; the value counts it until it is dropped.
struct Waiting;

static WAITING: AtomicUsize = AtomicUsize::new(0);

impl Waiting {
    fn begin() -> Option<Self> {
        let before = WAITING.fetch_add(1, Ordering::Relaxed);
        let waiting = Self;
        (before < PIPES).then_some(waiting)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Creates a file without a name; the name that it gets later is judged then.
fn open_unnamed(
    worker: &Worker,
    pending: &PendingCall,
    directory: i32,
    path: &std::ffi::CStr,
    (flags, mode): (OFlags, Mode),
) -> Ending {
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
    place: Place,
    content: Content,
    (flags, mode): (OFlags, Mode),
) -> Ending {
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
    let file = worker.broker.stage(place, content, (flags, mode))?;
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
    let place = Place { directory, name, path: path.to_owned(), as_directory: false };
    worker.permit_plain(pending, Change::Write, &place)?;
    worker.permit_shared(pending, &place)
}

/// Reopens a file that the caller has open, under its current name.
fn open_anew(worker: &Worker, pending: &PendingCall, number: i32, flags: OFlags) -> Ending {
    let Ok(open) = worker.broker.processes.open_link(&pending.caller, &format!("fd/{number}")) else {
        return Ok(Outcome::LEFT_TO_THE_KERNEL);
    };
    let status = fstat(&open)?;
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(&worker.broker.processes.path_of(&open)?));
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
