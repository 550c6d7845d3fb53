//! Reads the error output of a command of `run` and forwards it to the user's terminal.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;

use portcullis_session::StderrHints;

/// Size of a read.
const CHUNK: usize = 16 * 1024;

/// Our end of the command's error output.
///
/// It is a terminal if ours is one, so that the command behaves as it would without us.
#[derive(Debug)]
pub(crate) struct StderrTee(File);

impl StderrTee {
    /// Creates one. The second value is the command's end.
    pub(crate) fn open() -> anyhow::Result<(Self, OwnedFd)> {
        #[cfg(target_os = "linux")]
        if io::IsTerminal::is_terminal(&portcullis_bootstrap::streams::errors()) {
            return Self::of_terminal();
        }
        let (ours, theirs) = io::pipe()?;
        Ok((Self(File::from(OwnedFd::from(ours))), theirs.into()))
    }

    #[cfg(target_os = "linux")]
    fn of_terminal() -> anyhow::Result<(Self, OwnedFd)> {
        let mut plain = rustix::termios::tcgetattr(portcullis_bootstrap::streams::errors())?;
        // Raw mode: the user's own terminal processes the output.
        plain.make_raw();
        let (ours, theirs) = portcullis_server::pty::pair(&plain)?;
        let overheard = Self(ours);
        overheard.follow_size();
        Ok((overheard, theirs.into()))
    }

    /// Sets the size to that of the user's terminal.
    pub(crate) fn follow_size(&self) {
        if let Ok(size) = rustix::termios::tcgetwinsize(portcullis_bootstrap::streams::errors()) {
            // A pipe has no size.
            let _followed = rustix::termios::tcsetwinsize(&self.0, size);
        }
    }

    /// Forwards everything until all writers have exited.
    pub(crate) fn pass(&self, heard: &mut StderrHints) {
        let mut chunk = vec![0; CHUNK];
        let mut ours = &self.0;
        loop {
            let part = match ours.read(&mut chunk) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // Reading the end of a terminal gives an error.
                Ok(0) | Err(_) => return,
                Ok(length) => chunk.get(..length).unwrap_or_default(),
            };
            heard.hear(part);
            // If our error output is closed, the command continues as it would without us.
            let _passed = portcullis_bootstrap::streams::errors().write_all(part);
        }
    }
}
