//! Who is at the other end of a socket.

use std::os::unix::net::UnixStream;

/// Whether it is a process of the same user, and none of a sandbox: those have process numbers of their own, and a
/// descriptor may have come into one by an accident that is not ours.
#[cfg(target_os = "linux")]
pub(super) fn is_the_user(stream: &UnixStream) -> std::io::Result<bool> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid != rustix::process::geteuid() {
        return Ok(false);
    }
    let own = std::fs::read_link("/proc/self/ns/pid")?;
    let theirs = std::fs::read_link(format!("/proc/{}/ns/pid", peer.pid.as_raw_nonzero()))?;
    Ok(own == theirs)
}

/// Where no command is run there is no session to talk to.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_the_user(_stream: &UnixStream) -> std::io::Result<bool> {
    Ok(false)
}
