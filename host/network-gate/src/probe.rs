//! One request to a server outside of any session, to see whether it accepts a credential.

use std::net::ToSocketAddrs as _;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use portcullis_credential_broker::{Form, Secret, Verified, upstream_tls};
use portcullis_decision::request::Endpoint;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

/// The name by which the program introduces itself; some servers refuse requests without one.
const AGENT: &str = concat!("portcullis/", env!("CARGO_PKG_VERSION"));
/// The port of HTTPS.
const TLS_PORT: u16 = 443;
/// Why no request to a host can be signed.
const NO_SCOPE: &str =
    "the name of the host does not tell service and region; write them in `services` and `regions`";
/// The user name of `Basic` if the settings have none.
const USER: &str = "x-access-token";

/// A request that changes nothing.
#[derive(Debug, Clone)]
pub struct Probe {
    /// The server.
    pub host: Endpoint,
    /// Its port, on which it speaks TLS.
    pub port: u16,
    /// The path, with the query.
    pub path: String,
    /// The place of the credential.
    pub form: Form,
    /// How long the server may take.
    pub patience: Duration,
}

/// Sends a `GET` with a credential, or without one, and returns the status of the answer. Its body is not read.
///
/// # Errors
/// When there is no answer; the error says why, and contains nothing of the credential.
pub fn probe(wanted: &Probe, secret: Option<&Secret>) -> Result<u16, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let host = wanted.host.to_string();
    let answer =
        runtime.block_on(async { tokio::time::timeout(wanted.patience, status(wanted, secret)).await });
    // A look-up of the name may still block.
    runtime.shutdown_background();
    match answer {
        Ok(answer) => answer.map(|status| status.as_u16()),
        Err(_) => Err(format!("`{host}` does not answer within {} seconds", wanted.patience.as_secs())),
    }
}

async fn status(wanted: &Probe, secret: Option<&Secret>) -> Result<StatusCode, String> {
    let host = &wanted.host;
    let (name, port) = (host.to_string(), wanted.port);
    let look_up = {
        let place = (name.trim_matches(['[', ']']).to_owned(), port);
        move || place.to_socket_addrs().map(Iterator::collect::<Vec<_>>)
    };
    let found = tokio::task::spawn_blocking(look_up).await.map_err(|error| error.to_string())?;
    let found = found.map_err(|error| format!("`{name}` is not found: {error}"))?;
    let stream = TcpStream::connect(found.as_slice()).await;
    let stream = stream.map_err(|error| format!("connecting to `{}`: {error}", host.with_port(port)))?;
    let server = match host {
        Endpoint::Domain(name) => ServerName::try_from(name.clone()).map_err(|error| error.to_string())?,
        Endpoint::Address(address) => ServerName::from(*address),
    };
    let secured = TlsConnector::from(upstream_tls()?).connect(server, stream).await;
    let secured = secured.map_err(|error| format!("TLS with `{name}` failed: {error}"))?;
    let broken = |error: hyper::Error| format!("`{name}` sent no answer: {error}");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(secured)).await.map_err(broken)?;
    let request = request(wanted, secret)?;
    tokio::select! {
        answer = sender.send_request(request) => answer.map(|answer| answer.status()).map_err(broken),
        ended = connection => Err(match ended {
            Ok(()) => format!("`{name}` sent no answer"),
            Err(error) => broken(error),
        }),
    }
}

fn request(wanted: &Probe, secret: Option<&Secret>) -> Result<Request<Empty<Bytes>>, String> {
    let place = match wanted.port {
        TLS_PORT => wanted.host.to_string(),
        port => wanted.host.with_port(port),
    };
    let mut request = Request::builder().uri(&wanted.path).header(HOST, place).header(USER_AGENT, AGENT);
    let bad_path = |error| format!("the path `{}`: {error}", wanted.path);
    let Some(secret) = secret else { return request.body(Empty::new()).map_err(bad_path) };
    if let Form::Aws(limits) = &wanted.form {
        let (service, region) = limits.for_host(&wanted.host).ok_or(NO_SCOPE)?;
        let verified = Verified::of_own_request(service, region);
        let (name, hash) = verified.payload_header();
        let request = request.header(name, hash).body(Empty::new()).map_err(bad_path)?;
        let (mut parts, body) = request.into_parts();
        let keys = secret.aws().ok_or("they are no keys of AWS")?;
        verified.sign(keys, &mut parts, SystemTime::now())?;
        return Ok(Request::from_parts(parts, body));
    }
    let (name, value) = header(&wanted.form, secret)?;
    request = request.header(name, value);
    request.body(Empty::new()).map_err(bad_path)
}

fn header(form: &Form, secret: &Secret) -> Result<(HeaderName, HeaderValue), String> {
    let text = secret.text().ok_or("it is no text, as its form wants it")?;
    let (name, text) = match form {
        Form::Bearer => (AUTHORIZATION, Zeroizing::new(format!("Bearer {text}"))),
        Form::Basic { user } => {
            let both = Zeroizing::new(format!("{}:{text}", user.as_deref().unwrap_or(USER)));
            (AUTHORIZATION, Zeroizing::new(format!("Basic {}", STANDARD.encode(both.as_bytes()))))
        }
        Form::Header(name) => {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
            (name, Zeroizing::new(text.to_owned()))
        }
        Form::Aws(_) => return Err("it signs requests, and stands in none".to_owned()),
    };
    let mut value = HeaderValue::from_str(&text).map_err(|_error| "it fits in no header".to_owned())?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(form: Form) -> Probe {
        let host = Endpoint::Domain("forge.test".to_owned());
        Probe { host, port: 8443, path: "/user?a=b".to_owned(), form, patience: Duration::from_secs(1) }
    }

    #[test]
    fn the_credential_is_in_its_place_and_is_not_shown() {
        let secret = Secret::new(Zeroizing::new("s3cr3t".to_owned())).unwrap();
        let basic = format!("Basic {}", STANDARD.encode("me:s3cr3t"));
        for (form, name, value) in [
            (Form::Bearer, "authorization", "Bearer s3cr3t"),
            (Form::Basic { user: Some("me".to_owned()) }, "authorization", basic.as_str()),
            (Form::Header("x-key".to_owned()), "x-key", "s3cr3t"),
        ] {
            let request = request(&wanted(form), Some(&secret)).unwrap();
            assert_eq!(request.headers().get(name).unwrap(), value);
            assert_eq!(request.headers().get(HOST).unwrap(), "forge.test:8443");
            assert!(!format!("{request:?}").contains("s3cr3t"));
        }
        let anonymous = request(&wanted(Form::Bearer), None).unwrap();
        assert!(anonymous.headers().get(AUTHORIZATION).is_none());
    }

    #[test]
    fn a_server_that_hangs_is_not_waited_for() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let host = Endpoint::Address(std::net::Ipv4Addr::LOCALHOST.into());
        let why = probe(&Probe { host, port, ..wanted(Form::Bearer) }, None).unwrap_err();
        // Without certificates of this machine, it says that.
        assert!(why.contains("does not answer within 1 seconds") || why.contains("ca-certificates"), "{why}");
    }
}
