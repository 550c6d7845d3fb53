//! Identity of the peer of a unix socket.

use std::os::unix::net::UnixStream;

/// Returns true if the peer is a process of the same user outside of any sandbox.
///
/// A sandbox has a pid namespace of its own, and a file descriptor of the socket may have leaked into one.
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

/// Returns false: only Linux tells whether the peer runs in a sandbox.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_the_user(_stream: &UnixStream) -> std::io::Result<bool> {
    Ok(false)
}
