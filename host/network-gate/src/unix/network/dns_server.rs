//! Answers the DNS queries of a network.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::dns;
use crate::unix::scope::Scope;

/// How long a DNS query over TCP may take to arrive.
const QUESTION: Duration = Duration::from_secs(10);

/// Answers DNS queries over UDP.
pub(super) async fn answer(socket: UdpSocket, scope: Arc<Scope>) {
    let mut question = vec![0; dns::QUERY_MAX];
    loop {
        // A client that has gone shows up as an error of the next call.
        let Ok((length, from)) = socket.recv_from(&mut question).await else { continue };
        if let Some(reply) = dns::answer(question.get(..length).unwrap_or_default(), &scope.shared.names) {
            let _unheard = socket.send_to(&reply, from).await;
        }
    }
}

/// Answers DNS queries on one TCP stream, each preceded by its length (RFC 1035 4.2.2).
pub(super) async fn answer_stream(scope: Arc<Scope>, mut stream: TcpStream, _from: SocketAddr) {
    while let Ok(Some(())) = timeout(QUESTION, answer_one(&scope, &mut stream)).await {}
}

async fn answer_one(scope: &Scope, stream: &mut TcpStream) -> Option<()> {
    let length = usize::from(stream.read_u16().await.ok()?);
    let mut question = vec![0; Some(length).filter(|&length| length <= dns::QUERY_MAX)?];
    stream.read_exact(&mut question).await.ok()?;
    let reply = dns::answer(&question, &scope.shared.names)?;
    let mut message = u16::try_from(reply.len()).ok()?.to_be_bytes().to_vec();
    message.extend(reply);
    stream.write_all(&message).await.ok()
}
