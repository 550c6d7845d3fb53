//! Connects the sockets of calls to other addresses.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use portcullis_sys::notify::{Listener, SyscallAnswer};
use rustix::net::sockopt::socket_domain;
use rustix::net::{AddressFamily, connect};

use super::waiting::{Ready, Waiting, lock};

/// Starts a thread that connects sockets as long as there are any.
pub(super) fn start(waiting: Arc<Mutex<Waiting>>, listener: Arc<Listener>) -> io::Result<()> {
    let counted = Arc::clone(&waiting);
    let connect_all = move || {
        while let Some(Ready { id, socket, address }) = next(&waiting) {
            let answer = match connect_to(&socket, address) {
                Ok(()) => SyscallAnswer::Value(0),
                Err(error) => SyscallAnswer::Error(error.raw_os_error()),
            };
            lock(&waiting).is_connected(id);
            // A call that has been abandoned needs no answer.
            drop(listener.answer(id, answer));
        }
    };
    let started = std::thread::Builder::new().name("net-redirect".to_owned()).spawn(connect_all);
    started.map(drop).inspect_err(|_| lock(&counted).one_ended())
}

fn next(waiting: &Mutex<Waiting>) -> Option<Ready> {
    lock(waiting).next_ready()
}

/// Connects a socket to an address, in the form that the socket's address family has for it.
fn connect_to(socket: &OwnedFd, address: SocketAddr) -> rustix::io::Result<()> {
    let address = match (socket_domain(socket)?, address.ip()) {
        (AddressFamily::INET6, IpAddr::V4(ip)) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        _ => address,
    };
    connect(socket, &address)
}
