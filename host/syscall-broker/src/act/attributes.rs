//! Modes, times, attributes and owners of files.
//!
//! In a sandbox with mounts, read-only mounts protect them: changes by name are recorded and left to the kernel, except
//! those to a mode with the set-group-id bit. Landlock has no rights for them, so without mounts no such call is left
//! to the kernel, and the filter refuses changes of extended attributes.
//!
//! The file is looked up once and held by an `O_PATH` descriptor. Its path, as the kernel reports it, determines
//! whether commands may change files there, and the change applies to that very file.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use portcullis_sys::memory::read_exactly;
use rustix::fs::{AtFlags, FileType, Mode, Timespec, Timestamps, UTIME_NOW, chmodat, fstat, utimensat};
use rustix::io::Errno;

use super::give::EXECUTABLE;
use super::locate::{self, Located};
use crate::outcome::{CallResult, Outcome};
use crate::pending::PendingCall;
use crate::proc_paths::names_of;
use crate::resolve_for_read::FoundFile;
use crate::resolved_name::LastLink;
use crate::syscalls::{Target, Times};
use crate::worker::Worker;

/// The size of two `timespec` or `timeval` structs: two numbers of eight bytes each.
const TIMES_BYTES: usize = 32;
/// The size of a `utimbuf`, which has whole seconds.
const SECONDS_BYTES: usize = 16;

/// Changes the mode of a file. The filter has made sure that the mode has no set-user-id bit; the set-group-id bit is
/// permitted for directories, where it determines the group of new files.
///
/// A file that becomes executable must not be open for writing anywhere, or it cannot be executed at once. Another
/// thread of the broker may not yet have closed its own descriptor of a file that it has passed to a caller; it does so
/// before its call ends, so this one waits for the others.
pub(crate) fn change_mode(worker: &Worker, pending: &PendingCall, target: Target, mode: u32) -> CallResult {
    if Mode::from_raw_mode(mode).intersects(EXECUTABLE) {
        worker.must_be_alone()?;
    }
    let has_group_id = mode & Mode::SGID.as_raw_mode() != 0;
    // What the owner cannot read afterwards cannot be recorded before the next change.
    let is_readable = Mode::from_raw_mode(mode).contains(Mode::RUSR);
    record(worker, pending, target, if is_readable { Kept::Status } else { Kept::Content })?;
    if worker.broker.places.is_none() && !has_group_id {
        return Ok(Outcome::LEFT_TO_THE_KERNEL);
    }
    let file = find(worker, pending, target)?;
    let is_directory = FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::Directory;
    if has_group_id && !is_directory {
        return Err(Errno::PERM.into());
    }
    worker.check_still_waiting(pending)?;
    let (own, name) = (worker.broker.processes.own_descriptors(), file.as_raw_fd().to_string());
    // The link in procfs leads to this very file.
    chmodat(own, name, Mode::from_raw_mode(mode & 0o3777), AtFlags::empty())?;
    Ok(Outcome::SUCCESS)
}

/// Changes the extended attributes of a file by its name.
pub(crate) fn change_attributes(worker: &Worker, pending: &PendingCall, target: Target) -> CallResult {
    record(worker, pending, target, Kept::Attributes)?;
    Ok(Outcome::LEFT_TO_THE_KERNEL)
}

/// What is recorded of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// Mode, times and attributes.
    Status,
    /// The same, if the present attributes can be read.
    Attributes,
    /// The content as well.
    Content,
}

/// Records a name whose mode, times or attributes a call is about to change. What cannot be found is not changed by the
/// call either.
fn record(worker: &Worker, pending: &PendingCall, target: Target, kept: Kept) -> Result<(), Errno> {
    let (Target::Path { at, flags }, true) = (target, worker.broker.recording.is_some()) else {
        return Ok(());
    };
    let is_kept = AtFlags::from_bits_retain(flags).contains(AtFlags::SYMLINK_NOFOLLOW);
    let last = if is_kept { LastLink::Keep } else { LastLink::Follow };
    worker.check_still_waiting(pending)?;
    match locate::find(worker, pending, at, last) {
        Ok(Located::Judged(place)) => match kept {
            Kept::Status => worker.record_status(pending, &place),
            Kept::Attributes => worker.record_attributes(pending, &place),
            Kept::Content => worker.record(pending, &place),
        },
        Ok(Located::Outside(_) | Located::Elsewhere) | Err(_) => Ok(()),
    }
}

/// Accepts a call that leaves the owner of a file unchanged, which archivers and copying programs make; refuses all
/// others.
pub(crate) fn change_owner(
    worker: &Worker,
    pending: &PendingCall,
    target: Target,
    user: u32,
    group: u32,
) -> CallResult {
    let status = fstat(find(worker, pending, target)?)?;
    let stays = |wanted: u32, is: u32| wanted == u32::MAX || wanted == is;
    if stays(user, status.st_uid) && stays(group, status.st_gid) {
        return Ok(Outcome::SUCCESS);
    }
    Err(Errno::PERM.into())
}

/// Changes the times of a file.
pub(crate) fn change_times(
    worker: &Worker,
    pending: &PendingCall,
    target: Target,
    times: Times,
) -> CallResult {
    record(worker, pending, target, Kept::Status)?;
    if worker.broker.places.is_none() {
        return Ok(Outcome::LEFT_TO_THE_KERNEL);
    }
    let times = read_times(pending, times)?;
    let file = find(worker, pending, target)?;
    worker.check_still_waiting(pending)?;
    let (own, name) = (worker.broker.processes.own_descriptors(), file.as_raw_fd().to_string());
    utimensat(own, name, &times, AtFlags::empty())?;
    Ok(Outcome::SUCCESS)
}

/// Finds a file that commands may change.
fn find(worker: &Worker, pending: &PendingCall, target: Target) -> Result<OwnedFd, Errno> {
    let broker = worker.broker;
    let number = match target {
        Target::Descriptor(number) => number,
        Target::Path { at, flags } => {
            let flags = AtFlags::from_bits_retain(flags);
            let path = pending.path(at)?;
            let last =
                if flags.contains(AtFlags::SYMLINK_NOFOLLOW) { LastLink::Keep } else { LastLink::Follow };
            match path.is_empty() && flags.contains(AtFlags::EMPTY_PATH) {
                true => at.directory,
                false => match broker.find(&pending.caller, at.directory, &path, last)? {
                    FoundFile::PathTarget(file) => return permitted(worker, file),
                    FoundFile::Descriptor(number) => number,
                },
            }
        }
    };
    let file =
        broker.processes.open_link(&pending.caller, &format!("fd/{number}")).map_err(
            |error| match error {
                Errno::NOENT => Errno::BADF,
                error => error,
            },
        )?;
    permitted(worker, file)
}

fn permitted(worker: &Worker, file: OwnedFd) -> Result<OwnedFd, Errno> {
    // A file without a name is subject to no rule over names: it is in memory, a pipe, or was created without a name.
    if fstat(&file)?.st_nlink == 0 {
        return Ok(file);
    }
    let text = worker.broker.processes.path_of(&file)?;
    let is_pipe = !text.starts_with(b"/");
    let is_changed_here = |path: &Path| worker.broker.is_changeable(path);
    if is_pipe || names_of(&text).all(is_changed_here) { Ok(file) } else { Err(Errno::ROFS) }
}

fn read_times(pending: &PendingCall, times: Times) -> Result<Timestamps, Errno> {
    let read = |address: u64, bytes: &mut [u8]| {
        read_exactly(pending.call.thread, address, bytes).map_err(|_unreadable| Errno::FAULT)
    };
    let pair = |[seconds, rest, seconds_of_other, rest_of_other]: [i64; 4], factor: i64| {
        let time = |seconds, rest: i64| {
            let tv_nsec = rest.checked_mul(factor).ok_or(Errno::INVAL)?;
            Ok(Timespec { tv_sec: seconds, tv_nsec })
        };
        let last_access = time(seconds, rest)?;
        Ok(Timestamps { last_access, last_modification: time(seconds_of_other, rest_of_other)? })
    };
    match times {
        Times::Now => pair([0, UTIME_NOW, 0, UTIME_NOW], 1),
        Times::Nanoseconds(address) | Times::Microseconds(address) => {
            let mut bytes = [0; TIMES_BYTES];
            read(address, &mut bytes)?;
            let factor = if matches!(times, Times::Microseconds(_)) { 1000 } else { 1 };
            pair(numbers(&bytes), factor)
        }
        Times::Seconds(address) => {
            let mut bytes = [0; SECONDS_BYTES];
            read(address, &mut bytes)?;
            let [accessed, modified] = numbers(&bytes);
            pair([accessed, 0, modified, 0], 1)
        }
    }
}

/// Reads numbers of eight bytes.
fn numbers<const N: usize>(bytes: &[u8]) -> [i64; N] {
    let mut found = [0; N];
    for (number, bytes) in found.iter_mut().zip(bytes.chunks_exact(size_of::<i64>())) {
        *number = bytes.try_into().map(i64::from_ne_bytes).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_their_order() {
        let bytes = [7_i64.to_ne_bytes(), (-1_i64).to_ne_bytes()].concat();
        assert_eq!(numbers::<2>(&bytes), [7, -1]);
    }
}
