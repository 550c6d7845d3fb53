//! Servers that listen in a network, and connections from this machine to them.

use std::fs;
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

use crate::inside::{Server, Sockets};
use crate::unix::process::{self, Owner};

/// `TCP_LISTEN`, as in `/proc/net/tcp`.
const LISTENING: &str = "0A";
/// The most concurrent connections to one forwarded port.
const AT_ONCE: usize = 256;
/// How long a server on the same machine may take to accept.
const ANSWER: Duration = Duration::from_secs(10);

/// The most servers in a list; users do not read longer ones.
const SERVERS_MAX: usize = 256;

/// Returns the servers of processes below `keeper`.
pub(super) fn servers(keeper: u32) -> Vec<Server> {
    let owners = process::owners(keeper);
    let tables = ["tcp", "tcp6"]
        .into_iter()
        .filter_map(|table| fs::read_to_string(format!("/proc/{keeper}/net/{table}")).ok());
    let mut found: Vec<Server> = Vec::new();
    for (address, socket) in tables.flat_map(|rows| listening(&rows)) {
        // The gate's own listeners have no owner inside.
        let Some(Owner { process, .. }) = owners.get(&socket).filter(|owner| owner.process.pid != 0) else {
            continue;
        };
        let is_known =
            found.iter().any(|known| known.port == address.port() && known.process.pid == process.pid);
        if !is_known {
            found.push(Server { address: address.ip(), port: address.port(), process: process.clone() });
        }
        if found.len() == SERVERS_MAX {
            break;
        }
    }
    found.sort_by_key(|server| server.port);
    found
}

/// Returns the addresses and sockets of the rows in the listening state.
fn listening(rows: &str) -> Vec<(SocketAddr, u64)> {
    let row = |row: &str| {
        let mut fields = row.split_whitespace().skip(1);
        let address = process::address(fields.next()?)?;
        let state = fields.nth(1)?;
        let socket = fields.nth(5)?.parse().ok()?;
        (state == LISTENING).then_some((address, socket))
    };
    rows.lines().filter_map(row).collect()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_listen_are_told_from_others() {
        let rows = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                    0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 77 1 0\n\
                    1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 78 1 0\n";
        let found = listening(rows);
        let ports: Vec<_> = found.iter().map(|(address, socket)| (address.port(), *socket)).collect();
        assert_eq!(ports, [(8080, 77)]);
    }

    /// Starts a program that listens on `count` ports, and returns it with the first port.
    fn listening_program(count: usize) -> (std::process::Child, u16) {
        let script = format!(
            "$| = 1; @s = map {{ IO::Socket::INET->new(Listen => 1, LocalAddr => q(127.0.0.1)) or die }} 1..{count}; \
             print $s[0]->sockport, qq(\\n); sleep 60"
        );
        let mut child = std::process::Command::new("perl")
            .args(["-MIO::Socket::INET", "-e", &script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        (child, line.trim().parse().unwrap())
    }

    // These are one test, because each would see the other's servers.
    #[test]
    fn servers_of_processes_below_are_found_own_ones_are_not_and_too_many_are_not_listed() {
        let own = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (mut child, port) = listening_program(1);
        let found = servers(std::process::id());
        child.kill().unwrap();
        child.wait().unwrap();
        let server = found.iter().find(|server| server.port == port).expect("found");
        assert_eq!(server.process.pid, child.id());
        let own = own.local_addr().unwrap().port();
        assert!(found.iter().all(|server| server.port != own));

        let (mut child, _) = listening_program(SERVERS_MAX + 10);
        let found = servers(std::process::id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found.len(), SERVERS_MAX);
    }
}
