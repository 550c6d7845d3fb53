//! Executing programs, where rules over names say what is not read.
//!
//! Nobody can execute for somebody else, so the kernel carries the call out and looks the path up again, which may mean
//! another file by then. So the caller is stopped at the end of the call, before the new program runs, and what has
//! really been executed is looked at: the files that are mapped, the loader's among them. The interpreter of a script
//! opens the script by itself, which is judged like any other reading.

use portcullis_sys::notify::Answer;
use portcullis_sys::trace::{Seized, Stopped};
use rustix::fs::{AtFlags, FileType, fstat};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::super::calls::At;
use super::super::resolve::LastLink;
use super::super::resolve_for_read::Node;
use super::super::worker::{Attempt, Outcome, PendingCall, Stop, Worker};
use super::read::{names_of, permit_reading, permit_reading_of};

/// Lets a command execute a program if all that is read of it may be.
pub(crate) fn execute(worker: &Worker, pending: &PendingCall, at: At, flags: u32) -> Attempt {
    let broker = worker.broker;
    let path = match pending.path(at) {
        Ok(path) => path,
        // The init of a command, on its way to the command's first program: it is in the keeper's memory, where
        // nobody looks, and where nobody but the keeper has put the path.
        Err(Errno::ACCESS) if broker.processes.is_starting(&pending.caller) => {
            return Ok(Outcome::LEFT_TO_THE_KERNEL);
        }
        Err(error) => return Err(error.into()),
    };
    broker.processes.note_start(&pending.caller);
    let flags = AtFlags::from_bits_retain(flags);
    let last = if flags.contains(AtFlags::SYMLINK_NOFOLLOW) { LastLink::Keep } else { LastLink::Follow };
    // So that a refusal has the usual form; what counts comes below. What is not found the kernel does not find, or
    // it is looked at afterwards.
    match broker.find(&pending.caller, at.directory, &path, last) {
        Ok(Node::Found(node)) if FileType::from_raw_mode(fstat(&node)?.st_mode) == FileType::RegularFile => {
            permit_reading(worker, pending, &node)?;
        }
        // What is hidden, where no mount says so by itself.
        Err(Errno::ACCESS) if broker.places.is_some() => return Err(Errno::ACCESS.into()),
        Ok(_) | Err(_) => {}
    }
    let seized = Seized::seize(pending.call.thread).map_err(|_not_to_be_looked_at| Errno::ACCESS)?;
    // Whoever is seized here and waits no longer is somebody else: it stops and goes on, whatever is answered.
    drop(broker.listener.answer(pending.call.id, Answer::Continue));
    if let Ok(Some(stopped)) = seized.wait()
        && stopped.has_executed
        && judge(worker, pending, &stopped).is_err()
    {
        kill(&stopped);
    }
    Ok(Outcome::Done)
}

/// Judges the reading of all files that a new program consists of: by what is hidden, and by the rules.
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

/// The name of the file in a line of `/proc/PID/maps`, behind five fields and blanks.
fn mapped(line: &[u8]) -> Option<&[u8]> {
    let start = line.iter().position(|byte| *byte == b'/')?;
    let fields = line.get(..start)?.split(|byte| *byte == b' ').filter(|field| !field.is_empty()).count();
    (fields == 5).then(|| line.get(start..)).flatten()
}

fn kill(stopped: &Stopped) {
    if let Some(process) = Pid::from_raw(stopped.thread()) {
        // It cannot have gone: it is stopped.
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
