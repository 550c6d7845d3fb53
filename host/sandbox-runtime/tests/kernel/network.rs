//! No connection leaves the sandbox.

use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use crate::Test;
use crate::kit::Session;

pub(crate) const TESTS: &[Test] = &[
    ("network::the_hosts_loopback_cannot_be_reached", the_hosts_loopback_cannot_be_reached),
    (
        "network::abstract_sockets_of_the_host_cannot_be_reached",
        abstract_sockets_of_the_host_cannot_be_reached,
    ),
    ("network::there_is_only_a_loopback_device", there_is_only_a_loopback_device),
    ("network::loopback_works_inside", loopback_works_inside),
];

/// Makes this program connect, so that no tool need be installed.
fn connect(session: &Session, how: &str, to: &str) -> bool {
    let program = crate::attacks::visible_copy(session);
    let mut command = session.command(&[&program, crate::attacks::ATTEMPT, how, to]);
    command.argv.truncate(4);
    let outcome = session.run(command).expect("starts");
    outcome.exit.shell_code() == 0
}

fn connect_outside(how: &str, to: &str) -> bool {
    let program = crate::kit::own_program();
    let status = std::process::Command::new(program).args([crate::attacks::ATTEMPT, how, to]).status();
    status.expect("runs").success()
}

fn the_hosts_loopback_cannot_be_reached() {
    let session = Session::new();
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(listener) = TcpListener::bind(address) else {
            crate::cannot_run("an IPv6 loopback");
            continue;
        };
        let to = listener.local_addr().expect("an address").to_string();
        assert!(connect_outside("tcp", &to), "control");
        assert!(!connect(&session, "tcp", &to));
    }
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let to = socket.local_addr().expect("an address").to_string();
    connect(&session, "udp", &to);
    socket.set_nonblocking(true).expect("set");
    assert!(socket.recv(&mut [0; 9]).is_err(), "nothing came");
    assert!(connect_outside("udp", &to), "control");
    assert_eq!(socket.recv(&mut [0; 9]).expect("control"), 4);
}

fn abstract_sockets_of_the_host_cannot_be_reached() {
    let session = Session::new();
    let name = format!("portcullis-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("an address");
    let _listener = UnixListener::bind_addr(&address).expect("a socket");
    assert!(connect_outside("abstract", &name), "control");
    assert!(!connect(&session, "abstract", &name));
}

fn there_is_only_a_loopback_device() {
    let session = Session::new();
    session.sh("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '").assert(0, "lo");
    session.sh("tail -n +2 /proc/net/route").assert(0, "");
    for address in ["192.0.2.1:80", "10.0.0.1:53", "169.254.169.254:80"] {
        assert!(!connect(&session, "tcp", address));
    }
}

fn loopback_works_inside() {
    let session = Session::new();
    let program = crate::attacks::visible_copy(&session);
    let command = session.command(&[&program, crate::attacks::ATTEMPT, "echo-to-self", "-"]);
    let (running, mut output) = session.start(command).expect("starts");
    let mut text = String::new();
    output.read_to_string(&mut text).expect("output");
    assert_eq!(running.wait().shell_code(), 0, "{text}");
}
