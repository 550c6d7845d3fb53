//! Tells a client that its connection is refused, in the client's own protocol if it is known.

use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::inspect::client_hello::is_tls;

/// A fatal `access_denied` alert in a TLS 1.2 record, which every version can read.
const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];
/// How long a client may take to send its first bytes, which show its protocol.
const FIRST_WORD: Duration = Duration::from_millis(300);
/// How long the client's remaining bytes are read.
///
/// If the socket were closed earlier, the kernel would drop the message.
const DRAIN: Duration = Duration::from_millis(200);

/// The kind of the refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    Denied,
    Malformed,
    Unreachable,
}

/// Tells the client the reason and closes the connection.
///
/// `beginning` holds the client's first bytes, if they are known.
pub(crate) async fn tell(client: TcpStream, beginning: &[u8], news: News, why: &str) {
    let mut peeked = [0; 16];
    let beginning = if beginning.is_empty() { peek(&client, &mut peeked).await } else { beginning };
    let message = match beginning.first() {
        Some(&first) if is_tls(first) && news != News::Unreachable => ACCESS_DENIED.to_vec(),
        Some(_) if is_http(beginning) => page(news, why),
        _ => return reset(&client),
    };
    say(client, &message).await;
}

/// Sends a message and closes the connection.
pub(crate) async fn say(mut client: TcpStream, message: &[u8]) {
    if client.write_all(message).await.is_ok() && client.shutdown().await.is_ok() {
        // Allocated here, so that the future of every connection does not contain it.
        let mut rest = vec![0; 4096];
        let drain = async { while client.read(&mut rest).await.is_ok_and(|length| length > 0) {} };
        let _in_time = timeout(DRAIN, drain).await;
    }
}

/// Makes the connection end with a reset when it is dropped.
///
/// Some clients would take an orderly end for an empty answer.
pub(crate) fn reset(client: &TcpStream) {
    // If this fails, the client sees an orderly end.
    let _unset = set_socket_linger(client, Some(Duration::ZERO));
}

async fn peek<'buffer>(client: &TcpStream, buffer: &'buffer mut [u8]) -> &'buffer [u8] {
    let length = timeout(FIRST_WORD, client.peek(buffer)).await.unwrap_or(Ok(0)).unwrap_or(0);
    buffer.get(..length).unwrap_or_default()
}

fn is_http(beginning: &[u8]) -> bool {
    let mut words = beginning.split(|&byte| byte == b' ');
    let method = words.next().unwrap_or_default();
    let is_known = matches!(
        method,
        b"GET" | b"HEAD" | b"POST" | b"PUT" | b"DELETE" | b"OPTIONS" | b"PATCH" | b"TRACE" | b"CONNECT"
    );
    let is_word = !method.is_empty() && method.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'-');
    is_known || is_word && words.next().is_some_and(|target| target.starts_with(b"/"))
}

/// Returns the answer for a program without the session's token.
pub(crate) fn unknown() -> Vec<u8> {
    let body = "portcullis: this proxy is for programs that know the session's token (PORTCULLIS_PROXY)\n";
    format!(
        "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"portcullis\"\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Returns an HTTP response.
pub(crate) fn page(news: News, why: &str) -> Vec<u8> {
    let status = match news {
        News::Denied => "403 Forbidden",
        News::Malformed => "400 Bad Request",
        News::Unreachable => "502 Bad Gateway",
    };
    let body = format!("portcullis: {why}\n");
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nX-Portcullis: refused\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_as_long_as_it_says() {
        let page = String::from_utf8(page(News::Denied, "no é")).unwrap();
        let (head, body) = page.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 403 Forbidden\r\n"));
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
        assert_eq!(body, "portcullis: no é\n");
    }

    #[test]
    fn only_http_gets_a_page() {
        assert!(is_http(b"GET / HTTP") && is_http(b"CONNECT a:1") && is_http(b"PROPFIND /a"));
        assert!(!is_http(b"get / HTTP") && !is_http(b"EHLO me") && !is_http(b""));
    }
}
