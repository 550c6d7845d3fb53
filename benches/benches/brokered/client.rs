//! The client: it sends requests and clones, as it is told line by line.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// The variable with the placeholder inside.
pub(crate) const TOKEN: &str = "BENCH_TOKEN";
/// Requests of one round on a kept connection, and on new ones.
pub(crate) const KEPT: usize = 200;
pub(crate) const NEW: usize = 30;

type Connection = StreamOwned<ClientConnection, TcpStream>;

/// Executes orders such as `kept 8443`.
pub(crate) fn run() {
    let configuration = configuration();
    let mut kept: HashMap<u16, Connection> = HashMap::new();
    for order in std::io::stdin().lines() {
        let order = order.expect("an order");
        let (kind, port) = order.split_once(' ').expect("a kind and a port");
        let port: u16 = port.parse().expect("a port");
        match kind {
            "kept" => {
                let connection = kept.entry(port).or_insert_with(|| connect(port, &configuration));
                (0..KEPT).for_each(|_| request(connection, port));
            }
            "new" => (0..NEW).for_each(|_| request(&mut connect(port, &configuration), port)),
            "clone" => clone(port),
            program => super::programs::run(program, port, &token()),
        }
        println!("done");
    }
}

fn configuration() -> Arc<ClientConfig> {
    let file = std::env::var_os("SSL_CERT_FILE").expect("certificates");
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).expect("certificates") {
        roots.add(certificate.expect("a certificate")).expect("an authority");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.expect("versions of TLS").with_root_certificates(roots);
    let mut configuration = builder.with_no_client_auth();
    // A new program has no session to resume.
    configuration.resumption = rustls::client::Resumption::disabled();
    Arc::new(configuration)
}

fn connect(port: u16, configuration: &Arc<ClientConfig>) -> Connection {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.set_nodelay(true).expect("a setting");
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    StreamOwned::new(ClientConnection::new(Arc::clone(configuration), name).expect("TLS"), stream)
}

/// Sends a small request, and reads the answer.
fn request(connection: &mut Connection, port: u16) {
    let token = token();
    let authorization =
        if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
    let head = format!("GET /small HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: */*\r\n{authorization}\r\n");
    connection.write_all(head.as_bytes()).expect("a request");
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    while !answer.ends_with(super::server::END) {
        match connection.read(&mut piece).expect("an answer") {
            0 => break,
            length => answer.extend_from_slice(piece.get(..length).expect("the piece")),
        }
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
}

/// Returns the placeholder; empty outside.
fn token() -> String {
    std::env::var(TOKEN).unwrap_or_default()
}

fn clone(port: u16) {
    let target = Path::new("cloned.git");
    let token = token();
    let header = format!("http.extraHeader=Authorization: Bearer {token}");
    let place = format!("https://127.0.0.1:{port}/git/repository/.git");
    let done =
        Command::new("git").args(["-c", &header, "clone", "-q", "--bare", &place]).arg(target).status();
    assert!(done.expect("git").success(), "the clone");
    std::fs::remove_dir_all(target).expect("it is there");
}
