//! SOCKS 5 with user name and password, see RFC 1928 and RFC 1929.

use std::net::{Ipv4Addr, Ipv6Addr};

use portcullis_decision::pattern::HostName;
use portcullis_decision::request::Endpoint;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::order::{Fault, Manner, Order, USER, is_token};
use super::socks_reply::{NO_SUCH_ADDRESS, NO_SUCH_COMMAND, V4, VERSION, reply};

const PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xff;
/// The version of the password negotiation, and its answers.
const PASSWORD_VERSION: u8 = 1;
const WELCOME: u8 = 0;
const UNWELCOME: u8 = 1;
const CONNECT: u8 = 1;
/// Address types.
const NAME: u8 = 3;
const V6: u8 = 4;

/// Reads the request of a program; its first byte has been read.
pub(super) async fn greet(token: &str, client: &mut TcpStream) -> Result<Order, Fault> {
    let methods = short(client).await?;
    if !methods.contains(&PASSWORD) {
        return Err(Fault::Told(vec![VERSION, NO_METHOD]));
    }
    client.write_all(&[VERSION, PASSWORD]).await?;
    let version = client.read_u8().await?;
    let (user, password) = (short(client).await?, short(client).await?);
    if version != PASSWORD_VERSION || user != USER.as_bytes() || !is_token(&password, token) {
        return Err(Fault::Told(vec![PASSWORD_VERSION, UNWELCOME]));
    }
    client.write_all(&[PASSWORD_VERSION, WELCOME]).await?;
    let (version, command, _, kind) =
        (client.read_u8().await?, client.read_u8().await?, client.read_u8().await?, client.read_u8().await?);
    if version != VERSION || command != CONNECT {
        return Err(Fault::Told(reply(NO_SUCH_COMMAND).to_vec()));
    }
    let host = match kind {
        V4 => Some(Endpoint::Address(Ipv4Addr::from(client.read_u32().await?).into())),
        V6 => Some(Endpoint::Address(Ipv6Addr::from(client.read_u128().await?).to_canonical())),
        NAME => String::from_utf8(short(client).await?)
            .ok()
            .filter(|name| name.is_ascii())
            .and_then(|name| HostName::parse(&name).ok()),
        _ => None,
    };
    let port = client.read_u16().await?;
    let host = host.ok_or_else(|| Fault::Told(reply(NO_SUCH_ADDRESS).to_vec()))?;
    Ok(Order { host, port, manner: Manner::Socks, beginning: Vec::new() })
}

/// Reads a byte string preceded by its length.
async fn short(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}
