//! Servers that listen in a network.

use std::fs;
use std::net::SocketAddr;

use super::process;
use crate::inside::Server;

/// `TCP_LISTEN`, as in `/proc/net/tcp`.
const LISTENING: &str = "0A";
/// The most servers in a list; users do not read longer ones.
const SERVERS_MAX: usize = 256;

/// Returns the servers of processes below `keeper`.
pub(crate) fn servers(keeper: u32) -> Vec<Server> {
    let owners = process::owners(keeper);
    let tables = ["tcp", "tcp6"]
        .into_iter()
        .filter_map(|table| fs::read_to_string(format!("/proc/{keeper}/net/{table}")).ok());
    let mut found: Vec<Server> = Vec::new();
    for (address, socket) in tables.flat_map(|rows| listening(&rows)) {
        // The gate's own listeners have no owner inside.
        let Some(owner) = owners.get(&socket) else { continue };
        let process = owner.any();
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

#[cfg(test)]
mod tests {
    use std::io;

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
