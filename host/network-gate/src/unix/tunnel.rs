//! Connections through the user's own proxy.

use std::io;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portcullis_decision::request::Endpoint;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::unix::proxy_tls;
use crate::upstream::{Protocol, Upstream};

/// The longest accepted answer of a proxy, in bytes.
const ANSWER_MAX: usize = 16 * 1024;
const SOCKS: u8 = 5;
const WITHOUT: u8 = 0;
const WITH_PASSWORD: u8 = 2;
const PASSWORD_VERSION: u8 = 1;
const CONNECT: u8 = 1;
const V4: u8 = 1;
const NAME: u8 = 3;
const V6: u8 = 4;

/// Connects to the proxy and has it connect to `target`. A domain is passed on by name.
pub(super) async fn open(upstream: &Upstream, target: &Endpoint, port: u16) -> io::Result<TcpStream> {
    let host = upstream.host.to_string();
    let mut proxy = TcpStream::connect((host, upstream.port)).await?;
    match upstream.protocol {
        Protocol::Http => ask_http(&mut proxy, upstream, target, port).await?,
        Protocol::Socks => ask_socks(&mut proxy, upstream, target, port).await?,
        Protocol::Https => {
            let mut secured = proxy_tls::secure(proxy, &upstream.host).await?;
            ask_http(&mut secured, upstream, target, port).await?;
            return proxy_tls::carry(secured);
        }
    }
    Ok(proxy)
}

async fn ask_http(
    proxy: &mut (impl AsyncRead + AsyncWrite + Unpin),
    upstream: &Upstream,
    target: &Endpoint,
    port: u16,
) -> io::Result<()> {
    let place = target.with_port(port);
    let credentials = match &upstream.credentials {
        Some((user, password)) => {
            format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(format!("{user}:{password}")))
        }
        None => String::new(),
    };
    let request = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{credentials}\r\n");
    proxy.write_all(request.as_bytes()).await?;
    proxy.flush().await?;
    // Read byte by byte: the bytes after the answer belong to the server, which may speak first.
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() >= ANSWER_MAX {
            return Err(proxy_error("it answered at too great a length"));
        }
        answer.push(proxy.read_u8().await?);
    }
    let line = answer.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let is_yes =
        line.starts_with("HTTP/1.") && line.split(' ').nth(1).is_some_and(|code| code.starts_with('2'));
    let shown: String = line.chars().filter(|character| !character.is_control()).take(100).collect();
    if is_yes { Ok(()) } else { Err(proxy_error(&format!("it answered `{shown}`"))) }
}

async fn ask_socks(
    proxy: &mut TcpStream,
    upstream: &Upstream,
    target: &Endpoint,
    port: u16,
) -> io::Result<()> {
    let method = if upstream.credentials.is_some() { WITH_PASSWORD } else { WITHOUT };
    proxy.write_all(&[SOCKS, 1, method]).await?;
    if [proxy.read_u8().await?, proxy.read_u8().await?] != [SOCKS, method] {
        return Err(proxy_error("it wants to be asked otherwise"));
    }
    if let Some((user, password)) = &upstream.credentials {
        let message = [vec![PASSWORD_VERSION], short(user)?, short(password)?].concat();
        proxy.write_all(&message).await?;
        if [proxy.read_u8().await?, proxy.read_u8().await?] != [PASSWORD_VERSION, 0] {
            return Err(proxy_error("it does not know the user or the password"));
        }
    }
    let place = match target {
        Endpoint::Address(IpAddr::V4(address)) => [&[V4], address.octets().as_slice()].concat(),
        Endpoint::Address(IpAddr::V6(address)) => [&[V6], address.octets().as_slice()].concat(),
        Endpoint::Domain(name) => [&[NAME], short(name)?.as_slice()].concat(),
    };
    proxy.write_all(&[&[SOCKS, CONNECT, 0], place.as_slice(), &port.to_be_bytes()].concat()).await?;
    let (_version, code) = (proxy.read_u8().await?, proxy.read_u8().await?);
    let (_reserved, kind) = (proxy.read_u8().await?, proxy.read_u8().await?);
    let length = match kind {
        V4 => 4,
        V6 => 16,
        NAME => usize::from(proxy.read_u8().await?),
        _ => return Err(proxy_error("it answered something that is no SOCKS")),
    };
    let mut bound = vec![0; length + 2];
    proxy.read_exact(&mut bound).await?;
    if code == 0 { Ok(()) } else { Err(proxy_error(&format!("it answered with the code {code}"))) }
}

/// Returns a text preceded by its length.
fn short(text: &str) -> io::Result<Vec<u8>> {
    let length = u8::try_from(text.len()).map_err(|_too_long| proxy_error("a name is too long for it"))?;
    Ok([&[length], text.as_bytes()].concat())
}

fn proxy_error(why: &str) -> io::Error {
    io::Error::other(format!("the proxy in `parentProxy` did not connect: {why}"))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::upstream::Unresolved;

    /// Connects through a fake proxy that expects and sends `talk`; returns the bytes of the server behind it.
    fn check(
        protocol: Protocol,
        named: bool,
        target: Endpoint,
        talk: &[(&[u8], &[u8])],
    ) -> io::Result<Vec<u8>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            let credentials = named.then(|| ("me".to_owned(), "secret".to_owned()));
            let host = Endpoint::Address(address.ip());
            let upstream =
                Upstream { protocol, host, port: address.port(), credentials, unresolved: Unresolved::Left };
            let serve = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                for (expected, answer) in talk {
                    let mut heard = vec![0; expected.len()];
                    stream.read_exact(&mut heard).await.unwrap();
                    assert_eq!(String::from_utf8_lossy(&heard), String::from_utf8_lossy(expected));
                    stream.write_all(answer).await.unwrap();
                }
            };
            let ask = async {
                let mut rest = Vec::new();
                open(&upstream, &target, 443).await?.read_to_end(&mut rest).await?;
                Ok(rest)
            };
            tokio::join!(serve, ask).1
        })
    }

    fn domain() -> Endpoint {
        Endpoint::Domain("a.test".to_owned())
    }

    #[test]
    fn http() {
        let request = b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n".as_slice();
        // The server's first bytes may arrive together with the proxy's answer.
        let answer = b"HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n220 hello".as_slice();
        assert_eq!(check(Protocol::Http, false, domain(), &[(request, answer)]).unwrap(), b"220 hello");
        let known = b"CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n\
                      Proxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n"
            .as_slice();
        let address = Endpoint::Address("2001:db8::1".parse().unwrap());
        assert_eq!(check(Protocol::Http, true, address, &[(known, answer)]).unwrap(), b"220 hello");
        for no in ["HTTP/1.1 403 No\x1b\r\n\r\n", "HTTP/1.1 407 Who\r\n\r\n", "200 OK\r\n\r\n"] {
            let error = check(Protocol::Http, false, domain(), &[(request, no.as_bytes())]).unwrap_err();
            assert!(error.to_string().contains("did not connect") && !error.to_string().contains('\x1b'));
        }
        // A proxy that closes the connection in the middle of its answer.
        check(Protocol::Http, false, domain(), &[(request, b"HTTP/1.1 200")]).unwrap_err();
    }

    #[test]
    fn socks() {
        let place = b"\x05\x01\x00\x03\x06a.test\x01\xbb".as_slice();
        let yes = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00220 hello".as_slice();
        let plain = [(b"\x05\x01\x00".as_slice(), b"\x05\x00".as_slice()), (place, yes)];
        assert_eq!(check(Protocol::Socks, false, domain(), &plain).unwrap(), b"220 hello");
        let hello = (b"\x05\x01\x02".as_slice(), b"\x05\x02".as_slice());
        let known = [hello, (b"\x01\x02me\x06secret", b"\x01\x00"), (place, yes)];
        assert_eq!(check(Protocol::Socks, true, domain(), &known).unwrap(), b"220 hello");
        check(Protocol::Socks, true, domain(), &[hello, (b"\x01\x02me\x06secret", b"\x01\x01")]).unwrap_err();
        let no = [plain[0], (place, b"\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00")];
        check(Protocol::Socks, false, domain(), &no).unwrap_err();
        check(Protocol::Socks, false, domain(), &[(b"\x05\x01\x00", b"\x05\xff")]).unwrap_err();
    }
}
