//! The server: small answers, and git's own HTTP server behind TLS, on two ports.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The credential that the gate puts in.
pub(crate) const SECRET: &str = "s3cr3t-Credential-of-the-benchmark";
/// The end of the small answer.
pub(crate) const END: &[u8] = b"the end\n";

/// Starts the server, and writes the certificate of its authority. Returns its two ports.
pub(crate) fn start(root: &Path, authority: &Path) -> (u16, u16) {
    let configuration = Arc::new(configuration(authority));
    let [one, other] = [(), ()].map(|()| listen(root.to_owned(), Arc::clone(&configuration)));
    (one, other)
}

fn configuration(authority: &Path) -> ServerConfig {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // With the usual name, which the server's certificate has too, OpenSSL takes that one for self-signed.
    params.distinguished_name.push(DnType::CommonName, "the authority of the benchmark");
    let certificate = params.self_signed(&key).expect("a certificate");
    let body = STANDARD.encode(certificate.der());
    let pem = format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n");
    std::fs::write(authority, pem).expect("a file");
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
    let certificate = params.signed_by(&key, &issuer).expect("a certificate").der().clone();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.expect("versions of TLS").with_no_client_auth();
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    builder.with_single_cert(vec![certificate], key).expect("a configuration")
}

fn listen(root: PathBuf, configuration: Arc<ServerConfig>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    serve(listener, root, configuration);
    port
}

fn serve(listener: TcpListener, root: PathBuf, configuration: Arc<ServerConfig>) {
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (root, configuration) = (root.clone(), Arc::clone(&configuration));
            // A connection that breaks belongs to a client that has ended.
            std::thread::spawn(move || drop(attend(stream, configuration, &root)));
        }
    });
}

/// A request: its line, and its headers in small letters.
struct Asked {
    line: String,
    headers: Vec<(String, String)>,
}

impl Asked {
    fn header(&self, wanted: &str) -> &str {
        self.headers.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value)
    }
}

fn attend(stream: TcpStream, configuration: Arc<ServerConfig>, root: &Path) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let connection = ServerConnection::new(configuration).map_err(std::io::Error::other)?;
    let mut reader = BufReader::new(StreamOwned::new(connection, stream));
    while let Some(asked) = head(&mut reader)? {
        let body = body(&mut reader, &asked)?;
        if asked.line.contains(" /git/") {
            git(&asked, &body, root, reader.get_mut())?;
        } else {
            let padding = "x".repeat(300 - END.len());
            let text = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 300\r\n\r\n{padding}"
            );
            reader.get_mut().write_all(&[text.as_bytes(), END].concat())?;
        }
        reader.get_mut().flush()?;
    }
    Ok(())
}

fn head(reader: &mut impl std::io::BufRead) -> std::io::Result<Option<Asked>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        match header.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
            None => return Ok(Some(Asked { line: line.trim_end().to_owned(), headers })),
        }
    }
}

fn body(reader: &mut impl std::io::BufRead, asked: &Asked) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if asked.header("transfer-encoding") != "chunked" {
        let length = asked.header("content-length").parse().unwrap_or(0);
        reader.take(length).read_to_end(&mut body)?;
        return Ok(body);
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let length = u64::from_str_radix(line.trim_end(), 16).map_err(std::io::Error::other)?;
        reader.take(length).read_to_end(&mut body)?;
        reader.read_line(&mut String::new())?;
        if length == 0 {
            return Ok(body);
        }
    }
}

/// Answers with git's own server.
fn git(asked: &Asked, body: &[u8], root: &Path, to: &mut impl Write) -> std::io::Result<()> {
    let mut words = asked.line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut backend = Command::new("git");
    backend.arg("http-backend").env("GIT_PROJECT_ROOT", root.join("git")).env("GIT_HTTP_EXPORT_ALL", "1");
    backend.env("PATH_INFO", path.trim_start_matches("/git")).env("QUERY_STRING", query);
    backend.env("REQUEST_METHOD", method).env("CONTENT_TYPE", asked.header("content-type"));
    backend.env("CONTENT_LENGTH", body.len().to_string()).env("GIT_PROTOCOL", asked.header("git-protocol"));
    backend.env("HTTP_CONTENT_ENCODING", asked.header("content-encoding"));
    let mut backend = backend.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    backend.stdin.take().expect("a pipe").write_all(body)?;
    let mut output = BufReader::with_capacity(64 << 10, backend.stdout.take().expect("a pipe"));
    to.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n")?;
    loop {
        let mut line = String::new();
        output.read_line(&mut line)?;
        if line.trim_end().is_empty() {
            break;
        }
        to.write_all(line.as_bytes())?;
    }
    to.write_all(b"\r\n")?;
    loop {
        let piece = output.fill_buf()?;
        let length = piece.len();
        if length == 0 {
            break;
        }
        to.write_all(format!("{length:x}\r\n").as_bytes())?;
        to.write_all(piece)?;
        to.write_all(b"\r\n")?;
        output.consume(length);
    }
    to.write_all(b"0\r\n\r\n")?;
    backend.wait().map(drop)
}
