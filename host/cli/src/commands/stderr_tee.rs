//! Reads the error output of a command of `run` and forwards it to the user's.
//!
//! If our standard output is the same pipe or file as our error output, the command writes both into one pipe, so they
//! keep their order.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal as _, Read as _, Write};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Mutex, PoisonError};

use portcullis_bootstrap::streams::{errors, output};
use portcullis_session::StderrHints;
use rustix::fs::{FileType, Stat, fstat};

/// Size of a read.
const CHUNK: usize = 16 * 1024;

/// Our end of the command's error output.
///
/// It is a terminal if ours is one, so that the command behaves as it would without us.
#[derive(Debug)]
pub(crate) struct StderrTee {
    /// Taken by the thread that forwards.
    reader: Mutex<Option<File>>,
    /// The terminal whose size follows the user's.
    terminal: Option<File>,
    /// Whether the command's standard output is the same pipe.
    takes_output: bool,
}

impl StderrTee {
    /// Returns true if our error output is a pipe, a socket or a file. A command notices no difference if it gets a pipe
    /// of ours instead.
    pub(crate) fn is_unnoticed() -> bool {
        let is_stream = |found: Stat| {
            let kind = FileType::from_raw_mode(found.st_mode);
            matches!(kind, FileType::Fifo | FileType::Socket | FileType::RegularFile)
        };
        fstat(errors().as_fd()).is_ok_and(is_stream)
    }

    /// Creates one. The other values are the command's standard output and error output.
    pub(crate) fn open() -> anyhow::Result<(Self, OwnedFd, OwnedFd)> {
        let own_output = || output().as_fd().try_clone_to_owned();
        #[cfg(target_os = "linux")]
        if errors().is_terminal() {
            let (ours, theirs) = Self::of_terminal()?;
            return Ok((ours, own_output()?, theirs));
        }
        let (ours, theirs) = io::pipe()?;
        let theirs = OwnedFd::from(theirs);
        let takes_output = !output().is_terminal() && is_same()?;
        let theirs_too = if takes_output { theirs.try_clone()? } else { own_output()? };
        let reader = Mutex::new(Some(File::from(OwnedFd::from(ours))));
        Ok((Self { reader, terminal: None, takes_output }, theirs_too, theirs))
    }

    #[cfg(target_os = "linux")]
    fn of_terminal() -> anyhow::Result<(Self, OwnedFd)> {
        let mut plain = rustix::termios::tcgetattr(errors())?;
        // Raw mode: the user's own terminal processes the output.
        plain.make_raw();
        let (ours, theirs) = portcullis_server::pty::pair(&plain)?;
        let terminal = Some(ours.try_clone()?);
        let tee = Self { reader: Mutex::new(Some(ours)), terminal, takes_output: false };
        tee.follow_size();
        Ok((tee, theirs.into()))
    }

    /// Sets the size to that of the user's terminal.
    pub(crate) fn follow_size(&self) {
        let Some(terminal) = &self.terminal else { return };
        if let Ok(size) = rustix::termios::tcgetwinsize(errors()) {
            // The command continues with the old size.
            let _followed = rustix::termios::tcsetwinsize(terminal, size);
        }
    }

    /// Forwards everything until all writers have exited.
    pub(crate) fn pass(&self, heard: &mut StderrHints) {
        let Some(mut ours) = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        let mut chunk = vec![0; CHUNK];
        loop {
            let part = match ours.read(&mut chunk) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // Reading the end of a terminal gives an error.
                Ok(0) | Err(_) => return,
                Ok(length) => chunk.get(..length).unwrap_or_default(),
            };
            heard.hear(part);
            let passed = if self.takes_output { forward(output(), part) } else { forward(errors(), part) };
            // The command gets the same error from its next write as it would without us. If only our error output is
            // closed, it is not told: few programs look.
            if passed.is_err() && self.takes_output {
                return;
            }
        }
    }
}

fn forward(mut to: impl Write, part: &[u8]) -> io::Result<()> {
    to.write_all(part)?;
    to.flush()
}

/// Returns true if our standard output is our error output.
fn is_same() -> io::Result<bool> {
    let (output, errors) = (fstat(output().as_fd())?, fstat(errors().as_fd())?);
    Ok((output.st_dev, output.st_ino) == (errors.st_dev, errors.st_ino))
}
