//! The first message of a TLS client: no server finds another name in it than this parser, or one that it misses.
//! `cargo +nightly fuzz run client_hello --no-default-features --features network`
//!
//! The parser is compared with that of a server (rustls), which shows what names reach a server, and with one for
//! passive inspection (tls-parser), which reports every extension.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_network_gate::inspect::client_hello::{ClientHello, Hello, is_tls, read};
use rustls::server::Acceptor;
use tls_parser::{SNIType, TlsExtension, TlsExtensionType, parse_tls_client_hello_extensions};

const ENCRYPTED_HELLO: TlsExtensionType = TlsExtensionType(0xfe0d);
/// `signature_algorithms`, without which rustls accepts no hello.
const SIGNATURES: [u8; 8] = [0, 13, 0, 4, 0, 2, 4, 3];

fuzz_target!(|bytes: &[u8]| {
    if bytes.first().is_some_and(|first| is_tls(*first)) {
        beside_a_server(bytes);
    }
    // The same bytes as all extensions of an otherwise valid hello, in records of a derived length.
    let Some(message) = hello(bytes) else { return };
    let step = bytes.first().map_or(usize::MAX, |first| usize::from(*first) + 1);
    let records: Vec<u8> = message.chunks(step.max(message.len() / 32)).flat_map(record).collect();
    beside_a_server(&records);
    let read = read(&records);
    if let Hello::Whole(_, length) = read {
        assert_eq!(length, records.len(), "{bytes:?}");
    }
    beside_an_onlooker(&read, bytes);
});

/// A name that rustls accepts is the same here, or the hello is refused.
fn beside_a_server(bytes: &[u8]) {
    let Some(name) = by_rustls(bytes) else { return };
    match read(bytes) {
        Hello::Malformed(_) => {}
        Hello::Whole(ClientHello { server_name, .. }, _) => {
            let same = server_name.as_deref().is_some_and(|ours| ours.eq_ignore_ascii_case(&name));
            assert!(same, "{server_name:?}, but a server reads {name:?} in {bytes:?}");
        }
        Hello::Incomplete => panic!("a server has read {name:?} already in {bytes:?}"),
    }
}

fn by_rustls(mut bytes: &[u8]) -> Option<String> {
    let mut acceptor = Acceptor::default();
    while acceptor.read_tls(&mut bytes).ok()? > 0 {
        if let Some(accepted) = acceptor.accept().ok()? {
            return accepted.client_hello().server_name().map(str::to_owned);
        }
    }
    None
}

/// Compares all names, and whether one may be hidden.
fn beside_an_onlooker(read: &Hello, extensions: &[u8]) {
    let Hello::Whole(hello, _) = read else { return };
    let Ok(([], all)) = parse_tls_client_hello_extensions(extensions) else { return };
    let is_hiding = all.iter().any(|one| TlsExtensionType::from(one) == ENCRYPTED_HELLO);
    assert_eq!(hello.is_hiding, is_hiding, "{extensions:?}");
    let names = all.iter().filter_map(|one| match one {
        TlsExtension::SNI(names) => Some(names.as_slice()),
        _ => None,
    });
    let names: Vec<_> = names.flatten().filter(|(kind, _)| *kind == SNIType::HostName).collect();
    let ours = hello.server_name.as_deref().map(str::as_bytes);
    assert_eq!(
        names.iter().map(|(_, name)| *name).collect::<Vec<_>>(),
        Vec::from_iter(ours),
        "{extensions:?}"
    );
}

/// Returns a client hello with these extensions; `None` if they are too long.
fn hello(extensions: &[u8]) -> Option<Vec<u8>> {
    let extensions = vector(2, &[&SIGNATURES, extensions].concat())?;
    let cipher_suites = vector(2, &[0x13, 1, 0xc0, 0x2b])?;
    let body = [&[3, 3], [7; 32].as_slice(), &[0], &cipher_suites, &[1, 0], &extensions].concat();
    Some([&[1], vector(3, &body)?.as_slice()].concat())
}

fn record(fragment: &[u8]) -> Vec<u8> {
    let length = u16::try_from(fragment.len()).expect("extensions are no longer").to_be_bytes();
    [&[22, 3, 1], length.as_slice(), fragment].concat()
}

/// Returns bytes preceded by their length, in this many bytes.
fn vector(length_bytes: usize, content: &[u8]) -> Option<Vec<u8>> {
    let length = content.len().to_be_bytes();
    let (above, length) = length.split_at(length.len() - length_bytes);
    above.iter().all(|byte| *byte == 0).then(|| [length, content].concat())
}
