//! The cost of a connection: direct, through the gate, and through sandbox-runtime's proxies. `cargo build
//! --release -p portcullis-cli`, then `cargo bench -p portcullis-benches --bench network`
//!
//! Each of the three has one client, which runs for the whole race and connects to a server outside of the
//! sandbox, on `localhost`, the only allowed host. The client does not use proxies, except with
//! sandbox-runtime, where it uses the proxy from the environment; see `src/wrapped.mjs`. `launch.rs`
//! describes how sandbox-runtime is found.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark ends where it cannot measure")]

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portcullis_benches::{Contestant, Race, Told};

/// The argument that makes this program the client.
const CLIENT: &str = "--client";
/// The environment variable that makes the client use the proxy.
const BY_PROXY: &str = "BENCH_BY_PROXY";
/// Connections in one round.
const CONNECTIONS: usize = 50;
/// Bytes in one round, each way.
const BYTES: usize = 64 << 20;
/// The first byte of a connection, the order to the server.
const ECHO: u8 = b'e';
const TAKE: u8 = b't';
const GIVE: u8 = b'g';

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if let [_, first, port] = words.as_slice()
        && first == CLIENT
    {
        client(port.parse().expect("a port"));
        return ExitCode::SUCCESS;
    }
    let scratch = tempfile::tempdir_in("/var/tmp").expect("a directory to work in");
    let project = scratch.path().canonicalize().expect("the directory").join("project");
    std::fs::create_dir(&project).expect("a directory");
    // The original file may be in a directory that the sandbox hides.
    let program = project.join("client");
    std::fs::copy(std::env::current_exe().expect("own path"), &program).expect("a copy");
    let port = serve();
    let mut stations = vec![("direct", station(direct(&program, port), &project))];
    match portcullis() {
        Some(binary) => {
            let settings = settings(scratch.path(), port);
            let command = gated(&binary, &settings, &program, port);
            stations.push(("through the gate", station(command, &project)));
        }
        None => println!("portcullis takes no part: build it first, in this profile"),
    }
    if let Some(installed) = std::env::var_os("SANDBOX_RUNTIME") {
        let mut command = Command::new("node");
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/wrapped.mjs")).arg(installed);
        command.arg(format!("{BY_PROXY}=1 '{}' {CLIENT} {port}", program.display()));
        stations.push(("sandbox-runtime", station(command, &project)));
    } else {
        println!("sandbox-runtime takes no part: SANDBOX_RUNTIME names no directory that has it");
    }
    let stations: Vec<_> = stations.into_iter().map(|(name, one)| (name, RefCell::new(one))).collect();
    for (title, order) in [
        (format!("{CONNECTIONS} connections, one byte there and back"), "connect"),
        (format!("{} MiB up", BYTES >> 20), "up"),
        (format!("{} MiB down", BYTES >> 20), "down"),
    ] {
        let contestants = stations
            .iter()
            .map(|(name, station)| Contestant::new(name, 1, move || station.borrow_mut().say(order)));
        println!("{}", Race::new(&title).run(contestants.collect()));
    }
    ExitCode::SUCCESS
}

/// Starts a client, which executes orders and reports each as done.
fn station(mut command: Command, project: &Path) -> Told {
    command.current_dir(project);
    Told::start(command)
}

fn direct(program: &Path, port: u16) -> Command {
    let mut command = Command::new(program);
    command.args([CLIENT, &port.to_string()]);
    command
}

fn gated(binary: &Path, settings: &Path, program: &Path, port: u16) -> Command {
    let mut command = Command::new(binary);
    command.args(["run", "--ask", "deny", "--settings"]).arg(settings).arg("--").arg(program);
    command.args([CLIENT, &port.to_string()]);
    command
}

/// Returns the path of portcullis: `PORTCULLIS_BIN`, or the program beside this one.
fn portcullis() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PORTCULLIS_BIN") {
        return Some(named.into());
    }
    let own = std::env::current_exe().ok()?;
    own.ancestors().nth(2).map(|folder| folder.join("portcullis")).filter(|path| path.exists())
}

fn settings(directory: &Path, port: u16) -> PathBuf {
    let path = directory.join("settings.json");
    let text = format!(
        r#"{{ "network": {{ "allowedDomains": ["localhost:{port}"], "deniedDomains": [], "uploadBudgetMib": 4194303 }},
             "filesystem": {{ "denyRead": [], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] }} }}"#
    );
    std::fs::write(&path, text).expect("settings");
    path
}

/// Runs the server for the clients until this program ends.
fn serve() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A connection that breaks belongs to a client that was killed.
            thread::spawn(move || drop(attend(stream)));
        }
    });
    port
}

fn attend(mut stream: TcpStream) -> std::io::Result<()> {
    let mut order = [0];
    stream.read_exact(&mut order)?;
    match order[0] {
        // In both directions the receiver confirms that all bytes have arrived, because a proxy may drop data
        // in flight when one side closes the connection.
        GIVE => {
            move_bytes(&mut std::io::repeat(0).take(BYTES as u64), &mut stream)?;
            stream.read_exact(&mut order)?;
        }
        TAKE => {
            move_bytes(&mut stream.try_clone()?.take(BYTES as u64), &mut std::io::sink())?;
            stream.write_all(&[TAKE])?;
        }
        _ => stream.write_all(&order)?,
    }
    Ok(())
}

/// Copies bytes in chunks of a size that is cheap for both sides.
fn move_bytes(from: &mut impl Read, to: &mut impl Write) -> std::io::Result<()> {
    let mut piece = vec![0; 256 << 10];
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(()),
            length => to.write_all(piece.get(..length).unwrap_or_default())?,
        }
    }
}

fn client(port: u16) {
    for order in std::io::stdin().lines() {
        match order.expect("an order").as_str() {
            "connect" => (0..CONNECTIONS).for_each(|_| {
                let mut stream = connect(port);
                stream.write_all(&[ECHO]).expect("a byte there");
                stream.read_exact(&mut [0]).expect("a byte back");
            }),
            "up" => {
                let mut stream = connect(port);
                stream.write_all(&[TAKE]).expect("an order");
                move_bytes(&mut std::io::repeat(0).take(BYTES as u64), &mut stream).expect("bytes up");
                stream.read_exact(&mut [0]).expect("they have all come");
            }
            _ => {
                let mut stream = connect(port);
                stream.write_all(&[GIVE]).expect("an order");
                let mut all = stream.try_clone().expect("a copy").take(BYTES as u64);
                move_bytes(&mut all, &mut std::io::sink()).expect("bytes down");
                assert_eq!(all.limit(), 0, "some of it is lost");
                stream.write_all(&[GIVE]).expect("they have all come");
            }
        }
        println!("done");
    }
}

fn connect(port: u16) -> TcpStream {
    if std::env::var_os(BY_PROXY).is_none() {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        stream.set_nodelay(true).expect("a setting");
        return stream;
    }
    let proxy = std::env::var("HTTP_PROXY").or_else(|_| std::env::var("http_proxy")).expect("a proxy");
    let proxy = proxy.trim_start_matches("http://").trim_end_matches('/');
    let (who, place) = proxy.rsplit_once('@').unwrap_or(("", proxy));
    let mut stream = TcpStream::connect(place).expect("the proxy");
    stream.set_nodelay(true).expect("a setting");
    let credentials = STANDARD.encode(who);
    let request = format!(
        "CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost:{port}\r\nProxy-Authorization: Basic {credentials}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("asked");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
        head.extend(byte);
    }
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    stream
}
