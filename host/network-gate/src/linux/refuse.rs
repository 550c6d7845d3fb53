//! What a client is told in place of an answer: in the words of the protocol it speaks, as far as it is known.

use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::inspect::client_hello::is_tls;

/// A fatal alert in a record of TLS 1.2, which every version reads: `access_denied`.
const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];
/// How long a client may take to show what it speaks; who speaks first says it at once.
const FIRST_WORD: Duration = Duration::from_millis(300);
/// How long the client's last bytes are taken: closed earlier, the kernel would drop what was sent to it.
const DRAIN: Duration = Duration::from_millis(200);

/// How bad the news is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    Denied,
    Malformed,
    Unreachable,
}

/// Tells the client why and closes the connection. `beginning` is what is known to be its first bytes.
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

/// Says something and closes the connection.
pub(crate) async fn say(mut client: TcpStream, message: &[u8]) {
    if client.write_all(message).await.is_ok() && client.shutdown().await.is_ok() {
        // Not a part of every connection that might come to this.
        let mut rest = vec![0; 4096];
        let drain = async { while client.read(&mut rest).await.is_ok_and(|length| length > 0) {} };
        let _in_time = timeout(DRAIN, drain).await;
    }
}

/// Has the connection reset when it is dropped, for clients that would take an end for an empty answer.
pub(crate) fn reset(client: &TcpStream) {
    // Without it the client sees an ordinary end.
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

/// What a program reads that does not know the session's token.
pub(crate) fn unknown() -> Vec<u8> {
    let body = "portcullis: this proxy is for programs that know the session's token (PORTCULLIS_PROXY)\n";
    format!(
        "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"portcullis\"\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// An answer in HTTP.
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
