//! Tests with hostile registries over real connections. Each test has one lie; the control is the same
//! registry when it is honest. Every lie results in a one-line error, never in a component.

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};
use ssh_key::private::{Ed25519Keypair, PrivateKey};

use super::artifact::{self, MANIFEST};
use super::{Credentials, Reference, Registry, RegistryError};
use crate::manifest::Manifest;
use crate::pack::Pack;
use crate::signature::{PURPOSE, SignatureState, Signatures};
use crate::{Key, Signed};

/// Status, header lines with line ends, body.
type Answer = (u16, String, Vec<u8>);
/// A false answer, or `None` for the honest one.
type Lie = fn() -> Option<Answer>;

fn plain(body: impl Into<Vec<u8>>) -> Option<Answer> {
    Some((200, String::new(), body.into()))
}

fn key() -> PrivateKey {
    PrivateKey::from(Ed25519Keypair::from_seed(&[7; 32]))
}

/// The content of the registry: a signed pack.
fn pack() -> Signed {
    let text = "[policy]\nid = 'acme:guard'\nversion = '1.0.0'\ntitle = 'T'\n[contract]\nversion = '0.1'";
    let pack = Pack { manifest: Manifest::parse(text).unwrap(), ..Pack::default() };
    let bytes = pack.embed(b"\0asm\x0d\0\x01\0").unwrap();
    let signature = key().sign(PURPOSE, ssh_key::HashAlg::Sha512, &bytes).unwrap();
    let text = signature.to_pem(ssh_key::LineEnding::LF).unwrap();
    Signed { signatures: Signatures::parse(&text, "").unwrap(), bytes }
}

/// Returns the answer of an honest registry.
fn honest(path: &str) -> Option<Answer> {
    let signed = pack();
    let component = artifact::of_component(&signed.bytes, &[], &[]);
    let signing = artifact::of_signatures(&signed.signatures);
    if path.ends_with("/manifests/1.0.0") {
        return plain(component.manifest);
    }
    if path.ends_with(&format!("/manifests/{}", artifact::signature_tag(&signed.bytes))) {
        return plain(signing.manifest);
    }
    if path.contains("/tags/list") {
        return plain(json!({ "name": "acme/guard", "tags": ["1.0.0"] }).to_string());
    }
    let (_, digest) = path.split_once("/blobs/sha256:")?;
    let blob =
        component.blobs.into_iter().chain(signing.blobs).find(|blob| crate::digest::digest(blob) == digest);
    blob.and_then(plain)
}

/// Starts a registry that answers with `lie`, or honestly if that returns `None`.
fn registry(lie: impl Fn(&str) -> Option<Answer> + Send + 'static) -> Reference {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // The thread ends with the test program.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client may close the connection early.
            let _gone = answer(stream, &lie);
        }
    });
    Reference::parse(&format!("127.0.0.1:{port}/acme/guard:1.0.0")).unwrap()
}

fn answer(mut stream: TcpStream, lie: &impl Fn(&str) -> Option<Answer>) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let (status, headers, body) =
        lie(path).or_else(|| honest(path)).unwrap_or((404, String::new(), Vec::new()));
    let length = body.len();
    write!(stream, "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n")?;
    stream.write_all(&body)
}

fn pull(from: &Reference) -> Result<Signed, RegistryError> {
    Registry::new(Credentials::default()).pull(from)
}

fn tags(of: &Reference) -> Result<Vec<String>, RegistryError> {
    Registry::new(Credentials::default()).tags(of)
}

/// Checks that the error contains `said`, is short, and is on one line.
fn check(said: &str, error: &RegistryError) {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    assert!(text.contains(said), "no `{said}` in {text}");
    assert!(text.len() < 600 && !text.contains(char::is_control), "{text}");
}

/// Returns the manifest of the pack with one value replaced.
fn manifest(pointer: &str, value: impl Into<Value>) -> Option<Answer> {
    let (_, _, body) = honest("/manifests/1.0.0")?;
    let mut manifest: Value = serde_json::from_slice(&body).ok()?;
    *manifest.pointer_mut(pointer)? = value.into();
    plain(manifest.to_string())
}

#[test]
fn the_control_gives_what_it_has() {
    let from = registry(|_| None);
    let signed = pull(&from).unwrap();
    assert_eq!(signed.bytes, pack().bytes);
    let public = Key::parse(&key().public_key().to_openssh().unwrap()).unwrap();
    let checked = signed.signatures.check(&signed.bytes, &[&public]);
    assert!(matches!(checked.as_slice(), [one] if one.state == SignatureState::Good));
    assert_eq!(tags(&from).unwrap(), ["1.0.0"]);
}

#[test]
fn lies_about_an_artifact() {
    let lies: [(&str, Lie); 10] = [
        ("a list of artifacts", || {
            let (_, _, body) = honest("/manifests/1.0.0")?;
            let one =
                json!({ "mediaType": MANIFEST, "digest": crate::digest::digest(&body), "size": body.len() });
            plain(json!({ "schemaVersion": 2, "manifests": [one] }).to_string())
        }),
        ("is `application/wasm\\u{1b}]0;x\\u{7}\\nportcullis: signed`", || {
            manifest("/layers/0/mediaType", "application/wasm\u{1b}]0;x\u{7}\nportcullis: signed")
        }),
        ("…`, not", || manifest("/layers/0/mediaType", "x".repeat(800_000))),
        ("is no digest", || manifest("/layers/0/digest", "sha256:../../../../etc/passwd")),
        ("sent more than 1 bytes", || manifest("/layers/0/size", 1)),
        ("sent more than 67108864 bytes", || manifest("/layers/0/size", 1_u64 << 40)),
        ("cannot be read", || manifest("/layers/0/size", -1)),
        ("sent more than 1048576 bytes", || {
            let (_, _, body) = honest("/manifests/1.0.0")?;
            plain([body, vec![b' '; 2 << 20]].concat())
        }),
        ("cannot be read", || plain("[".repeat(200_000))),
        ("cannot be read", || plain("<html>\r\n\x1b[2Jlog in</html>")),
    ];
    for (said, lie) in lies {
        let from = registry(move |path| path.ends_with("/manifests/1.0.0").then(lie).flatten());
        check(said, &pull(&from).unwrap_err());
    }
}

#[test]
fn lies_about_bytes() {
    let of_blob = |path: &str| honest(path).filter(|_| path.contains("/blobs/"));
    let flipped = registry(move |path| {
        let (status, headers, mut body) = of_blob(path)?;
        *body.last_mut()? ^= 1;
        Some((status, headers, body))
    });
    check("has the digest", &pull(&flipped).unwrap_err());
    let short = registry(move |path| plain(of_blob(path)?.2.get(..5)?.to_owned()));
    check("has the digest", &pull(&short).unwrap_err());
    let long = registry(move |path| plain([of_blob(path)?.2, vec![0]].concat()));
    check("sent more than", &pull(&long).unwrap_err());
    // The content for a digest must have that digest, whatever name the registry gives it.
    let moved =
        registry(|path| path.contains("/manifests/sha256:").then(|| honest("/manifests/1.0.0")).flatten());
    let wanted = format!("sha256:{}", "0".repeat(64));
    check("has the digest", &pull(&Reference { digest: Some(wanted), ..moved }).unwrap_err());
}

#[test]
fn lies_about_signatures() {
    let about = |path: &str| path.contains("/manifests/sha256-");
    let broken = registry(move |path| about(path).then(|| (500, String::new(), b"\x1b[31moops\n".to_vec())));
    check("answered 500", &pull(&broken).unwrap_err());
    let junk = registry(move |path| {
        let text = b"-----BEGIN SSH SIGNATURE-----\nAAAA\n";
        let digest = format!("sha256:{}", crate::digest::digest(text));
        if path.ends_with(&digest) {
            return plain(*text);
        }
        let layer = json!({ "mediaType": "application/vnd.portcullis.signature.ssh.v1", "digest": digest, "size": text.len() });
        let config = json!({ "mediaType": "x", "digest": digest, "size": 2 });
        let manifest = json!({ "schemaVersion": 2, "config": config, "layers": [layer] });
        about(path).then(|| plain(manifest.to_string())).flatten()
    });
    check("a signature of ssh is damaged", &pull(&junk).unwrap_err());
    // A registry that hides the signatures yields an unsigned pack, which `accept` refuses.
    let silent = registry(move |path| about(path).then(|| (404, String::new(), Vec::new())));
    assert!(pull(&silent).unwrap().signatures.is_empty());
}

#[test]
fn lies_about_the_way() {
    let all = |status: u16, header: &'static str, body: &'static [u8]| {
        registry(move |_| Some((status, format!("{header}\r\n"), body.to_owned())))
    };
    check("redirects", &pull(&all(307, "location: /v2/acme/guard/manifests/1.0.0", b"")).unwrap_err());
    let _no_file_is_read = pull(&all(307, "location: file:///etc/passwd", b"")).unwrap_err();
    let realm = "www-authenticate: Bearer realm=\"http://evil.test/token\",service=\"x\"";
    check("which is not safe", &pull(&all(401, realm, b"")).unwrap_err());
    check("answered 401", &pull(&all(401, "www-authenticate: Basic realm=\"x\"", b"")).unwrap_err());
    check("[31mred", &pull(&all(403, "x: y", b"\x1b[31mred\x07\r\nportcullis: fine")).unwrap_err());
}

#[test]
fn lies_about_versions() {
    let lists = |answer: fn(&str) -> Option<Answer>| {
        registry(move |path| path.contains("/tags/list").then(|| answer(path)).flatten())
    };
    let page = |next: &str, tags: &[&str]| {
        let link = format!("link: <{next}>; rel=\"next\"\r\n");
        Some((200, link, json!({ "tags": tags }).to_string().into_bytes()))
    };
    check("cannot be read", &tags(&lists(|_| plain("<html>"))).unwrap_err());
    let round = registry(move |path| page(path, &["1.0.0"]));
    check("is one that came before", &tags(&round).unwrap_err());
    let away = registry(move |_| page("http://evil.test/v2/acme/guard/tags/list", &["1.0.0"]));
    check("is somewhere else", &tags(&away).unwrap_err());
    check(
        "sent more than",
        &tags(&lists(|_| plain(format!("{{\"tags\":[{}0]}}", "\"\",".repeat(2 << 20))))).unwrap_err(),
    );
    let endless = registry(move |path| page(&format!("{path}1"), &["1.0.0"; 60_000]));
    check("sent more than", &tags(&endless).unwrap_err());
    // A list in two pages is complete.
    let parts = registry(move |path| match path.contains("last=") {
        true => plain(json!({ "tags": ["1.1.0"] }).to_string()),
        false => page("/v2/acme/guard/tags/list?last=1.0.0", &["1.0.0"]),
    });
    assert_eq!(tags(&parts).unwrap(), ["1.0.0", "1.1.0"]);
    assert!(tags(&lists(|_| plain("{\"tags\":null}"))).unwrap().is_empty());
}
