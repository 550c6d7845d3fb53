//! Connections from this machine to servers in a network.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use crate::inside::Sockets;

/// The most concurrent connections to one forwarded port.
const AT_ONCE: usize = 256;
/// How long a server on the same machine may take to accept.
const ANSWER: Duration = Duration::from_secs(10);

/// Forwards connections from `listener` to a port inside, until `ended` completes.
pub(super) async fn lead_in(
    listener: TcpListener,
    port: u16,
    sockets: Arc<dyn Sockets>,
    room: Arc<Semaphore>,
    ended: oneshot::Receiver<()>,
) {
    let mut connections = JoinSet::new();
    let mut ended = ended;
    loop {
        tokio::select! {
            _ = &mut ended => return,
            accepted = listener.accept() => match (accepted, Arc::clone(&room).try_acquire_owned()) {
                (Ok((client, _)), Ok(place)) if connections.len() < AT_ONCE => {
                    let carried = carry(client, port, Arc::clone(&sockets));
                    connections.spawn(async move {
                        carried.await;
                        drop(place);
                    });
                }
                (Ok(_), _) => {}
                (Err(_), _) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

async fn carry(mut client: TcpStream, port: u16, sockets: Arc<dyn Sockets>) {
    // If no server listens, the client sees the end of the connection.
    let Ok(mut server) = connect(port, &sockets).await else { return };
    let _broken = copy_bidirectional(&mut client, &mut server).await;
}

/// Connects to a server on the IPv4 or, failing that, the IPv6 loopback.
async fn connect(port: u16, sockets: &Arc<dyn Sockets>) -> io::Result<TcpStream> {
    match connect_to(Ipv4Addr::LOCALHOST.into(), port, sockets).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            connect_to(Ipv6Addr::LOCALHOST.into(), port, sockets).await
        }
        connected => connected,
    }
}

async fn connect_to(ip: IpAddr, port: u16, sockets: &Arc<dyn Sockets>) -> io::Result<TcpStream> {
    let sockets = Arc::clone(sockets);
    let socket: OwnedFd = spawn_blocking(move || sockets.make(ip.is_ipv6())).await??;
    let stream = std::net::TcpStream::from(socket);
    stream.set_nonblocking(true)?;
    let connecting = TcpSocket::from_std_stream(stream).connect(SocketAddr::new(ip, port));
    timeout(ANSWER, connecting).await.map_err(|_late| io::ErrorKind::TimedOut)?
}
