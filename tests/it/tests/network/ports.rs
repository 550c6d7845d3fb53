//! Servers of commands, reached from this machine.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    a_server_inside_is_listed_opened_and_closed,
    no_port_is_opened_against_the_settings,
    settings_that_forbid_it_close_what_is_open,
);

const FAILED: i32 = 1;

/// A server that sends `inside` on each connection, and then echoes its input.
const SERVER: &str = "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 9, LocalPort => 8123) or die; \
    while ($c = $s->accept) { $c->autoflush; print $c qq(inside\\n); print $c $_ while <$c>; close $c; }'";

fn ports(scene: &Scene) -> Result<Vec<Value>> {
    let shown = scene.portcullis(&["ports", "list", "--json"])?.ended_with(0)?;
    let value: Value = serde_json::from_str(&shown.stdout)?;
    Ok(value.get("ports").and_then(Value::as_array).cloned().unwrap_or_default())
}

fn say(port: u16, text: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(text.as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut heard = String::new();
    stream.read_to_string(&mut heard)?;
    Ok(heard)
}

fn a_server_inside_is_listed_opened_and_closed(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let none = scene.portcullis(&["ports", "list"])?.ended_with(0)?;
    ensure!(none.stdout == "no command listens\n", "{none:#?}");
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let id = host.begin(SERVER, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let listed = Deadline::start().until("the server", || Ok(ports(&scene)?.pop()))?;
    ensure!(listed.pointer("/port/port") == Some(&json!(8123)), "{listed}");
    let program = listed.pointer("/port/program").and_then(Value::as_str).unwrap_or_default();
    ensure!(program.contains("perl"), "{listed}");
    ensure!(TcpStream::connect(("127.0.0.1", 8123)).is_err(), "it is reached without being open");
    let name = listed.get("id").and_then(Value::as_str).context("an id")?.to_owned();

    let done = scene.portcullis(&["ports", "open", &name, "--at", "0"])?.ended_with(0)?;
    let at = done.stdout.trim().rsplit(':').next().context("a port")?.parse()?;
    ensure!(done.stdout.starts_with("port 8123 is open at 127.0.0.1:"), "{done:#?}");
    ensure!(say(at, "hello\n")? == "inside\nhello\n");
    ensure!(say(at, &"x".repeat(100_000))?.len() == 100_007);
    let shown = scene.portcullis(&["ports", "list"])?.ended_with(0)?;
    ensure!(shown.stdout.contains(&format!("open at 127.0.0.1:{at}")), "{shown:#?}");
    scene.portcullis(&["ports", "open", &name])?.ended_with(FAILED)?;

    scene.portcullis(&["ports", "close", &name])?.ended_with(0)?;
    Deadline::start().until("the end of the way in", || Ok(say(at, "x").is_err().then_some(())))?;
    scene.portcullis(&["ports", "close", &name])?.ended_with(FAILED)?;
    for wrong in ["nowhere:1", "x", &name.replace("8123", "0"), &name.replace("8123", "99999")] {
        scene.portcullis(&["ports", "open", wrong])?.ended_with(FAILED)?;
    }
    // The port is closed with the session, whichever process listens inside.
    let done = scene.portcullis(&["ports", "open", &name, "--at", "0"])?.ended_with(0)?;
    let at: u16 = done.stdout.trim().rsplit(':').next().context("a port")?.parse()?;
    ensure!(say(at, "")? == "inside\n");
    host.line(json!({ "jsonrpc": "2.0", "method": "cancel", "params": { "id": id } }).to_string())?;
    host.reply(id)?;
    ensure!(ports(&scene)?.len() == 1, "an open port is listed although nobody listens");
    host.close()?;
    ensure!(TcpStream::connect(("127.0.0.1", at)).is_err(), "it outlives the session");
    Ok(())
}

/// Settings with `allowLocalBinding` off, which open no port.
const CLOSED: &str = r#"{ "network": { "allowedDomains": [], "deniedDomains": [], "allowLocalBinding": false },
    "filesystem": { "denyRead": [], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] } }"#;

fn settings_that_forbid_it_close_what_is_open(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    host.begin(SERVER, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let listed = Deadline::start().until("the server", || Ok(ports(&scene)?.pop()))?;
    let name = listed.get("id").and_then(Value::as_str).context("an id")?;
    let done = scene.portcullis(&["ports", "open", name, "--at", "0"])?.ended_with(0)?;
    let at = done.stdout.trim().rsplit(':').next().context("a port")?.parse()?;
    ensure!(say(at, "x")? == "inside\nx", "the control");
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), CLOSED)?;
    host.succeed("status", &json!({}))?;
    Deadline::start().until("the end of the way in", || Ok(say(at, "x").is_err().then_some(())))?;
    let is_open = |port: &Value| port.pointer("/port/openAt").is_some_and(|at| !at.is_null());
    ensure!(!ports(&scene)?.iter().any(is_open), "it is told as open");
    Ok(())
}

fn no_port_is_opened_against_the_settings(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), CLOSED)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    // The command can still listen on the loopback of its sandbox.
    host.begin(SERVER, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let listed = Deadline::start().until("the server", || Ok(ports(&scene)?.pop()))?;
    let name = listed.get("id").and_then(Value::as_str).context("an id")?;
    let refused = scene.portcullis(&["ports", "open", name])?.ended_with(FAILED)?;
    ensure!(refused.stderr.contains("`network.allowLocalBinding` is `false`"), "{refused:#?}");
    Ok(())
}
