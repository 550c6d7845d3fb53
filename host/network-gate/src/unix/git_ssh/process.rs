//! The user's `ssh` as a process outside.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::Duration;

use tokio::net::unix::pipe::{Receiver, Sender};

use crate::ssh_remedy::OWN_FAILURE;

/// The interval of checks whether the process has ended.
const LOOK: Duration = Duration::from_millis(2);
/// How long it may take to end after it has closed its output.
const LEAVE: Duration = Duration::from_secs(5);
/// How much of its errors is kept to find a remedy.
const SAID_MAX: usize = 4096;

/// The process. It is killed if it is dropped before its end.
pub(super) struct Outside {
    child: Child,
    pipes: Option<(Sender, Receiver, Receiver)>,
}

impl Outside {
    pub(super) fn new(mut child: Child) -> io::Result<Self> {
        let missing = || io::Error::other("it has no pipes");
        let input = OwnedFd::from(child.stdin.take().ok_or_else(missing)?);
        let output = OwnedFd::from(child.stdout.take().ok_or_else(missing)?);
        let errors = OwnedFd::from(child.stderr.take().ok_or_else(missing)?);
        let pipes = (
            Sender::from_owned_fd(input)?,
            Receiver::from_owned_fd(output)?,
            Receiver::from_owned_fd(errors)?,
        );
        Ok(Self { child, pipes: Some(pipes) })
    }

    /// Returns its pipes, once.
    pub(super) fn take(&mut self) -> Option<(Sender, Receiver, Receiver)> {
        self.pipes.take()
    }

    /// Waits for its end, and returns its exit status.
    pub(super) async fn ended(&mut self) -> u8 {
        let end = tokio::time::Instant::now() + LEAVE;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    let code = status.code().and_then(|code| u8::try_from(code).ok());
                    return code.unwrap_or(OWN_FAILURE);
                }
                Ok(None) if tokio::time::Instant::now() < end => tokio::time::sleep(LOOK).await,
                Ok(None) | Err(_) => return OWN_FAILURE,
            }
        }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        // Gone already, it needs neither.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Keeps the end of what the process says.
pub(super) fn keep_end(said: &mut Vec<u8>, heard: &[u8]) {
    said.extend_from_slice(heard);
    let surplus = said.len().saturating_sub(SAID_MAX);
    said.drain(..surplus);
}

/// Says that a server does not answer.
pub(super) fn silent(host: &str) -> String {
    let minutes = super::silence::PATIENCE.as_secs() / 60;
    format!(
        "`{host}` has sent nothing for {minutes} minutes; `ssh -T {host}` in a terminal outside shows whether it answers"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let mut said = Vec::new();
        for _ in 0..100 {
            keep_end(&mut said, &[b'x'; 100]);
        }
        keep_end(&mut said, b"end");
        assert!(said.len() == SAID_MAX && said.ends_with(b"end"));
    }
}
