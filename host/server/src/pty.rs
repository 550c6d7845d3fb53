//! Pseudoterminals.

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use rustix::termios::{OptionalActions, Termios, tcsetattr};

/// Returns both ends of a new terminal with the settings of another, ours first. Both are close-on-exec.
pub fn pair(like: &Termios) -> anyhow::Result<(File, File)> {
    let ours = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname_r(&ours)?;
    let flags = OFlag::O_NOCTTY.bits();
    let theirs = OpenOptions::new().read(true).write(true).custom_flags(flags).open(name)?;
    tcsetattr(&theirs, OptionalActions::Now, like)?;
    Ok((File::from(OwnedFd::from(ours)), theirs))
}
