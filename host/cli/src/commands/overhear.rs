//! The error output of a command of `run` that is listened to on its way to the user's.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;

use portcullis_session::Heard;

/// How much is read at once.
const CHUNK: usize = 16 * 1024;

/// Our end of the command's error output. It is a terminal where ours is one, so that the command does what it would
/// do without us.
#[derive(Debug)]
pub(crate) struct Overheard(File);

impl Overheard {
    /// Makes one; the second is the command's end.
    pub(crate) fn open() -> anyhow::Result<(Self, OwnedFd)> {
        #[cfg(target_os = "linux")]
        if io::IsTerminal::is_terminal(&crate::raw::errors()) {
            return Self::of_terminal();
        }
        let (ours, theirs) = io::pipe()?;
        Ok((Self(File::from(OwnedFd::from(ours))), theirs.into()))
    }

    #[cfg(target_os = "linux")]
    fn of_terminal() -> anyhow::Result<(Self, OwnedFd)> {
        let mut plain = rustix::termios::tcgetattr(crate::raw::errors())?;
        // What is written goes on as it is: the user's own terminal does the rest.
        plain.make_raw();
        let (ours, theirs) = crate::pty::pair(&plain)?;
        let overheard = Self(ours);
        overheard.follow_size();
        Ok((overheard, theirs.into()))
    }

    /// Has it as large as the user's terminal.
    pub(crate) fn follow_size(&self) {
        if let Ok(size) = rustix::termios::tcgetwinsize(crate::raw::errors()) {
            // A pipe has no size.
            let _followed = rustix::termios::tcsetwinsize(&self.0, size);
        }
    }

    /// Passes everything on until all who write have ended.
    pub(crate) fn pass(&self, heard: &mut Heard) {
        let mut chunk = vec![0; CHUNK];
        let mut ours = &self.0;
        loop {
            let part = match ours.read(&mut chunk) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // The end of a terminal is told as an error.
                Ok(0) | Err(_) => return,
                Ok(length) => chunk.get(..length).unwrap_or_default(),
            };
            heard.hear(part);
            // Where nobody reads our errors any more the command goes on as it would without us.
            let _passed = crate::raw::errors().write_all(part);
        }
    }
}
