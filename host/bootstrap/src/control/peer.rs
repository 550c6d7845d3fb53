//! Identity of the peer of a unix socket.

use std::os::unix::net::UnixStream;

/// Returns true if the peer is a process of the same user outside of any sandbox.
///
/// A sandbox has a PID namespace of its own, and a file descriptor of the socket may have leaked into one.
/// A peer in a PID namespace that this one does not see has the number 0, which is refused here. `rustix`
/// has no value for 0 and must not be asked.
#[cfg(target_os = "linux")]
pub(super) fn is_the_user(stream: &UnixStream) -> std::io::Result<bool> {
    let peer = nix::sys::socket::getsockopt(stream, nix::sys::socket::sockopt::PeerCredentials)?;
    if peer.pid() == 0 || peer.uid() != rustix::process::geteuid().as_raw() {
        return Ok(false);
    }
    let own = std::fs::read_link("/proc/self/ns/pid")?;
    let theirs = std::fs::read_link(format!("/proc/{}/ns/pid", peer.pid()))?;
    Ok(own == theirs)
}

/// Returns false: only Linux tells whether the peer runs in a sandbox.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_the_user(_stream: &UnixStream) -> std::io::Result<bool> {
    Ok(false)
}
