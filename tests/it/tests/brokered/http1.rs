//! HTTP/1.1 that two parsers could read differently. The server behind the gate stores the bytes that reach it.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Scene, User, World};
use serde_json::Value;

use super::{CLIENT, SECRET, before, folders, logs, run, section};
use crate::network::PROGRAM;

as_each_user!(no_request_is_read_in_two_ways, answers_do_not_repeat_the_credential);

/// The beginning of a request that is sent.
const HEAD: &str = "Host: allowed.test:9445\r\nX-Wanted: 1\r\nAuthorization: Bearer {T}\r\n";

/// Bytes of requests, `HEAD` and `SECOND` replaced in them. Each has a text with `theirs` in a place that the gate
/// must not let through: the line or a header of a request, between the pieces of a body, or after it.
const ATTACKS: &[(&str, &str)] = &[
    (
        "a length, then chunks",
        "POST /mine/a HTTP/1.1\r\nHEADContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nSECOND",
    ),
    (
        "chunks, then a length",
        "POST /mine/a HTTP/1.1\r\nHEADTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nSECOND",
    ),
    (
        "chunks under a name with a space",
        "POST /mine/a HTTP/1.1\r\nHEADTransfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nSECOND",
    ),
    (
        "chunks in a folded line",
        "POST /mine/a HTTP/1.1\r\nHEADTransfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nSECOND",
    ),
    ("chunks after a tab", "POST /mine/a HTTP/1.1\r\nHEADTransfer-Encoding:\tchunked\r\n\r\n0\r\n\r\nSECOND"),
    (
        "chunks of another kind",
        "POST /mine/a HTTP/1.1\r\nHEADTransfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nSECOND",
    ),
    (
        "chunks and nothing",
        "POST /mine/a HTTP/1.1\r\nHEADTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\nSECOND",
    ),
    (
        "nothing and chunks",
        "POST /mine/a HTTP/1.1\r\nHEADTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\nSECOND",
    ),
    (
        "chunks twice",
        "POST /mine/a HTTP/1.1\r\nHEADTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\nSECOND",
    ),
    (
        "chunks with an underscore",
        "POST /mine/a HTTP/1.1\r\nHEADTransfer_Encoding: theirs\r\nContent-Length: 5\r\n\r\n0\r\n\r\nSECOND",
    ),
    ("chunks of HTTP/1.0", "POST /mine/a HTTP/1.0\r\nHEADTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nSECOND"),
    ("two lengths", "POST /mine/a HTTP/1.1\r\nHEADContent-Length: 0\r\nContent-Length: 5\r\n\r\nSECOND"),
    ("a list of lengths", "POST /mine/a HTTP/1.1\r\nHEADContent-Length: 0, 0\r\n\r\nSECOND"),
    ("a length with a sign", "POST /mine/a HTTP/1.1\r\nHEADContent-Length: +0\r\n\r\nSECOND"),
    ("a length below zero", "POST /mine/a HTTP/1.1\r\nHEADContent-Length: -1\r\n\r\nSECOND"),
    (
        "a length that is too long",
        "POST /mine/a HTTP/1.1\r\nHEADContent-Length: 18446744073709551616\r\n\r\nSECOND",
    ),
    (
        "the size of a chunk as 0x",
        "POST /mine/a HTTP/1.1\r\nHEADTransfer-Encoding: chunked\r\n\r\n0x0\r\n\r\nSECOND",
    ),
    (
        "the size of a chunk with a sign",
        "POST /mine/a HTTP/1.1\r\nHEADTransfer-Encoding: chunked\r\n\r\n-0\r\n\r\nSECOND",
    ),
    (
        "the size of a chunk that is too long",
        "POST /mine/a HTTP/1.1\r\nHEADTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\nSECOND",
    ),
    (
        "a chunk that ends elsewhere",
        "POST /mine/a HTTP/1.1\r\nHEADTransfer-Encoding: chunked\r\n\r\n1\r\naXX0\r\n\r\nSECOND",
    ),
    (
        "lines of chunks without a carriage return",
        "POST /mine/a HTTP/1.1\r\nHEADTransfer-Encoding: chunked\r\n\r\n0\n\nSECOND",
    ),
    (
        "an extension of a chunk",
        "POST /mine/a HTTP/1.1\r\nHEADTransfer-Encoding: chunked\r\n\r\n1;a=theirs\r\na\r\n0;b=theirs\r\n\r\n",
    ),
    (
        "an extension with a line in it",
        "POST /mine/a HTTP/1.1\r\nHEADTransfer-Encoding: chunked\r\n\r\n1;a\ntheirs\r\na\r\n0\r\n\r\n",
    ),
    (
        "trailers",
        "POST /mine/a HTTP/1.1\r\nHEADTransfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n0\r\nX-End: theirs\r\nAuthorization: theirs\r\nHost: theirs\r\n\r\n",
    ),
    ("a second request on the connection", "POST /mine/a HTTP/1.1\r\nHEADContent-Length: 0\r\n\r\nSECOND"),
    (
        "a second request in the body of one that reads",
        "GET /a HTTP/1.1\r\nHEADContent-Length: 0\r\n\r\nSECOND",
    ),
    ("no carriage returns", "GET /a HTTP/1.1\r\nHEADX-A: b\nAuthorization: theirs\r\n\r\n"),
    ("a carriage return alone", "GET /a HTTP/1.1\r\nHEADX-A: b\rX-Theirs: theirs\r\n\r\n"),
    ("a zero byte", "GET /a HTTP/1.1\r\nHEADX-A: b\0theirs\r\n\r\n"),
    ("a folded line", "GET /a HTTP/1.1\r\nHEADX-A: b\r\n theirs: c\r\n\r\n"),
    (
        "a folded credential",
        "GET /a HTTP/1.1\r\nHost: allowed.test:9445\r\nX-Wanted: 1\r\nAuthorization: Bearer {T}\r\n ,theirs\r\n\r\n",
    ),
    (
        "two credentials in one",
        "GET /a HTTP/1.1\r\nHost: allowed.test:9445\r\nX-Wanted: 1\r\nAuthorization: Bearer {T}, theirs\r\n\r\n",
    ),
    ("two credentials", "GET /a HTTP/1.1\r\nHEADAuthorization: theirs\r\n\r\n"),
    ("two hosts", "GET /a HTTP/1.1\r\nHEADHost: theirs.test\r\n\r\n"),
    ("a host before the host", "GET /a HTTP/1.1\r\nHost: theirs.test\r\nHEAD\r\n"),
    ("a host with a user", "GET /a HTTP/1.1\r\nHost: theirs@allowed.test:9445\r\nX-Wanted: 1\r\n\r\n"),
    ("a host with an underscore", "GET /a HTTP/1.1\r\nHEADHost_: a\r\nContent_Length: theirs\r\n\r\n"),
    ("an absolute target", "GET https://theirs.test/a HTTP/1.1\r\nHEAD\r\n"),
    ("an absolute target with a user", "GET https://theirs@allowed.test:9445/a HTTP/1.1\r\nHEAD\r\n"),
    ("a target that is a host", "GET theirs.test:443 HTTP/1.1\r\nHEAD\r\n"),
    ("a target without a slash", "GET @theirs/a HTTP/1.1\r\nHEAD\r\n"),
    ("a tunnel", "CONNECT theirs.test:443 HTTP/1.1\r\nHEAD\r\n"),
    ("a line with two spaces", "GET /a  /theirs HTTP/1.1\r\nHEAD\r\n"),
    ("a line with a tab", "GET /a\t/theirs HTTP/1.1\r\nHEAD\r\n"),
    ("HTTP/0.9", "GET /theirs\r\n\r\n"),
    ("HTTP/1.0 without a host", "GET /theirs HTTP/1.0\r\nAuthorization: Bearer {T}\r\n\r\n"),
    ("HTTP/2 without TLS's consent", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\ntheirs\r\n\r\n"),
    (
        "an upgrade to HTTP/2",
        "GET /theirs HTTP/1.1\r\nHEADConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n\r\n",
    ),
    (
        "an upgrade to WebSocket",
        "GET /theirs HTTP/1.1\r\nHEADConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ),
    (
        "a wanted header that is taken out again",
        "GET /theirs HTTP/1.1\r\nHost: allowed.test:9445\r\nX-Wanted: 1\r\nConnection: x-wanted\r\n\r\n",
    ),
    ("a credential that is taken out again", "GET /theirs HTTP/1.1\r\nHEADConnection: authorization\r\n\r\n"),
    (
        "another method in a header",
        "POST /mine/a HTTP/1.1\r\nHEADX-HTTP-Method-Override: theirs\r\nContent-Length: 0\r\n\r\n",
    ),
    ("another path in a header", "GET /a HTTP/1.1\r\nHEADX-Original-URL: /theirs\r\n\r\n"),
    ("another path in a header with underscores", "GET /a HTTP/1.1\r\nHEADX_Rewrite_URL: /theirs\r\n\r\n"),
    ("a part, by the old name of the header", "GET /a HTTP/1.1\r\nHEADRequest-Range: bytes=0-theirs\r\n\r\n"),
    ("a part, by a header of some servers", "GET /a HTTP/1.1\r\nHEADX-MS-Range: bytes=0-theirs\r\n\r\n"),
    (
        "another method in the query",
        "POST /mine/a?a=b&_Method=theirs HTTP/1.1\r\nHEADContent-Length: 0\r\n\r\n",
    ),
    (
        "another method in the query, encoded",
        "POST /mine/a?%5fmethod=theirs HTTP/1.1\r\nHEADContent-Length: 0\r\n\r\n",
    ),
    (
        "a path with an empty segment and a parameter",
        "POST /mine/;a/theirs HTTP/1.1\r\nHEADContent-Length: 0\r\n\r\n",
    ),
    ("a path with dots", "POST /mine/../theirs HTTP/1.1\r\nHEADContent-Length: 0\r\n\r\n"),
    ("a path with encoded dots", "POST /mine/%2e%2e/theirs HTTP/1.1\r\nHEADContent-Length: 0\r\n\r\n"),
    ("a path with an encoded slash", "POST /mine%2f..%2ftheirs HTTP/1.1\r\nHEADContent-Length: 0\r\n\r\n"),
    ("a path with a backslash", "POST /mine/..\\theirs HTTP/1.1\r\nHEADContent-Length: 0\r\n\r\n"),
    ("a path with a parameter", "POST /mine/..;/theirs HTTP/1.1\r\nHEADContent-Length: 0\r\n\r\n"),
];

/// A request that no rule allows.
const SECOND: &str = "POST /theirs HTTP/1.1\r\nHEADContent-Length: 0\r\n\r\n";

/// Requests that differ from the attacks in what makes them one.
const CONTROLS: &[&str] = &[
    "POST /mine/a HTTP/1.1\r\nHEADContent-Length: 4\r\n\r\nbody",
    "POST /mine/a HTTP/1.1\r\nHEADTransfer-Encoding: chunked\r\n\r\n1;a=b\r\nb\r\n3\r\nody\r\n0\r\nX-End: c\r\n\r\n",
    "GET /a?b=c HTTP/1.1\r\nHEADConnection: keep-alive\r\n\r\nGET /second HTTP/1.1\r\nHEAD\r\n",
];

fn put(text: &str) -> String {
    text.replace("SECOND", SECOND).replace("HEAD", HEAD)
}

/// Writes a table for the client.
fn write_table(scene: &Scene, requests: &[String]) -> Result<()> {
    let pieces: Vec<[&str; 1]> = requests.iter().map(|text| [text.as_str()]).collect();
    scene.write(&scene.project().join("table.json"), &serde_json::to_string(&pieces)?)?;
    scene.write(&scene.project().join("client.py"), CLIENT)
}

/// Returns the stored requests, and forgets them.
fn stored(scene: &Scene) -> Result<Vec<Value>> {
    let file = scene.at("world").join("raw");
    let text = fs::read_to_string(&file).context("what the raw server stored")?;
    fs::remove_file(&file)?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

pub(super) fn part<'a>(request: &'a Value, name: &str) -> &'a str {
    request.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Checks that a request can be read in one way only.
pub(super) fn has_one_reading(request: &Value) -> Result<()> {
    let mut lines = part(request, "head").split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    ensure!(
        matches!(words.as_slice(), ["GET" | "POST", path, "HTTP/1.1"] if path.starts_with('/')),
        "{words:?}"
    );
    let mut names = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(": ").context("a header has a name")?;
        ensure!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{line:?}");
        ensure!(!value.chars().any(char::is_control), "{line:?}");
        let name = name.to_ascii_lowercase();
        ensure!(name != "host" || value == "allowed.test:9445", "{line}");
        ensure!(name != "transfer-encoding" || value == "chunked", "{line}");
        ensure!(!["connection", "upgrade", "te", "trailer", "keep-alive"].contains(&name.as_str()), "{line}");
        names.push(name);
    }
    let count = |wanted: &str| names.iter().filter(|name| *name == wanted).count();
    ensure!(count("host") == 1 && count("authorization") <= 1, "{names:?}");
    ensure!(count("content-length") + count("transfer-encoding") <= 1, "{names:?}");
    let is_size = |line: &str| line.is_empty() || usize::from_str_radix(line, 16).is_ok();
    ensure!(part(request, "between").lines().all(is_size), "{}", part(request, "between"));
    Ok(())
}

fn no_request_is_read_in_two_ways(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let requests: Vec<String> = ATTACKS.iter().map(|(_, text)| put(text)).collect();
    write_table(&scene, &requests)?;
    let script = before(&folders()?) + "python3 client.py table.json 0.4";
    let finished = run(&world, &scene, &script)?;
    for request in stored(&scene)? {
        has_one_reading(&request).with_context(|| format!("{request:#?}"))?;
        let outside = [part(&request, "head"), part(&request, "between")];
        ensure!(!outside.iter().any(|text| text.contains("theirs")), "it arrived: {request:#?}");
        ensure!(!request.to_string().contains("pcx_"), "a placeholder arrived: {request:#?}");
    }
    ensure!(!finished.stdout.contains(SECRET) && !logs(&scene)?.contains(SECRET), "{finished:#?}");
    // Without the gate, each of them reaches the server.
    let authority = scene.at("world").join("authority.pem");
    let direct = format!(
        "cd {} && SSL_CERT_FILE={} RAW_TOKEN={SECRET} python3 client.py table.json 0.2",
        scene.project().display(),
        authority.display()
    );
    world.control(&direct)?.ended_with(0)?;
    let reached = stored(&scene)?;
    ensure!(
        reached.iter().filter(|request| request.to_string().contains("theirs")).count() >= ATTACKS.len(),
        "{reached:#?}"
    );
    // And the gate lets through what is no attack.
    write_table(&scene, &CONTROLS.iter().map(|text| put(text)).collect::<Vec<_>>())?;
    let finished = run(&world, &scene, &script)?;
    let reached = stored(&scene)?;
    ensure!(
        reached.len() == 4 && finished.stdout.matches("REACHED").count() == 4,
        "{reached:#?} {finished:#?}"
    );
    for request in &reached {
        has_one_reading(request).with_context(|| format!("{request:#?}"))?;
    }
    let bodies: Vec<&str> = reached.iter().map(|request| part(request, "body")).collect();
    ensure!(bodies == ["body", "body", "", ""], "{bodies:?}");
    Ok(())
}

/// Answers of the raw server, each with whether the gate passes it on.
const ANSWERS: &[(&str, bool)] = &[
    ("/reason", true),
    ("/hints", true),
    ("/name", true),
    ("/values", true),
    ("/cookie", true),
    ("/location", true),
    ("/encodings", false),
    ("/listed", false),
    ("/transfer", false),
    ("/lengths", true),
    ("/bytes", true),
    ("/trailer", true),
    ("/extension", true),
    ("/border", true),
    ("/twice", true),
    ("/case", true),
    ("/base64", true),
    ("/hex", true),
    ("/escaped", true),
    ("/part", false),
    ("/close", true),
    ("/ten", true),
    ("/error", true),
];

fn answers_do_not_repeat_the_credential(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let requests: Vec<String> =
        ANSWERS.iter().map(|(path, _)| put(&format!("GET {path} HTTP/1.1\r\nHEAD\r\n"))).collect();
    write_table(&scene, &requests)?;
    let finished = run(&world, &scene, &(before(&folders()?) + "python3 client.py table.json 0.4"))?;
    for (number, (path, is_passed_on)) in ANSWERS.iter().enumerate() {
        let answer = section(&finished.stdout, number).with_context(|| format!("{finished:#?}"))?;
        ensure!(answer.contains("REACHED") == *is_passed_on, "{path}: {answer}");
        ensure!(*is_passed_on || answer.contains("host.unreadable-answer"), "{path}: {answer}");
    }
    let said = finished.stdout.to_ascii_lowercase();
    // Its beginning is enough to notice one that is cut, and its hexadecimal and base64 forms begin like this.
    for form in [
        "s3cr3t-cred",
        "credential-0123",
        "7333637233742d",
        "cznjcjn0",
        "hmzy3izd",
        "hhzm2nym",
        "%73%33%63",
        "\\u0073\\u0033",
        "&#115;&#51;",
        "&#x73;&#x33;",
        "s3cr3t%2d",
        "s3cr3t%252d",
        "first half s3cr",
    ] {
        ensure!(!said.contains(form), "{form} was answered: {said}");
    }
    // Without the gate, the server answers with it.
    let authority = scene.at("world").join("authority.pem");
    let direct = format!(
        "cd {} && SSL_CERT_FILE={} RAW_TOKEN={SECRET} python3 client.py table.json 0.2",
        scene.project().display(),
        authority.display()
    );
    let control = world.control(&direct)?.ended_with(0)?;
    ensure!(control.stdout.matches(SECRET).count() >= 12, "{control:#?}");
    Ok(())
}
