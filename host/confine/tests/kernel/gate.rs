//! Connections of a gated session end at the host, whatever they are to.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use portcullis_confine::{Confinement, Force, Layer, Listeners};
use rustix::net::sockopt::{ip_original_dst, ipv6_original_dst};

use crate::Test;
use crate::kit::{self, Session, eventually};

pub(crate) const TESTS: &[Test] = &[
    ("gate::every_address_leads_to_the_host", every_address_leads_to_the_host),
    ("gate::every_question_for_a_name_leads_to_the_host", every_question_for_a_name_leads_to_the_host),
    ("gate::the_loopback_stays_inside", the_loopback_stays_inside),
    ("gate::other_datagrams_are_refused", other_datagrams_are_refused),
    ("gate::the_rules_cannot_be_changed_inside", the_rules_cannot_be_changed_inside),
    ("gate::without_the_host_everything_is_refused", without_the_host_everything_is_refused),
    ("gate::it_is_known_which_command_a_process_belongs_to", it_is_known_which_command_a_process_belongs_to),
];

const HOST_PORT: u16 = 5432;

fn gated() -> (Session, Listeners) {
    let place = kit::make_place();
    let profile = kit::profile(place.path());
    let (confinement, gate) =
        Confinement::start_gated(&kit::own_program(), &profile, &[HOST_PORT]).expect("the sandbox starts");
    let network = confinement.report().layers.iter().find(|(layer, _)| *layer == Layer::Network);
    assert_eq!(network, Some(&(Layer::Network, Force::Full)));
    (Session { place, confinement }, gate.expect("the gate opens"))
}

/// Runs a script of bash, and returns what `serve` does meanwhile.
fn while_running<T>(session: &Session, script: &str, serve: impl FnOnce() -> T) -> (T, String) {
    let (running, mut output) = session.start(session.command(&["bash", "-c", script])).expect("starts");
    let served = serve();
    let mut text = String::new();
    output.read_to_string(&mut text).expect("output");
    running.wait();
    (served, text.trim().to_owned())
}

fn connect(to: &str, port: u16) -> String {
    format!("exec 3<>/dev/tcp/{to}/{port} && cat <&3")
}

fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    listener.set_nonblocking(true).expect("set");
    let mut accepted = None;
    eventually("a connection", || {
        accepted = listener.accept().ok();
        accepted.is_some()
    });
    accepted.expect("a connection")
}

fn every_address_leads_to_the_host() {
    let (session, gate) = gated();
    let v6 = gate.v6.as_ref().expect("IPv6");
    for address in
        ["192.0.2.7:80", "198.18.0.2:443", "8.8.8.8:22", "127.0.0.1:5432", "[2001:db8::7]:80", "[::1]:5432"]
    {
        let wanted: SocketAddr = address.parse().expect("an address");
        let script = connect(&wanted.ip().to_string(), wanted.port());
        let (meant, output) = while_running(&session, &script, || {
            let (mut stream, _) = accept(&if wanted.is_ipv4() { &gate.v4 } else { v6 }.relay);
            stream.write_all(b"from the host").expect("sent");
            if wanted.is_ipv4() {
                SocketAddr::from(ip_original_dst(&stream).expect("known"))
            } else {
                SocketAddr::from(ipv6_original_dst(&stream).expect("known"))
            }
        });
        assert_eq!((meant, output.as_str()), (wanted, "from the host"));
    }
}

fn every_question_for_a_name_leads_to_the_host() {
    let (session, gate) = gated();
    let v6 = gate.v6.as_ref().expect("IPv6");
    for (server, ends) in [("8.8.8.8", &gate.v4), ("127.0.0.53", &gate.v4), ("2001:db8::53", v6), ("::1", v6)]
    {
        ends.dns.set_read_timeout(Some(Duration::from_secs(5))).expect("set");
        let script = format!("exec 3<>/dev/udp/{server}/53; printf question >&3; head -c 6 <&3");
        let (asked, output) = while_running(&session, &script, || {
            let mut question = [0; 64];
            let (length, from) = ends.dns.recv_from(&mut question).expect("a question");
            ends.dns.send_to(b"answer", from).expect("sent");
            question[..length].to_vec()
        });
        assert_eq!((asked.as_slice(), output.as_str()), (b"question".as_slice(), "answer"), "{server}");
        let (_, output) = while_running(&session, &connect(server, 53), || {
            accept(&ends.dns_stream).0.write_all(b"over tcp").expect("sent");
        });
        assert_eq!(output, "over tcp");
    }
}

fn the_loopback_stays_inside() {
    let (session, gate) = gated();
    let outside = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = outside.local_addr().expect("an address").port();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok(), "control");
    session
        .run(session.command(&["bash", "-c", &connect("127.0.0.1", port)]))
        .expect("starts")
        .assert_fails();
    gate.v4.relay.set_nonblocking(true).expect("set");
    assert!(gate.v4.relay.accept().is_err(), "it led to the relay");
    // The relay itself is no way anywhere: it is told that the connection was meant for itself.
    let relay = gate.v4.relay.local_addr().expect("an address");
    let (meant, _) = while_running(&session, &connect("127.0.0.1", relay.port()), || {
        let (stream, _) = accept(&gate.v4.relay);
        ip_original_dst(&stream).map(SocketAddr::from)
    });
    assert!(meant.is_err() || meant.is_ok_and(|meant| meant == relay));
}

fn other_datagrams_are_refused() {
    let (session, _gate) = gated();
    let script = "perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(Proto => q(udp), \
                  PeerAddr => q(192.0.2.7), PeerPort => 443); $s->send(q(x)); $s->recv(my $b, 9) // print $!'";
    let start = std::time::Instant::now();
    session.sh(script).assert(0, "Connection refused");
    assert!(start.elapsed() < Duration::from_secs(5), "programs that try QUIC first must not wait");
}

fn the_rules_cannot_be_changed_inside() {
    let (session, _gate) = gated();
    // A socket to the packet filter, and one to the routing part with a change of a link.
    session.sh("perl -e 'exit(socket(S, 16, 3, 12) ? 0 : 7)'").assert(7, "");
    let change = "perl -e 'socket(S, 16, 3, 0) or exit 3; \
                  send(S, pack(q(LSSLL C x S l L L), 32, 16, 5, 0, 0, 0, 0, 1, 0, 1), 0); \
                  sysread(S, my $b, 4096); exit(unpack(q(x16 l), $b) == -1 ? 7 : 0)'";
    session.sh(change).assert(7, "");
}

fn without_the_host_everything_is_refused() {
    let (session, gate) = gated();
    let held = session.command(&["bash", "-c", &format!("{}; echo ended", connect("192.0.2.7", 80))]);
    let (running, mut output) = session.start(held).expect("starts");
    eventually("a connection waits", || {
        let table = fs::read_to_string(format!("/proc/{}/net/tcp", gate.keeper)).unwrap_or_default();
        table.contains("070200C0:0050")
    });
    drop(gate);
    let mut text = String::new();
    output.read_to_string(&mut text).expect("output");
    assert!(text.contains("ended"), "what waited goes on waiting: {text}");
    running.wait();
    for script in [connect("192.0.2.7", 80), connect("web.test", 80), connect("127.0.0.1", HOST_PORT)] {
        session.run(session.command(&["bash", "-c", &script])).expect("starts").assert_fails();
    }
}

fn it_is_known_which_command_a_process_belongs_to() {
    let (session, gate) = gated();
    let (running, mut output) =
        session.start(session.command(&["sh", "-c", "echo begun; exec sleep 60"])).expect("starts");
    let mut begun = [0; 6];
    output.read_exact(&mut begun).expect("output");
    eventually("the init is known", || running.init().is_some());
    let init = running.init().expect("known");
    let stat = fs::read_to_string(format!("/proc/{init}/stat")).expect("it runs");
    let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)).map(str::to_owned);
    assert_eq!(parent, Some(gate.keeper.to_string()), "{stat}");
}
