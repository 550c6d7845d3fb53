use std::net::Ipv4Addr;

use portcullis_decision::request::Endpoint;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::*;
use crate::judge::{Checks, Stages};
use crate::unix::client::Owner;
use crate::unix::network::hold::tests::Stand;

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(100);

/// Relays a connection to a server, while `act` plays the client and the server.
async fn carried<Acting: Future<Output = ()>>(
    scope: &Scope,
    act: impl FnOnce(TcpStream, TcpStream) -> Acting,
) -> Result<(), Cut> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = TcpStream::connect(address).await.unwrap();
    let (mut from_client, from) = listener.accept().await.unwrap();
    let mut to_server = TcpStream::connect(address).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    let target = Endpoint::Address(address.ip());
    let wanted = Wanted { target, port: address.port(), client: from, server: address };
    let attempt = wanted.attempt_of(Owner::default());
    let pump = Pump {
        scope,
        attempt: &attempt,
        wanted: &wanted,
        spent: &scope.shared.budgets.account(&wanted.target, wanted.port, u64::MAX),
        traffic: &Traffic::default(),
        inspector: Mutex::new(Inspector::new(
            &wanted.target,
            wanted.port,
            // The bytes are no matter of these tests.
            Checks { names_match: false, ..Checks::default() },
            Stages::default(),
        )),
        answered: Notify::new(),
        unanswered: Notify::new(),
        deserted: SHORT,
        first: Vec::new(),
        broker: None,
        finder: Mutex::default(),
    };
    let (run, ()) = tokio::join!(pump.run(&mut from_client, &mut to_server), act(client, server));
    run
}

#[tokio::test]
async fn a_server_does_not_keep_the_place_of_a_client_that_is_gone() {
    let stand = Stand::new(LONG).await;
    let done = carried(&stand.scope, async |client, mut server| {
        // As long as the client is there, it may wait for an answer.
        let (mut reads, mut writes) = client.into_split();
        writes.shutdown().await.unwrap();
        let mut byte = [0];
        assert_eq!(server.read(&mut byte).await.unwrap(), 0);
        assert!(timeout(4 * SHORT, reads.read(&mut byte)).await.is_err(), "still carried");
        server.write_all(b"x").await.unwrap();
        assert_eq!(timeout(LONG, reads.read(&mut byte)).await.unwrap().unwrap(), 1);
        drop((reads, writes));
        // The server neither sends nor closes.
        tokio::time::sleep(SHORT).await;
        std::mem::forget(server);
    });
    timeout(LONG, done).await.expect("it ends").unwrap();
}

#[tokio::test]
async fn memory_is_held_only_by_what_is_on_its_way() {
    const MUCH: usize = 4 << 20;
    for free in [WIDE_MAX, 0] {
        let stand = Stand::new(LONG).await;
        let chunks = Arc::clone(&stand.scope.shared.chunks);
        let _others =
            Arc::clone(&chunks).try_acquire_many_owned(u32::try_from(WIDE_MAX - free).unwrap()).unwrap();
        let done = carried(&stand.scope, async |mut client, mut server| {
            let (mut got, sent) = (vec![0; MUCH], vec![7; MUCH]);
            let (written, read) = tokio::join!(client.write_all(&sent), server.read_exact(&mut got));
            written.unwrap();
            read.unwrap();
            assert_eq!(got, sent);
            let (written, read) = tokio::join!(server.write_all(&sent), client.read_exact(&mut got));
            written.unwrap();
            read.unwrap();
            assert_eq!(chunks.available_permits(), free, "nothing is held by what is idle");
        });
        timeout(LONG, done).await.expect("it ends").unwrap();
    }
}
