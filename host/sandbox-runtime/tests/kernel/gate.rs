//! Connections of a gated session end at the host, whatever their target is.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use portcullis_sandbox::{Force, Hold, Layer, WayOut};
use portcullis_sandbox_runtime::{Call, Calls, Confinement, Listeners};
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
    ("gate::a_call_waits_until_it_is_let_go", a_call_waits_until_it_is_let_go),
    ("gate::an_unheard_call_can_be_led_elsewhere", an_unheard_call_can_be_led_elsewhere),
    ("gate::who_gives_up_is_told_of", who_gives_up_is_told_of),
    (
        "gate::another_address_than_was_told_ends_at_the_host_too",
        another_address_than_was_told_ends_at_the_host_too,
    ),
    ("gate::what_stays_inside_does_not_wait", what_stays_inside_does_not_wait),
    ("gate::the_host_reaches_servers_inside", the_host_reaches_servers_inside),
    ("gate::it_is_known_which_command_a_process_belongs_to", it_is_known_which_command_a_process_belongs_to),
];

const HOST_PORT: u16 = 5432;

fn gated() -> (Session, Listeners) {
    start(Hold::Accept)
}

fn start(hold: Hold) -> (Session, Listeners) {
    let place = kit::make_place();
    let mut profile = kit::profile(place.path());
    if hold == Hold::Connect {
        // Rules over names start a broker.
        profile.names = Some(crate::names::rules("refuse nothing-here"));
    }
    let way_out = WayOut { host_ports: vec![HOST_PORT], hold };
    let (confinement, gate) =
        Confinement::start_gated(&kit::own_program(), &profile, way_out).expect("the sandbox starts");
    let network = confinement.report().layers.iter().find(|(layer, _)| *layer == Layer::Network);
    assert_eq!(network, Some(&(Layer::Network, Force::Full)));
    (Session { place, confinement }, gate.expect("the gate opens"))
}

/// Runs a bash script, and returns the result of `serve` meanwhile.
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
    // The relay itself leads nowhere: it sees itself as the target of the connection.
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
    // A socket to the packet filter, and one to the routing family with a change of a link.
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

/// Receives the events of calls, on a thread that ends with the sandbox.
fn heard(calls: &Arc<Calls>) -> Receiver<Call> {
    let (told, heard) = channel();
    let calls = Arc::clone(calls);
    std::thread::spawn(move || {
        while let Some(call) = calls.next() {
            let _unheard = told.send(call);
        }
    });
    heard
}

const PATIENCE: Duration = Duration::from_secs(10);

fn a_call_waits_until_it_is_let_go() {
    let (session, mut gate) = start(Hold::Connect);
    let calls = Arc::new(gate.calls.take().expect("calls are held"));
    let heard = heard(&calls);
    let v6 = gate.v6.as_ref().expect("IPv6");
    for address in ["192.0.2.7:80", "[2001:db8::7]:80", "127.0.0.1:5432"] {
        let wanted: SocketAddr = address.parse().expect("an address");
        let ends = if wanted.is_ipv4() { &gate.v4 } else { v6 };
        let script = connect(&wanted.ip().to_string(), wanted.port());
        let ((), output) = while_running(&session, &script, || {
            let call = heard.recv_timeout(PATIENCE).expect("a call");
            let Call::Waits { id, process, command, socket, address, is_unheard } = call else {
                panic!("{call:?}")
            };
            assert_eq!((address, is_unheard), (wanted, false));
            let status = |process| fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
            assert!(status(process).contains("(bash)"), "{}", status(process));
            assert!(status(command).contains(&format!(" {} ", gate.keeper)), "{}", status(command));
            let own = fs::read_dir(format!("/proc/{process}/fd")).expect("it runs").flatten();
            let mut own = own.filter_map(|entry| fs::read_link(entry.path()).ok());
            assert!(own.any(|link| link.to_string_lossy() == format!("socket:[{socket}]")));
            std::thread::sleep(Duration::from_millis(300));
            ends.relay.set_nonblocking(true).expect("set");
            assert!(ends.relay.accept().is_err(), "it has not waited");
            calls.release(id);
            accept(&ends.relay).0.write_all(b"from the host").expect("sent");
        });
        assert_eq!(output, "from the host");
    }
}

/// A port of the loopback on which no process inside listens: the host can connect the socket to another address.
fn an_unheard_call_can_be_led_elsewhere() {
    let (session, mut gate) = start(Hold::Connect);
    let calls = Arc::new(gate.calls.take().expect("calls are held"));
    let heard = heard(&calls);
    let script = connect("127.0.0.1", 5433);
    let next = || match heard.recv_timeout(PATIENCE).expect("a call") {
        Call::Waits { id, address, is_unheard: true, .. }
            if address == "127.0.0.1:5433".parse().expect("valid") =>
        {
            id
        }
        call @ (Call::Waits { .. } | Call::Gone { .. }) => panic!("{call:?}"),
    };
    let ((), output) = while_running(&session, &script, || {
        calls.redirect(next(), "198.19.255.253:5433".parse().expect("an address"));
        accept(&gate.v4.relay).0.write_all(b"from the host").expect("sent");
    });
    assert_eq!(output, "from the host");
    // If the host lets the call continue, the kernel refuses the connection.
    let ((), output) = while_running(&session, &script, || calls.release(next()));
    assert!(!output.contains("from the host"), "{output}");
    // A call that is heard inside does not wait.
    let listener = "perl -MIO::Socket::INET -e '$l = IO::Socket::INET->new(LocalAddr => q(127.0.0.1:5433), Listen => 1); \
        open(F, q(>), q(/tmp/ready)); close F; $c = $l->accept; print $c q(inside); close $c'";
    let script = format!("{listener} & until [ -e /tmp/ready ]; do sleep 0.05; done; {script}; wait");
    let ((), output) = while_running(&session, &script, || {
        assert!(heard.recv_timeout(Duration::from_secs(1)).is_err(), "it waited");
    });
    assert_eq!(output, "inside");
}

fn who_gives_up_is_told_of() {
    let (session, mut gate) = start(Hold::Connect);
    let calls = Arc::new(gate.calls.take().expect("calls are held"));
    let heard = heard(&calls);
    // Killed from inside, and with its command.
    let inside =
        format!("bash -c '{}' & sleep 0.3; kill -KILL $!; wait; echo ended", connect("192.0.2.7", 80));
    let (_, output) = while_running(&session, &inside, || {
        let Call::Waits { id, .. } = heard.recv_timeout(PATIENCE).expect("a call") else { panic!("a call") };
        assert_eq!(heard.recv_timeout(PATIENCE).expect("its end"), Call::Gone { id });
        // No caller is left to continue.
        calls.release(id);
    });
    assert!(output.contains("ended"), "{output}");
    let command = session.command(&["bash", "-c", &connect("192.0.2.7", 80)]);
    let (running, _output) = session.start(command).expect("starts");
    let Call::Waits { id, .. } = heard.recv_timeout(PATIENCE).expect("a call") else { panic!("a call") };
    running.kill();
    running.wait();
    assert_eq!(heard.recv_timeout(PATIENCE).expect("its end"), Call::Gone { id });
}

/// The address in memory changes while the call waits: the connection still leads to the host, which sees its real
/// target.
fn another_address_than_was_told_ends_at_the_host_too() {
    let (session, mut gate) = start(Hold::Connect);
    let calls = Arc::new(gate.calls.take().expect("calls are held"));
    let heard = heard(&calls);
    let script = "cat > swap.py <<'END'
import ctypes, mmap, os, socket, struct, time
memory = mmap.mmap(-1, 4096)
def put(address): memory[:16] = struct.pack('=H', socket.AF_INET) + struct.pack('!H', 80) + socket.inet_aton(address) + bytes(8)
put('192.0.2.7')
libc = ctypes.CDLL(None, use_errno=True)
if os.fork() == 0:
    s = socket.socket()
    libc.connect(s.fileno(), ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory))), 16)
    print(s.recv(64).decode(), flush=True)
    os._exit(0)
time.sleep(0.3)
put('192.0.2.9')
open('swapped', 'w')
os.wait()
END
exec python3 swap.py";
    let (meant, output) = while_running(&session, script, || {
        let call = heard.recv_timeout(PATIENCE).expect("a call");
        let Call::Waits { id, address, .. } = call else { panic!("{call:?}") };
        assert_eq!(address.to_string(), "192.0.2.7:80");
        eventually("the swap", || session.path("work/swapped").exists());
        calls.release(id);
        let (mut stream, _) = accept(&gate.v4.relay);
        stream.write_all(b"seen").expect("sent");
        SocketAddr::from(ip_original_dst(&stream).expect("known"))
    });
    assert_eq!((meant.to_string().as_str(), output.as_str()), ("192.0.2.9:80", "seen"));
}

fn what_stays_inside_does_not_wait() {
    let (session, mut gate) = start(Hold::Connect);
    let heard = heard(&Arc::new(gate.calls.take().expect("calls are held")));
    // A datagram, a DNS query, and a server inside under both of its addresses.
    let script = "exec 4<>/dev/udp/192.0.2.7/443; exec 5<>/dev/udp/192.0.2.53/53; \
                  perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 2, LocalPort => 8123) or die; \
                  for (qw(127.0.0.1 198.18.0.1)) { IO::Socket::INET->new(PeerAddr => $_, PeerPort => 8123) or die $! } \
                  print qq(inside\\n)'";
    session.run(session.command(&["bash", "-c", script])).expect("starts").assert(0, "inside");
    assert!(heard.try_recv().is_err());
}

fn the_host_reaches_servers_inside() {
    let (session, _gate) = gated();
    for (address, is_v6) in [("127.0.0.1:8123", false), ("[::1]:8124", true)] {
        let address: SocketAddr = address.parse().expect("an address");
        let script = format!(
            "perl -MSocket -MIO::Socket::IP -e '$s = IO::Socket::IP->new(Listen => 1, LocalHost => q({}), \
             LocalPort => {}) or die; $c = $s->accept; print $c qq(inside)'",
            address.ip(),
            address.port()
        );
        let (text, _) = while_running(&session, &script, || {
            let mut stream = None;
            eventually("the server", || {
                let socket = session.confinement.socket_inside(is_v6).expect("a socket");
                let to = rustix::net::connect(&socket, &address);
                stream = to.is_ok().then(|| TcpStream::from(socket));
                stream.is_some()
            });
            let mut text = String::new();
            stream.expect("connected").read_to_string(&mut text).expect("read");
            text
        });
        assert_eq!(text, "inside");
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
