//! The effect of waiting connections on programs: the verdict comes after most of them would give up connecting.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Interface, PiVersion, Scene, Serve, Tools, User, World};
use serde_json::json;

use super::PROGRAM;
use super::asking::ASK;
use super::programs::{CLIENT, FETCHED};

as_each_user!(programs_survive_the_hold_as_the_table_says);

/// Longer than the ten seconds that Node's `fetch` waits for a connection with TLS, with a margin for a late start.
const VERDICT: Duration = Duration::from_secs(18);

/// A program, and whether it succeeds if its connections wait after they are accepted, and inside connect(2). `HOST`
/// stands for a host that no other program asks for.
#[rustfmt::skip]
const TABLE: &[(&str, &str, bool, bool)] = &[
    ("curl", "curl -sS http://HOST/", true, true),
    ("curl with a limit for connecting", "curl -sS --connect-timeout 5 http://HOST/", true, true),
    ("curl with a limit for everything", "curl -sS --max-time 5 http://HOST/", false, false),
    ("curl with TLS", "curl -sSk https://HOST/ | sed -n 's/.*<HTML>.*/REACHED/p'", true, true),
    // TLS is a part of connecting for curl, and its timeout continues while it is stopped.
    ("curl with TLS and a limit for connecting", "curl -sSk --connect-timeout 5 https://HOST/ | sed -n 's/.*<HTML>.*/REACHED/p'", false, false),
    ("wget", "wget -qO- --tries=1 http://HOST/", true, true),
    ("git", "git ls-remote http://HOST/x 2>&1 | sed 's/.*not valid.*/REACHED/'", true, true),
    ("bash", "exec 3<>/dev/tcp/HOST/80 && printf 'GET / HTTP/1.0\\r\\nHost: HOST\\r\\nConnection: close\\r\\n\\r\\n' >&3 && cat <&3", true, true),
    ("perl with a limit", "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(PeerAddr => q(HOST:22), Timeout => 5) or die qq(no\\n); print <$s> =~ /REACHED/ ? q(REACHED) : q()'", true, true),
    ("ssh", "ssh -v -o BatchMode=yes -o StrictHostKeyChecking=no HOST 2>&1 | grep 'banner line'", true, true),
    ("ssh with a limit", "ssh -v -o BatchMode=yes -o ConnectTimeout=5 -o StrictHostKeyChecking=no HOST 2>&1 | grep 'banner line'", false, true),
    ("python", "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://HOST/\").read())'", true, true),
    ("python with a limit", "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://HOST/\", timeout=5).read())'", false, true),
    ("pip", "pip3 download --no-deps --no-cache-dir --retries 0 --timeout 9 --trusted-host HOST --index-url http://HOST:8080/simple hello 2>&1 | sed 's/.*No matching distribution.*/REACHED/'", true, true),
    ("Go", "GODEBUG=netdns=go hey -n 1 -c 1 -t 60 http://HOST/ | sed -n 's/.*\\[200\\].*/REACHED/p'", true, true),
    // Gives up after five seconds; its timeout continues while it is stopped.
    ("Go with TLS and a limit", "certinfo -insecure HOST:443 | sed -n 's/.*CN=test.*/REACHED/p'", false, false),
    ("Java with TLS", "keytool -printcert -sslserver HOST:443 2>&1 | sed 's/Owner: CN=test/REACHED/'", true, true),
    ("busybox", "busybox wget -qO- http://HOST/", true, true),
    ("a program with musl", "musl-gcc '../world/client.c' -o client1 && ./client1 HOST 80", true, true),
    ("Node's fetch", "NODE -e 'fetch(\"http://HOST/\").then(r => r.text()).then(console.log, e => console.log(e.cause))'", true, true),
    ("the oldest Node's fetch", "OLD -e 'fetch(\"http://HOST/\").then(r => r.text()).then(console.log, e => console.log(e.cause))'", true, true),
    ("the oldest Node's fetch with TLS", "NODE_TLS_REJECT_UNAUTHORIZED=0 OLD -e 'fetch(\"https://HOST/\").then(r => r.text()).then(() => console.log(\"REACHED\"), e => console.log(e.cause))'", false, true),
    ("Node's fetch with TLS", "NODE_TLS_REJECT_UNAUTHORIZED=0 NODE -e 'fetch(\"https://HOST/\").then(r => r.text()).then(() => console.log(\"REACHED\"), e => console.log(e.cause))'", false, true),
];

fn programs_survive_the_hold_as_the_table_says(user: User) -> Result<()> {
    let tools = Tools::find()?;
    let folders = std::env::join_paths(tools.folders(FETCHED)?)?;
    let path = format!("/usr/local/bin:/usr/bin:/bin:{}", folders.to_string_lossy());
    let node = tools.pi(PiVersion::V0_74OnNode20, user)?.node;
    let oldest = tools.oldest_node()?;
    for hold in ["accept", "connect"] {
        let scene = Scene::new(user)?;
        let world = World::new(&scene, PROGRAM)?.holding(hold);
        scene.write(&scene.at("world").join("client.c"), CLIENT)?;
        let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
        let mut script = String::new();
        for (number, (_, program, ..)) in TABLE.iter().enumerate() {
            let program = program.replace("HOST", &format!("p{number}.allowed.test"));
            let program = program.replace("NODE ", &format!("'{}' ", node.display()));
            let program = program.replace("OLD ", &format!("'{}' ", oldest.display()));
            writeln!(script, "( {program} ) > out{number} 2>&1 < /dev/null &")?;
        }
        script.push_str("wait");
        let id = host.begin(&script, &json!({ "PATH": path }))?;
        let mut question = host.question()?;
        std::thread::sleep(VERDICT);
        // Connections that the first question had no room for are in the next ones.
        while question.get("method").is_some() {
            host.answer(&question, &json!(0))?;
            question = host.wait("a question or the end", |message| {
                let is_end = message.get("method").is_none() && message.get("id") == Some(&json!(id));
                is_end || message.get("method") == Some(&json!("ask"))
            })?;
        }
        for (number, (name, _, accept, connect)) in TABLE.iter().enumerate() {
            let output = std::fs::read(scene.project().join(format!("out{number}"))).context("its output")?;
            let output = String::from_utf8_lossy(&output);
            let expected = if hold == "accept" { *accept } else { *connect };
            ensure!(output.contains("REACHED") == expected, "{name} with `{hold}`: {output}");
        }
    }
    Ok(())
}
