//! Finds the process behind a connection out of a session's network, by reading `/proc`.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};

use portcullis_decision::request::ProcessInfo;

use crate::unix::client::{Client, Owner};

/// The processes that have one socket open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SocketOwner {
    owner: Owner,
    /// Several programs have it open.
    is_shared: bool,
}

impl SocketOwner {
    fn new(owner: Owner) -> Self {
        Self { owner, is_shared: false }
    }

    /// Records another process that has the same socket open.
    fn share(&mut self, other: &Owner) {
        let is_same =
            |one: &ProcessInfo, other: &ProcessInfo| one.program == other.program && one.argv == other.argv;
        self.is_shared |=
            !is_same(&self.owner.process, &other.process) || self.owner.command != other.command;
        if self.owner.command != other.command {
            self.owner.command = 0;
        }
    }

    /// Returns one of the processes.
    pub(crate) fn any(&self) -> &ProcessInfo {
        &self.owner.process
    }

    /// Returns the owner without its process if several programs share the socket, since any of them may use it.
    pub(crate) fn unless_shared(&self) -> Owner {
        if self.is_shared {
            Owner { command: self.owner.command, ..Owner::default() }
        } else {
            self.owner.clone()
        }
    }
}

/// Returns a known process with the root process of its command.
pub(crate) fn owner(process: u32, command: u32) -> Owner {
    Owner { process: describe(process), command }
}

/// The most processes that one scan visits.
const PROCESSES_MAX: usize = 4096;
/// Limits for arguments, which are shown and logged: their number, and the bytes of each.
const ARGUMENTS_MAX: usize = 32;
const ARGUMENT_MAX: usize = 512;
/// The limit for all arguments together.
///
/// Thousands of connections may wait, and each keeps the arguments of its process.
const ARGUMENTS_BYTES: usize = 4096;

/// Looks up the client's end of a connection in the network of the process `keeper`.
///
/// `client` is its source address, `server` its original destination.
pub(crate) fn client(keeper: u32, client: SocketAddr, server: SocketAddr) -> Client {
    let tables = if client.ip().to_canonical().is_ipv4() { ["tcp", "tcp6"] } else { ["tcp6", "tcp"] };
    let rows =
        tables.into_iter().filter_map(|table| fs::read_to_string(format!("/proc/{keeper}/net/{table}")).ok());
    // Skip the rows of other connections without parsing them.
    let port = format!(":{:04X} ", client.port());
    let socket = rows.into_iter().find_map(|rows| {
        rows.lines().filter(|row| row.contains(&port)).find_map(|row| socket(row, client, server))
    });
    match socket {
        Some(number) if number != 0 => Client::Open(number),
        _ => Client::Gone,
    }
}

/// Returns the inode number in a row of `/proc/net/tcp`, if the row is for this connection.
///
/// The number is 0 if no process has the socket open.
fn socket(row: &str, client: SocketAddr, server: SocketAddr) -> Option<u64> {
    let mut fields = row.split_whitespace().skip(1);
    let local = address(fields.next()?)?;
    let remote = address(fields.next()?)?;
    // Skip the state, two queues, the timer, the retransmissions, the user and a timeout.
    let number = fields.nth(6)?.parse().ok()?;
    (local == canonical(client) && remote == canonical(server)).then_some(number)
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Parses `0100007F:0050`, with words in native byte order.
pub(super) fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(host.get(8 * at..8 * at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip: IpAddr = if host.len() == 8 {
        word(0)?.into()
    } else {
        let words: Vec<[u8; 4]> = (0..4).map(word).collect::<Option<_>>()?;
        <[u8; 16]>::try_from(words.concat()).ok()?.into()
    };
    Some(SocketAddr::new(ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

/// Returns the owner of each socket that a process below `keeper` has open.
pub(crate) fn owners(keeper: u32) -> HashMap<u64, SocketOwner> {
    let mut owners: HashMap<u64, SocketOwner> = HashMap::new();
    let mut left: Vec<(u32, u32)> = children(keeper).into_iter().map(|init| (init, init)).collect();
    let mut seen = 0;
    while let Some((pid, command)) = left.pop() {
        let sockets = sockets(pid);
        if !sockets.is_empty() {
            let owner = owner(pid, command);
            for socket in sockets {
                let known = owners.entry(socket).or_insert_with(|| SocketOwner::new(owner.clone()));
                known.share(&owner);
            }
        }
        seen += 1;
        if seen < PROCESSES_MAX {
            left.extend(children(pid).into_iter().map(|child| (child, command)));
        }
    }
    owners
}

/// Returns the children of all threads of a process.
fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let texts =
        threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    texts
        .flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Returns the inode numbers of the sockets that a process has open.
fn sockets(pid: u32) -> Vec<u64> {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let targets = descriptors.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.filter_map(|target| number(target.to_str()?)).collect()
}

/// Parses `socket:[4711]`.
fn number(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Returns the description of a process for rules and questions.
fn describe(pid: u32) -> ProcessInfo {
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let written = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    ProcessInfo { pid, program: program.to_string_lossy().into_owned(), argv: arguments(&written) }
}

/// Parses `/proc/N/cmdline`: arguments that each end with a NUL byte.
///
/// A process title set by the process replaces them and is padded with NUL bytes, so empty arguments at the end are
/// ignored.
fn arguments(mut written: &[u8]) -> Vec<String> {
    while let Some(rest) = written.strip_suffix(b"\0") {
        written = rest;
    }
    if written.is_empty() {
        return Vec::new();
    }
    let shown = |argument: &[u8]| {
        let text = String::from_utf8_lossy(argument).into_owned();
        text.get(..text.floor_char_boundary(ARGUMENT_MAX)).unwrap_or_default().to_owned()
    };
    let mut room = ARGUMENTS_BYTES;
    let argv = written.split(|&byte| byte == 0).take(ARGUMENTS_MAX).map(shown).take_while(|argument| {
        room = room.saturating_sub(argument.len());
        room > 0
    });
    argv.collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        let read = |text: &str| address(text).map(|address| address.to_string());
        if cfg!(target_endian = "little") {
            assert_eq!(read("0100007F:0050").as_deref(), Some("127.0.0.1:80"));
            assert_eq!(read("00000000000000000000000001000000:0001").as_deref(), Some("[::1]:1"));
            assert_eq!(read("0000000000000000FFFF00000100007F:0001").as_deref(), Some("127.0.0.1:1"));
        }
        for text in ["", "0100007F", "0100007:0050", "0100007F:", "zz00007F:0050", "é100007F:0050"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn the_socket_of_a_connection_is_found_and_one_that_is_gone_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let stream = TcpStream::connect(server).unwrap();
        let address = stream.local_addr().unwrap();
        let own = std::process::id();
        let Client::Open(socket) = client(own, address, server) else { panic!("not found") };
        assert!(sockets(own).contains(&socket));
        assert_eq!(client(own, address, address), Client::Gone);
        drop(stream);
        // A child process that another test has forked holds the socket open until its execve(2).
        while client(own, address, server) != Client::Gone {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_socket_of_several_programs_is_nobodys() {
        let owner = |program: &str, command| Owner {
            process: ProcessInfo { pid: 1, program: program.to_owned(), argv: Vec::new() },
            command,
        };
        let shared = |one: Owner, other: Owner| {
            let mut both = SocketOwner::new(one);
            both.share(&other);
            both.unless_shared()
        };
        assert_eq!(shared(owner("/a", 7), owner("/a", 7)), owner("/a", 7), "a fork");
        assert_eq!(shared(owner("/a", 7), owner("/b", 7)), Owner { command: 7, ..Owner::default() });
        assert_eq!(shared(owner("/a", 7), owner("/a", 8)), Owner::default());
    }

    #[test]
    fn arguments_end_where_they_are_empty() {
        for (written, expected) in [
            (&b"sh\0-c\0\0x\0"[..], &["sh", "-c", "", "x"][..]),
            (b"pi\0\0\0\0\0\0", &["pi"]),
            (b"a title", &["a title"]),
            (b"sh\0\0", &["sh"]),
            (b"\0\0", &[]),
            (b"", &[]),
        ] {
            assert_eq!(arguments(written), expected, "{written:?}");
        }
        assert_eq!(arguments(&b"x\0".repeat(99)).len(), ARGUMENTS_MAX);
    }

    #[test]
    fn a_process_is_described_and_its_children_are_known() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let own = std::process::id();
        assert!(children(own).contains(&child.id()));
        // Before its execve(2), the child is still a copy of this process.
        while describe(child.id()).argv != ["sleep", "60"] {
            std::thread::yield_now();
        }
        assert!(describe(child.id()).program.starts_with('/'));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
