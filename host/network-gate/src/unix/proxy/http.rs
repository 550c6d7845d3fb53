//! Reads HTTP proxy requests, see RFC 9110 7.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use super::order::{Fault, Manner, Order, USER, is_token};
use crate::inspect::head::{self, Ordered};
use crate::unix::refuse::{self, News};

/// The port of plain HTTP.
const PORT: u16 = 80;

/// Reads the request of a program; `first` is its first byte, which has been read.
pub(super) async fn greet(token: &str, client: &mut TcpStream, first: u8) -> Result<Order, Fault> {
    let told = |news, why: &str| Fault::Told(refuse::page(news, why));
    let mut bytes = vec![first];
    let mut known = 0;
    let end = loop {
        match head::end_behind(&bytes, known) {
            Ok(Some(end)) => break end,
            Ok(None) => known = bytes.len(),
            Err(problem) => return Err(told(News::Malformed, problem)),
        }
        if client.read_buf(&mut bytes).await? == 0 {
            return Err(Fault::Gone);
        }
    };
    let rest = bytes.split_off(end);
    let ordered = head::order(&bytes).map_err(|problem| told(News::Malformed, problem))?;
    if !ordered.password.as_deref().is_some_and(|given| is_known(given, token)) {
        return Err(Fault::Told(refuse::unknown()));
    }
    let Ordered { host, port, is_tunnel, head, .. } = ordered;
    if is_tunnel {
        let port = port.ok_or_else(|| told(News::Malformed, "a tunnel leads to a host and a port"))?;
        return Ok(Order { host, port, manner: Manner::Tunnel, beginning: rest });
    }
    let beginning = [head, rest].concat();
    Ok(Order { host, port: port.unwrap_or(PORT), manner: Manner::Request, beginning })
}

/// Checks that `Basic …` holds the session's token.
fn is_known(given: &str, token: &str) -> bool {
    let Some((scheme, encoded)) = given.split_once(' ') else { return false };
    let Ok(decoded) = STANDARD.decode(encoded.trim()) else { return false };
    let wanted = format!("{USER}:{token}");
    scheme.eq_ignore_ascii_case("basic") && is_token(&decoded, &wanted)
}
