//! Standard streams of a contained pi that has no terminal of its own.
//!
//! A terminal's file descriptor can always be read and written: through an output descriptor, a process could read what
//! the user types and change the terminal's settings. So no process in the sandbox gets a descriptor of the user's
//! terminal; pi's output is copied to it.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use portcullis_bootstrap::streams;

/// Time to wait for pi's last output after it has exited.
const LAST_OUTPUT: Duration = Duration::from_secs(2);

/// The threads that copy output to the user's terminal.
#[derive(Debug, Default)]
pub(super) struct Copies(Vec<Receiver<()>>);

impl Copies {
    /// Waits until all output is written, up to a limit.
    pub(super) fn finish(self) {
        for copied in self.0 {
            let _in_time = copied.recv_timeout(LAST_OUTPUT);
        }
    }

    /// Returns a pipe whose content is copied to a terminal.
    fn through(&mut self, terminal: impl AsFd) -> io::Result<OwnedFd> {
        let (mut ours, theirs) = io::pipe()?;
        let mut terminal = File::from(terminal.as_fd().try_clone_to_owned()?);
        let (copied, all) = channel();
        thread::Builder::new().name("output".to_owned()).spawn(move || {
            let mut chunk = vec![0; 16 * 1024];
            loop {
                match ours.read(&mut chunk) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => break,
                    // If the terminal is gone, close pi's pipe too.
                    Ok(length) if terminal.write_all(chunk.get(..length).unwrap_or_default()).is_err() => {
                        break;
                    }
                    Ok(_) => {}
                }
            }
            let _unheard = copied.send(());
        })?;
        self.0.push(all);
        Ok(theirs.into())
    }
}

/// Returns standard input, output and error for pi, none of which is a terminal.
pub(super) fn without_terminal() -> io::Result<([OwnedFd; 3], Copies)> {
    let mut copies = Copies::default();
    let input = match io::stdin().is_terminal() {
        true => File::open("/dev/null")?.into(),
        false => io::stdin().as_fd().try_clone_to_owned()?,
    };
    let (output, errors) = (streams::output(), streams::errors());
    let given = match output.is_terminal() {
        true => copies.through(&output)?,
        false => output.as_fd().try_clone_to_owned()?,
    };
    let told = match (errors.is_terminal(), output.is_terminal()) {
        (false, _) => errors.as_fd().try_clone_to_owned()?,
        // Use one pipe for both, which keeps their order.
        (true, true) if is_same(&output, &errors)? => given.try_clone()?,
        (true, _) => copies.through(&errors)?,
    };
    Ok(([input, given, told], copies))
}

/// Returns true if two descriptors are the same terminal.
fn is_same(one: impl AsFd, other: impl AsFd) -> io::Result<bool> {
    Ok(rustix::fs::fstat(one)?.st_rdev == rustix::fs::fstat(other)?.st_rdev)
}

/// Returns copies of the standard streams of this process.
pub(super) fn standard_streams() -> io::Result<[OwnedFd; 3]> {
    Ok([
        io::stdin().as_fd().try_clone_to_owned()?,
        streams::output().as_fd().try_clone_to_owned()?,
        streams::errors().as_fd().try_clone_to_owned()?,
    ])
}
