//! Pseudo-terminals for sandboxes without mounts, which have no `/dev/pts` of their own: a command gets new terminals
//! of the machine's, and the other ends of those only.
//!
//! The kernel reuses numbers in `/dev/pts` as soon as they are free, so a name there identifies no terminal. A process
//! that opens such a name gets the other end of a terminal with that number that a process of the same command has
//! open, obtained through that very descriptor. No process of the command has a terminal of the user or of another
//! command open.

use std::ffi::CStr;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};

use portcullis_sys::terminal::{number, other_end};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use super::give::give;
use crate::outcome::CallResult;
use crate::pending::PendingCall;
use crate::worker::Worker;

/// The paths that programs open to get a new terminal.
const NEW: [&[u8]; 2] = [b"/dev/ptmx", b"/dev/pts/ptmx"];
/// The directory of the other ends.
const OTHERS: &[u8] = b"/dev/pts/";
/// The file with the largest number of terminals on the machine.
const MOST: &str = "/proc/sys/kernel/pty/max";

/// A terminal, as the path in a call names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Terminal {
    New,
    /// The other end of the terminal with this number.
    Other(u32),
}

impl Terminal {
    /// Returns the terminal that a path names, or `None` for every other path.
    pub(super) fn named(path: &CStr) -> Option<Self> {
        let path = path.to_bytes();
        if NEW.contains(&path) {
            return Some(Self::New);
        }
        let digits = path.strip_prefix(OTHERS).filter(|rest| rest.iter().all(u8::is_ascii_digit))?;
        std::str::from_utf8(digits).ok()?.parse().ok().map(Self::Other)
    }
}

/// Opens a terminal for a command. It does not become the controlling terminal of the caller; programs request that
/// separately.
pub(super) fn open(worker: &Worker, pending: &PendingCall, terminal: Terminal, flags: OFlags) -> CallResult {
    let sure = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | flags & OFlags::NONBLOCK;
    let opened = match terminal {
        Terminal::New => new(sure)?,
        Terminal::Other(wanted) => other(worker, pending, wanted, sure)?,
    };
    worker.check_still_waiting(pending)?;
    give(worker.broker, pending, opened, flags)
}

/// Opens a new terminal, unless half of all numbers are in use: the kernel assigns the lowest free number, and the rest
/// remains for the user.
fn new(flags: OFlags) -> Result<OwnedFd, Errno> {
    let most = fs::read_to_string(MOST).ok().and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(0);
    let opened = openat(CWD, "/dev/ptmx", flags, Mode::empty())?;
    let number = number(opened.as_fd()).map_err(|_no_terminal| Errno::NOTTY)?;
    if number < most / 2 { Ok(opened) } else { Err(Errno::NOSPC) }
}

fn other(worker: &Worker, pending: &PendingCall, wanted: u32, flags: OFlags) -> Result<OwnedFd, Errno> {
    let processes = &worker.broker.processes;
    let found = processes.find_descriptor(&pending.caller, &|link| NEW.contains(&link), &|copy| {
        number(copy.as_fd()).is_ok_and(|number| number == wanted)
    });
    let found = found.ok_or(Errno::ACCESS)?;
    other_end(found.as_fd(), flags.bits().cast_signed())
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_have_two_kinds_of_names() {
        for (path, terminal) in [
            (c"/dev/ptmx", Some(Terminal::New)),
            (c"/dev/pts/ptmx", Some(Terminal::New)),
            (c"/dev/pts/7", Some(Terminal::Other(7))),
            (c"/dev/pts/", None),
            (c"/dev/pts/7/../8", None),
            (c"/dev/pts/99999999999", None),
            (c"/dev/pts/-1", None),
            (c"/dev/tty", None),
            (c"dev/pts/7", None),
        ] {
            assert_eq!(Terminal::named(path), terminal, "{path:?}");
        }
    }
}
