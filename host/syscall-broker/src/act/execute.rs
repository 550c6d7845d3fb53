//! Executing programs, if rules over names hide files from reading.
//!
//! A process cannot execute a program for another one, so the kernel executes the call and looks the path up again,
//! which may mean another file by then. So the caller is stopped at the end of the call, before the new program runs,
//! and the files that it has mapped are judged, including the dynamic loader. The interpreter of a script opens the
//! script itself, which is judged like any other reading.

use portcullis_sys::notify::SyscallAnswer;
use portcullis_sys::trace::{Seized, Stopped};
use rustix::fs::{AtFlags, FileType, fstat};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::read_permission::{permit_reading, permit_reading_of};
use crate::outcome::{CallResult, Outcome, Stop};
use crate::pending::PendingCall;
use crate::proc_paths::names_of;
use crate::resolve_for_read::FoundFile;
use crate::resolved_name::LastLink;
use crate::syscalls::PathArgument;
use crate::worker::Worker;

/// Lets a command execute a program if every file that this reads may be read.
pub(crate) fn execute(worker: &Worker, pending: &PendingCall, at: PathArgument, flags: u32) -> CallResult {
    let broker = worker.broker;
    let path = match pending.path(at) {
        Ok(path) => path,
        // The init process of a command, about to execute the command's first program: the path is in the keeper's
        // memory, which the broker may not read, and which only the keeper could have written.
        Err(Errno::ACCESS) if broker.processes.is_starting(&pending.caller) => {
            return Ok(Outcome::LEFT_TO_THE_KERNEL);
        }
        Err(error) => return Err(error.into()),
    };
    broker.processes.note_start(&pending.caller);
    let flags = AtFlags::from_bits_retain(flags);
    let last = if flags.contains(AtFlags::SYMLINK_NOFOLLOW) { LastLink::Keep } else { LastLink::Follow };
    // This check gives a refusal its usual form; the check below is the one that protects. A file that is not found
    // here is not found by the kernel either, or it is judged afterwards.
    match broker.find(&pending.caller, at.directory, &path, last) {
        Ok(FoundFile::PathTarget(node))
            if FileType::from_raw_mode(fstat(&node)?.st_mode) == FileType::RegularFile =>
        {
            permit_reading(worker, pending, &node)?;
        }
        // A hidden file, in a sandbox without mounts that would hide it.
        Err(Errno::ACCESS) if broker.places.is_some() => return Err(Errno::ACCESS.into()),
        Ok(_) | Err(_) => {}
    }
    let seized = Seized::seize(pending.call.thread).map_err(|_not_to_be_looked_at| Errno::ACCESS)?;
    // If the seized thread no longer waits in this call, its number has been reused: it then stops and continues,
    // whatever the answer is.
    drop(broker.listener.answer(pending.call.id, SyscallAnswer::Continue));
    if let Ok(Some(stopped)) = seized.wait()
        && stopped.has_executed
        && judge(worker, pending, &stopped).is_err()
    {
        kill(&stopped);
    }
    Ok(Outcome::Done)
}

/// Judges reading each file of a new program, by the hidden paths and by the rules.
fn judge(worker: &Worker, pending: &PendingCall, stopped: &Stopped) -> Result<(), Stop> {
    let (broker, processes) = (worker.broker, &worker.broker.processes);
    if broker.is_kept_back(&processes.program(stopped.thread())?)? {
        return Err(Errno::ACCESS.into());
    }
    let maps = processes.maps(stopped.thread()).ok_or(Errno::ACCESS)?;
    let mut seen: &[u8] = b"";
    for line in maps.split(|byte| *byte == b'\n') {
        let Some(text) = mapped(line) else { continue };
        if text != seen {
            if names_of(text).any(|path| broker.is_hidden(&pending.caller, path)) {
                return Err(Errno::ACCESS.into());
            }
            names_of(text).try_for_each(|path| permit_reading_of(worker, pending, path))?;
            seen = text;
        }
    }
    Ok(())
}

/// Returns the path of the file in a line of `/proc/PID/maps`, after five fields and spaces.
fn mapped(line: &[u8]) -> Option<&[u8]> {
    let start = line.iter().position(|byte| *byte == b'/')?;
    let fields = line.get(..start)?.split(|byte| *byte == b' ').filter(|field| !field.is_empty()).count();
    (fields == 5).then(|| line.get(start..)).flatten()
}

fn kill(stopped: &Stopped) {
    if let Some(process) = Pid::from_raw(stopped.thread()) {
        // The process still exists, because it is stopped.
        let _ = kill_process(process, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_in_maps() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(mapped(line.as_bytes()), expected.map(str::as_bytes), "{line}");
        };
        check("55d0-55d1 r--p 00000000 08:01 131 /usr/bin/a b", Some("/usr/bin/a b"));
        check("55d0-55d1 r--p 00000000 08:01 131     /a (deleted)", Some("/a (deleted)"));
        check("7ffd-7fff rw-p 00000000 00:00 0 [stack]", None);
        check("7ffd-7fff rw-p 00000000 00:00 0", None);
    }
}
