//! Collectors over TCP, TLS and datagrams.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use base64::Engine as _;
use portcullis_export::{Destination, ExportError, SendError};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::world::{World, destination, write};

/// Accepts one connection, and returns what arrives until its end.
fn accept(listener: TcpListener) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("read");
        bytes
    })
}

fn tcp() -> (TcpListener, Destination) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port();
    (listener, destination(&format!("format = \"syslog\"\nto = \"tcp://127.0.0.1:{port}\"")))
}

/// Splits octet-counted messages.
fn messages(mut bytes: &[u8]) -> Vec<String> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let space = bytes.iter().position(|byte| *byte == b' ').expect("a length");
        let length: usize = std::str::from_utf8(&bytes[..space]).unwrap().parse().expect("a length");
        let (message, rest) = bytes[space + 1..].split_at(length);
        messages.push(String::from_utf8(message.to_vec()).unwrap());
        bytes = rest;
    }
    messages
}

#[test]
fn a_batch_over_tcp_is_accepted_when_the_other_end_has_read_it() {
    let world = World::new();
    let (listener, destination) = tcp();
    write(&world.log("one"), 3);
    let server = accept(listener);
    assert_eq!(world.drain(&destination), 6);
    let messages = messages(&server.join().unwrap());
    assert_eq!(messages.len(), 6);
    assert!(
        messages[0].contains(" portcullis ") && messages[0].contains("\"id\":\"one:1\""),
        "{}",
        messages[0]
    );
}

#[test]
fn a_collector_that_stops_amid_a_batch_has_not_accepted_it() {
    let world = World::new();
    let (listener, destination) = tcp();
    write(&world.log("one"), 300);
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.read_exact(&mut [0; 100]).expect("read");
        // It closes with unread data.
        drop(stream);
        accept(listener).join().unwrap()
    });
    let mut exporter = world.exporter(&destination).unwrap();
    let error = exporter.step().unwrap_err();
    assert!(matches!(error, ExportError::Send(SendError::Unclear { .. })), "{error:?}");
    exporter.step().unwrap();
    let messages = messages(&server.join().unwrap());
    assert!(messages.iter().all(|message| message.contains("\"repeated\":true")));
    assert!(messages[0].contains("\"id\":\"one:1\""), "{}", messages[0]);
}

/// A certificate authority in a file, and the configuration of a server that it has signed.
fn authority(world: &World, name: &str) -> (String, Arc<ServerConfig>) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut parameters = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = parameters.self_signed(&key).expect("a certificate");
    let file = world.root.path().join(format!("{name}.pem"));
    let text = base64::engine::general_purpose::STANDARD.encode(ca.der());
    let pem = format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
    std::fs::write(&file, pem).expect("written");
    let issuer = rcgen::Issuer::new(parameters, key);
    let server_key = rcgen::KeyPair::generate().expect("a key");
    let server = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
    let server = server.signed_by(&server_key, &issuer).expect("a certificate");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![server.der().clone()], PrivateKeyDer::Pkcs8(server_key.serialize_der().into()))
        .expect("a configuration");
    (file.display().to_string(), Arc::new(config))
}

fn encrypted(stream: TcpStream, config: Arc<ServerConfig>) -> std::io::Result<Vec<u8>> {
    let connection = ServerConnection::new(config).expect("a connection");
    let mut stream = StreamOwned::new(connection, stream);
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    stream.conn.send_close_notify();
    stream.flush()?;
    Ok(bytes)
}

#[test]
fn tls_trusts_the_named_authority_alone() {
    let world = World::new();
    let (ca, config) = authority(&world, "ours");
    let (foreign, _) = authority(&world, "foreign");
    write(&world.log("one"), 2);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let refused = encrypted(listener.accept().unwrap().0, Arc::clone(&config));
        let accepted = encrypted(listener.accept().unwrap().0, config);
        (refused, accepted)
    });
    let to = |ca: &str| {
        destination(&format!("format = \"syslog\"\nto = \"tls://127.0.0.1:{port}\"\nca = \"{ca}\""))
    };
    let error = world.exporter(&to(&foreign)).unwrap().step().unwrap_err();
    assert!(matches!(error, ExportError::Send(SendError::NotSent { .. })), "{error:?}");
    assert!(error.to_string().contains("certificate"), "{error}");
    assert_eq!(world.drain(&to(&ca)), 4);
    let (refused, accepted) = server.join().unwrap();
    assert!(refused.is_err());
    let messages = messages(&accepted.unwrap());
    assert_eq!(messages.len(), 4);
    assert!(!messages[0].contains("repeated"), "{}", messages[0]);

    let error = world.exporter(&to("/nonexistent.pem")).unwrap_err();
    assert!(error.to_string().contains("reading `/nonexistent.pem`"), "{error}");
}

#[test]
fn datagrams_have_one_record_each() {
    let world = World::new();
    let path = world.root.path().join("socket");
    write(&world.log("one"), 2);
    let lines =
        |format: &str| destination(&format!("format = \"{format}\"\nto = \"unix://{}\"", path.display()));
    let error = world.exporter(&lines("journald")).unwrap().step().unwrap_err();
    assert!(matches!(error, ExportError::Send(SendError::NotSent { .. })), "{error:?}");
    for (format, begin) in [("journald", "MESSAGE=echo 0\n"), ("syslog", "<110>1 ")] {
        drop(std::fs::remove_file(&path));
        let socket = UnixDatagram::bind(&path).unwrap();
        // Each format has a cursor of its own here.
        drop(std::fs::remove_dir_all(world.state()));
        assert_eq!(world.drain(&lines(format)), 4);
        let mut buffer = [0; 65536];
        let first = socket.recv(&mut buffer).unwrap();
        let text = String::from_utf8_lossy(&buffer[..first]).into_owned();
        assert!(text.starts_with(begin), "{text}");
    }
}
