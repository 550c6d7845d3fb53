//! Runs one command in a network with test servers: `world DIRECTORY COMMAND...`.
//!
//! Started in a network and a mount namespace of its own, it creates a second network with servers in it, routes the
//! first one there, and runs the command in the first. So the servers are other machines to the command, and the
//! machine that runs the tests is not affected.
//!
//! | name | address | servers |
//! |---|---|---|
//! | `allowed.test`, `*.allowed.test` | 203.0.113.1 | HTTP on 80 and 8080, TLS on 443, a greeting on 22, an echo on 7 |
//! | `example.com`, `*.example.com` | 203.0.113.1 | the same |
//! | `evil.test`, `allowed.test.evil.test`, `notallowed.test`, `xn--llowed-2nf.test` | 203.0.113.2 | the same |
//! | `private.test` | 10.0.0.1 | the same |
//! | `metadata.test` | 169.254.169.254 | the same |
//! | `loopback.test`, `own.test` | 127.0.0.1, the command's own address | |
//! | `by-hand.test` | as allowed, but in `/etc/hosts` only | |
//! | `loop-by-hand.test` | the loopback, in `/etc/hosts` only | |
//! | `proxy.test` | 203.0.113.9 | a proxy on 3128 (HTTP) and 1080 (SOCKS 5) that knows `behind.test` by itself, as allowed |
//! | `flips.test` | allowed the first time, then 169.254.169.254 | |
//! | `moves.test` | evil the first time, then allowed | |
//! | `silent.test`, `broken.test` | the name server does not answer, or says that it cannot | |
//! | (none) | 2001:db8:1::1, where the kernel has IPv6 | HTTP on 80 |
//!
//! If `DIRECTORY/more.py` exists, it is run for the allowed and the evil address, and adds servers to them. All
//! requests that the servers receive are written to `DIRECTORY/seen`, one line each.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use anyhow::{Context as _, Result, ensure};

const ALLOWED: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const EVIL: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
const PRIVATE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);
const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 53);
const PROXY: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);
/// The address of the command's own machine.
const OWN: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 254);
/// An IPv6 address of the allowed host, and the command's own.
const ALLOWED_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const OWN_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0xfe);
/// The argument that makes this program the second network.
const SERVERS: &str = "--servers";

fn main() -> Result<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let directory = PathBuf::from(arguments.next().context("the first argument is the directory")?);
    let command: Vec<_> = arguments.collect();
    if command.first().is_some_and(|first| first == SERVERS) {
        serve(&directory)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut servers = second_network(&directory)?;
    let (program, arguments) = command.split_first().context("there is no command")?;
    // The capabilities for the namespaces are not for the command.
    let mut dropping = Command::new("setpriv");
    let status =
        dropping.args(["--ambient-caps=-all", "--inh-caps=-all", "--"]).arg(program).args(arguments).status();
    servers.kill()?;
    servers.wait()?;
    let code = status.with_context(|| format!("running {}", program.display()))?.code();
    Ok(ExitCode::from(u8::try_from(code.unwrap_or(255)).unwrap_or(255)))
}

/// Starts the servers in a network of their own, and routes this one there.
fn second_network(directory: &Path) -> Result<Child> {
    ip("link set lo up")?;
    let mut servers = Command::new("unshare")
        .args(["--net", "--pid", "--fork", "--kill-child", "--"])
        .arg(std::env::current_exe()?)
        .arg(directory)
        .arg(SERVERS)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting `unshare` (package util-linux)")?;
    let mut said = BufReader::new(servers.stdout.take().context("a pipe")?).lines();
    ensure!(said.next().transpose()?.as_deref() == Some("network"), "the servers have no network");
    ip(&format!("link add h0 type veth peer name s0 netns {}", servers.id()))?;
    ip(&format!("addr add {OWN}/24 dev h0"))?;
    ip("link set h0 up")?;
    ip(&format!("route add default via {ALLOWED}"))?;
    if has_v6() {
        // Without duplicate address detection, which takes a second.
        ip(&format!("addr add {OWN_6}/64 dev h0 nodad"))?;
    }
    let resolver = directory.join("resolv.conf");
    // As in containers: a name with fewer dots is first tried below another domain.
    let settings = format!("search near.test\noptions ndots:5\nnameserver {NAME_SERVER}\n");
    std::fs::write(&resolver, settings)?;
    run(Command::new("mount").arg("--bind").arg(resolver).arg("/etc/resolv.conf"))?;
    let hosts = directory.join("hosts");
    let names = format!("127.0.0.1 localhost loop-by-hand.test\n{ALLOWED} by-hand.test\n");
    std::fs::write(&hosts, names)?;
    run(Command::new("mount").arg("--bind").arg(hosts).arg("/etc/hosts"))?;
    writeln!(servers.stdin.as_ref().context("a pipe")?, "wired")?;
    ensure!(said.next().transpose()?.as_deref() == Some("ready"), "the servers do not start");
    // A server of this machine that must not be reachable.
    let everywhere: IpAddr =
        if has_v6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let listener = TcpListener::bind((everywhere, 8000))?;
    let own = Seen::open(directory)?;
    thread::spawn(move || listener.incoming().flatten().for_each(|stream| http(stream, OWN.into(), &own)));
    Ok(servers)
}

fn has_v6() -> bool {
    Path::new("/proc/net/if_inet6").exists()
}

fn ip(arguments: &str) -> Result<()> {
    // Debian's locations, which are not in every PATH.
    let places = ["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip", "/bin/ip"];
    let program = places.into_iter().find(|place| Path::new(place).exists());
    run(Command::new(program.context("`ip` is missing (package iproute2)")?).args(arguments.split(' ')))
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}

/// The log of the requests that the servers receive.
#[derive(Clone)]
struct Seen(std::sync::Arc<File>);

impl Seen {
    fn open(directory: &Path) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(directory.join("seen"))?;
        Ok(Self(std::sync::Arc::new(file)))
    }

    fn write(&self, line: &str) {
        // One write per line, so that lines of several threads do not mix.
        drop(self.0.as_ref().write_all(format!("{line}\n").as_bytes()));
    }
}

fn serve(directory: &Path) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "network")?;
    let mut wired = String::new();
    BufReader::new(std::io::stdin()).read_line(&mut wired)?;
    ip("link set lo up")?;
    ip("link set s0 up")?;
    for address in [ALLOWED, EVIL, NAME_SERVER, PROXY] {
        ip(&format!("addr add {address}/24 dev s0"))?;
    }
    for address in [PRIVATE, METADATA] {
        ip(&format!("addr add {address}/32 dev lo"))?;
    }
    let seen = Seen::open(directory)?;
    let names = UdpSocket::bind((NAME_SERVER, 53))?;
    let names_seen = seen.clone();
    thread::spawn(move || answer_names(&names, &names_seen));
    for address in [ALLOWED, EVIL, PRIVATE, METADATA] {
        for (port, server) in [(80, http as Server), (8080, http), (22, greet), (7, echo)] {
            listen(address.into(), port, server, &seen)?;
        }
        tls(directory, address)?;
    }
    if has_v6() {
        ip(&format!("addr add {ALLOWED_6}/64 dev s0 nodad"))?;
        listen(ALLOWED_6.into(), 80, http, &seen)?;
    }
    for (port, order) in [(3128, order_of_http as Order), (1080, order_of_socks)] {
        let listener = TcpListener::bind((PROXY, port))?;
        let seen = seen.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = seen.clone();
                thread::spawn(move || proxy(stream, order, &seen));
            }
        });
    }
    let more = directory.join("more.py");
    if more.exists() {
        for address in [ALLOWED, EVIL] {
            more_servers(&more, address, directory)?;
        }
    }
    writeln!(out, "ready")?;
    // The parent kills this process.
    loop {
        thread::park();
    }
}

type Server = fn(TcpStream, IpAddr, &Seen);

fn listen(address: IpAddr, port: u16, server: Server, seen: &Seen) -> Result<()> {
    let listener = TcpListener::bind((address, port))?;
    let seen = seen.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let seen = seen.clone();
            thread::spawn(move || server(stream, address, &seen));
        }
    });
    Ok(())
}

/// Answers every request with the addresses of both sides, and reads all data sent to it.
fn http(mut stream: TcpStream, address: IpAddr, seen: &Seen) {
    let Ok(copy) = stream.try_clone() else { return };
    let mut reader = BufReader::new(copy);
    loop {
        let (mut first, mut host, mut length, mut close) = (String::new(), String::new(), 0_u64, false);
        if reader.read_line(&mut first).is_ok_and(|length| length == 0) || first.is_empty() {
            return;
        }
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).is_err() || line.trim().is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            match name.to_ascii_lowercase().as_str() {
                "host" => value.trim().clone_into(&mut host),
                "content-length" => length = value.trim().parse().unwrap_or(0),
                "connection" => close = value.trim().eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        let body = std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).unwrap_or(0);
        seen.write(&format!("HTTP {address} {} host={host} body={body}", first.trim()));
        let location = if first.contains("/redirect") { "Location: http://evil.test/\r\n" } else { "" };
        let status = if location.is_empty() { "200 OK" } else { "302 Found" };
        let text = format!("REACHED {address} as {host}\n");
        let head = format!("HTTP/1.1 {status}\r\n{location}Content-Length: {}\r\n\r\n", text.len());
        if stream.write_all((head + &text).as_bytes()).is_err() || close {
            return;
        }
    }
}

/// Speaks first, like mail and secure shell servers.
fn greet(mut stream: TcpStream, address: IpAddr, seen: &Seen) {
    seen.write(&format!("GREET {address}"));
    let mut line = [0; 64];
    drop(stream.write_all(format!("REACHED {address}\r\n").as_bytes()));
    drop(stream.read(&mut line));
}

fn echo(mut stream: TcpStream, address: IpAddr, seen: &Seen) {
    seen.write(&format!("ECHO {address}"));
    let Ok(mut copy) = stream.try_clone() else { return };
    drop(std::io::copy(&mut copy, &mut stream));
}

/// Starts the servers that a test has provided, and waits until they are ready.
fn more_servers(program: &Path, address: Ipv4Addr, directory: &Path) -> Result<()> {
    let log = OpenOptions::new().create(true).append(true).open(directory.join("more.log"))?;
    let mut python = Command::new("/usr/bin/python3");
    python.arg(program).arg(address.to_string()).arg(directory);
    let mut child = python.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()?;
    let mut said = String::new();
    BufReader::new(child.stdout.take().context("a pipe")?).read_line(&mut said)?;
    ensure!(said == "ready\n", "`{}` does not start", program.display());
    Ok(())
}

/// Reads the target of a proxy's client, and reports success to it.
type Order = fn(&mut TcpStream) -> Option<(String, u16)>;

/// Connects its clients to the stand-in for the host that they name.
fn proxy(mut client: TcpStream, order: Order, seen: &Seen) {
    let Some((host, port)) = order(&mut client) else { return };
    seen.write(&format!("PROXY {host}:{port}"));
    let address = if host.contains("evil") { EVIL } else { ALLOWED };
    let Ok(mut server) = TcpStream::connect((address, port)) else { return };
    let (Ok(mut from), Ok(mut to)) = (client.try_clone(), server.try_clone()) else { return };
    thread::spawn(move || {
        drop(std::io::copy(&mut from, &mut to));
        drop(to.shutdown(std::net::Shutdown::Write));
    });
    drop(std::io::copy(&mut server, &mut client));
    drop(client.shutdown(std::net::Shutdown::Write));
}

fn order_of_http(client: &mut TcpStream) -> Option<(String, u16)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    let head = String::from_utf8(head).ok()?;
    let (host, port) = head.strip_prefix("CONNECT ")?.split_once(' ')?.0.rsplit_once(':')?;
    // A client with a password sends it.
    let is_known =
        host != "known.allowed.test" || head.contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n");
    let answer = if is_known { "200 Connection established" } else { "407 Who are you" };
    client.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).ok()?;
    Some((host.to_owned(), port.parse().ok()?)).filter(|_| is_known)
}

fn order_of_socks(client: &mut TcpStream) -> Option<(String, u16)> {
    let mut greeting = [0; 3];
    client.read_exact(&mut greeting).ok()?;
    client.write_all(&[5, 0]).ok()?;
    let mut start = [0; 5];
    client.read_exact(&mut start).ok()?;
    let mut rest = vec![0; usize::from(start[4]) + 2];
    client.read_exact(&mut rest).ok()?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).ok()?;
    let (name, port) = rest.split_at_checked(rest.len() - 2)?;
    let port = u16::from_be_bytes(port.try_into().ok()?);
    Some((String::from_utf8(name.to_vec()).ok()?, port)).filter(|_| start[3] == 3)
}

/// A TLS server for one address: openssl's, with a certificate of its own for the names.
fn tls(directory: &Path, address: Ipv4Addr) -> Result<()> {
    let (key, certificate) = (directory.join("key.pem"), directory.join("certificate.pem"));
    if !certificate.exists() {
        let names = "subjectAltName=DNS:allowed.test,DNS:evil.test,DNS:sub.allowed.test";
        let mut make = Command::new("openssl");
        make.args(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test".split(' '),
        );
        make.args(["-addext", names, "-keyout"]).arg(&key).arg("-out").arg(&certificate);
        run(make.stderr(Stdio::null())).context("`openssl` is needed")?;
    }
    let mut server = Command::new("openssl");
    server.args(["s_server", "-quiet", "-www", "-accept", &format!("{address}:443")]);
    server.arg("-key").arg(&key).arg("-cert").arg(&certificate);
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    while TcpStream::connect((address, 443)).is_err() {
        thread::yield_now();
    }
    Ok(())
}

fn answer_names(socket: &UdpSocket, seen: &Seen) {
    let (flips, moves) = (AtomicU32::new(0), AtomicU32::new(0));
    let mut query = [0; 512];
    while let Ok((length, from)) = socket.recv_from(&mut query) {
        let query = query.get(..length).unwrap_or_default();
        // This name gets no answer.
        if query.windows(6).any(|part| part == b"silent") {
            continue;
        }
        if let Some(reply) = reply(query, (&flips, &moves), seen) {
            drop(socket.send_to(&reply, from));
        }
    }
}

fn reply(query: &[u8], (flips, moves): (&AtomicU32, &AtomicU32), seen: &Seen) -> Option<Vec<u8>> {
    let mut labels = Vec::new();
    let mut rest = query.get(12..)?;
    while let Some((&length, after)) = rest.split_first().filter(|(length, _)| **length != 0) {
        let (label, after) = after.split_at_checked(usize::from(length))?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        rest = after;
    }
    let (name, is_v4) = (labels.join("."), rest.get(1..3)? == [0, 1]);
    seen.write(&format!("DNS {name}"));
    let address = match name.as_str() {
        "allowed.test" => Some(ALLOWED),
        name if name.ends_with(".allowed.test") => Some(ALLOWED),
        // The names of the documentation.
        name if name == "example.com" || name.ends_with(".example.com") => Some(ALLOWED),
        "evil.test" | "xn--llowed-2nf.test" | "notallowed.test" | "allowed.test.evil.test" => Some(EVIL),
        "private.test" => Some(PRIVATE),
        name if name.ends_with(".wild.test") => Some(PRIVATE),
        "metadata.test" => Some(METADATA),
        "proxy.test" => Some(PROXY),
        "loopback.test" => Some(Ipv4Addr::LOCALHOST),
        "own.test" => Some(OWN),
        "flips.test" if flips.fetch_add(u32::from(is_v4), Ordering::Relaxed) == 0 => Some(ALLOWED),
        "flips.test" => Some(METADATA),
        "moves.test" if moves.fetch_add(u32::from(is_v4), Ordering::Relaxed) == 0 => Some(EVIL),
        "moves.test" => Some(ALLOWED),
        _ => None,
    };
    let question = query.get(12..query.len() - rest.len() + 5)?;
    let code = match address {
        Some(_) => 0,
        None if name == "broken.test" => 2,
        None => 3,
    };
    let answer = address.filter(|_| is_v4);
    let mut reply =
        [query.get(..2)?, &[0x81, 0x80 | code, 0, 1, 0, u8::from(answer.is_some()), 0, 0, 0, 0]].concat();
    reply.extend_from_slice(question);
    if let Some(address) = answer {
        reply.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        reply.extend_from_slice(&address.octets());
    }
    Some(reply)
}
