//! The host's end of the line on which its broker tells of calls that wait.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;

use crate::held::{Answer, Held};
use crate::link::Link;
use crate::transport;
use crate::wire::asks::{Answered, Asked, Ending};

/// Passes waiting calls on to those who wait for their commands, until the broker has gone.
pub(crate) fn hear(link: &Link, socket: OwnedFd) {
    let socket = Arc::new(socket);
    while let Ok(Some(message)) = transport::receive(&*socket) {
        let Ok(asked) = Asked::decode(&message.bytes) else { return };
        let (command, attempt) = (asked.command, asked.attempt);
        let (path, rule, reason) = (asked.path.clone(), asked.rule.clone(), asked.reason.clone());
        let line = Arc::clone(&socket);
        // When the broker has gone there is nobody to be told.
        let answer = Box::new(move |answer| drop(tell(&line, &asked, answer)));
        link.hold(command, Held { attempt, path, rule, reason, answer: Some(answer) });
    }
}

fn tell(socket: &OwnedFd, asked: &Asked, answer: Answer) -> io::Result<()> {
    let answered = |ending| Answered { id: asked.id, ending }.encode();
    match (answer, asked.outside) {
        (Answer::Refuse, _) => transport::send(socket, &answered(Ending::Refused), &[]),
        (Answer::GoOn, None) => transport::send(socket, &answered(Ending::GoesOn), &[]),
        (Answer::GoOn, Some((flags, mode))) => match open(&asked.path, flags, mode) {
            Ok(file) => transport::send(socket, &answered(Ending::File), &[file.as_fd()]),
            Err(error) => transport::send(socket, &answered(Ending::Failed(error.raw_os_error())), &[]),
        },
    }
}

/// Opens a file in the host's own view, by the very name that was asked about.
fn open(path: &Path, flags: u32, mode: u32) -> Result<OwnedFd, Errno> {
    let wanted = OFlags::RWMODE | OFlags::CREATE | OFlags::EXCL | OFlags::TRUNC | OFlags::APPEND;
    let sure = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let flags = OFlags::from_bits_retain(flags) & wanted | sure;
    let mode = if flags.contains(OFlags::CREATE) { mode & 0o777 } else { 0 };
    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(CWD, path, flags, Mode::from_raw_mode(mode), no_links)?;
    // What is there must be what the user has said yes to: a file.
    let is_file = FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::RegularFile;
    if is_file { Ok(file) } else { Err(Errno::ACCESS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_are_opened_and_by_no_other_name() {
        let place = tempfile::tempdir().expect("a directory");
        let place = place.path().canonicalize().expect("a path");
        let create = (OFlags::CREATE | OFlags::WRONLY).bits();
        open(&place.join("new"), create, 0o600).expect("made");
        std::os::unix::fs::symlink("new", place.join("link")).expect("a link");
        assert_eq!(open(&place.join("link"), OFlags::WRONLY.bits(), 0).err(), Some(Errno::LOOP));
        std::os::unix::fs::symlink(".", place.join("here")).expect("a link");
        assert_eq!(open(&place.join("here/new"), OFlags::WRONLY.bits(), 0).err(), Some(Errno::LOOP));
        assert!(open(Path::new("/dev/null"), OFlags::WRONLY.bits(), 0).is_err());
    }
}
