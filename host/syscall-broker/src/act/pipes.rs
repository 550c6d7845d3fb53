//! Opening named pipes, which waits for the other end. Separate threads wait, so that no other call does.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use portcullis_sys::notify::SyscallAnswer;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

use super::give::give;
use crate::outcome::{CallResult, Outcome, Stop};
use crate::pending::PendingCall;
use crate::resolved_name::ResolvedName;
use crate::threads::start;
use crate::worker::Worker;

/// The pause between two attempts to open a pipe without a reader.
const PIPE_PAUSE: Duration = Duration::from_millis(2);
/// The largest number of pipes that the broker waits for at the same time.
const PIPES: usize = 64;

/// Opens a pipe for writing once a process reads from it, as the kernel does. A separate thread polls, so that no other
/// call waits.
pub(super) fn wait_for_reader(
    worker: &Worker,
    pending: &PendingCall,
    place: &ResolvedName,
    flags: OFlags,
) -> CallResult {
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
            if !pending.is_waiting(&broker.listener) {
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
            drop(broker.listener.answer(pending.call.id, SyscallAnswer::Error(error.raw_os_error())));
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
) -> CallResult {
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
                if !pending.is_waiting(&broker.listener) {
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
            drop(broker.listener.answer(pending.call.id, SyscallAnswer::Error(error.raw_os_error())));
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
