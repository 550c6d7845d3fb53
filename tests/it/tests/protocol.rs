//! Messages that no correct client sends: each gets the right error, permits nothing, and does no harm.

use anyhow::{Result, ensure};
use portcullis_it::{Interface, Scene, Serve, User};
use serde_json::{Value, json};

const PARSE: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const VERSION_MISMATCH: i64 = -32001;
const NOT_READY: i64 = -32002;

#[test]
fn nothing_is_answered_before_hello() -> Result<()> {
    let scene = Scene::new(User::Ordinary)?;
    let mut host = Serve::start(&scene, &[], &[])?;
    let id = host.begin("touch made", &json!({}))?;
    expect(&host.reply(id)?, NOT_READY)?;
    expect(&host.call("status", &json!({}))?, NOT_READY)?;
    let mut hello = host.hello(Interface::Absent);
    hello["protocol"] = json!(999);
    expect(&host.call("hello", &hello)?, VERSION_MISMATCH)?;
    let id = host.begin("touch made", &json!({}))?;
    expect(&host.reply(id)?, NOT_READY)?;

    let proper = host.hello(Interface::Absent);
    host.succeed("hello", &proper)?;
    expect(&host.call("hello", &proper)?, INVALID_REQUEST)?;
    ensure!(!scene.project().join("made").exists());
    ensure!(host.run("echo on")?.1 == "on\n");
    Ok(())
}

#[test]
fn broken_lines() -> Result<()> {
    let scene = Scene::new(User::Ordinary)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let exec = r#""method":"exec","params":{"callId":"c","stream":1,"script":"touch made","cwd":"/","env":{},"origin":"agent"}"#;
    let lines: [(Vec<u8>, i64); 13] = [
        (b"{".to_vec(), PARSE),
        (b"\xff\xfe".to_vec(), PARSE),
        ("[".repeat(1_000_000).into_bytes(), PARSE),
        (format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000)).into_bytes(), PARSE),
        (br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"status"}"#.to_vec(), PARSE),
        (format!(r#"{{"jsonrpc":"2.0","id":900,"method":"status",{exec}}}"#).into_bytes(), PARSE),
        (vec![b'x'; 64 << 20], INVALID_REQUEST),
        (b"[]".to_vec(), INVALID_REQUEST),
        (br#"{"jsonrpc":"1.0","id":901,"method":"status"}"#.to_vec(), INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0","id":-1,"method":"status"}"#.to_vec(), INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0","id":1e400,"method":"status"}"#.to_vec(), PARSE),
        (br#"{"jsonrpc":"2.0","id":902,"method":"allow_everything"}"#.to_vec(), METHOD_NOT_FOUND),
        (br#"{"jsonrpc":"2.0","id":903,"method":"exec","params":[1]}"#.to_vec(), INVALID_PARAMS),
    ];
    for (line, code) in lines {
        let shown = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
        host.line(line)?;
        let reply =
            host.wait(&format!("an error for `{shown}`"), |message| message.get("error").is_some())?;
        expect(&reply, code)?;
    }
    ensure!(!scene.project().join("made").exists());
    ensure!(host.run("echo on")?.1 == "on\n");
    Ok(())
}

#[test]
fn an_id_in_use_and_replies_to_nothing() -> Result<()> {
    let scene = Scene::new(User::Ordinary)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let waiting = "until [ -e go ]; do sleep 0.02; done; echo went";
    let id = host.begin(waiting, &json!({ "PATH": "/usr/bin:/bin" }))?;
    host.line(json!({ "jsonrpc": "2.0", "id": id, "method": "status", "params": {} }).to_string())?;
    let refused = host.wait("a refusal", |message| message.get("error").is_some())?;
    ensure!(refused.get("id") == Some(&Value::Null), "the reply would be taken for the command's: {refused}");
    // Answers to questions that the host never sent.
    for number in [0, 1, 77] {
        host.line(json!({ "jsonrpc": "2.0", "id": number, "result": { "choice": 0 } }).to_string())?;
    }
    ensure!(host.run("touch go; echo other")?.1 == "other\n");
    ensure!(host.finish(id)?.1 == "went\n");
    Ok(())
}

#[test]
fn paths_that_are_none() -> Result<()> {
    let scene = Scene::new(User::Ordinary)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let project = scene.project().display().to_string();
    let long = format!("{project}/{}", "x".repeat(5_000));
    let deep = format!("{project}{}", "/d".repeat(2_500));
    let wrong = ["", "relative", "@/etc/hostname", "~/x", "file:///etc/hostname", "/etc/host\0name"];
    for path in wrong {
        let open = json!({ "callId": "r", "path": path, "intent": { "kind": "read" } });
        expect(&host.call("file/open", &open)?, INVALID_PARAMS)?;
    }
    let climbing = format!("{project}/../../../../../../etc/hostname");
    let odd =
        [long, deep, climbing, format!("{project}//./missing/"), format!("{project}/\u{202e}txt.\u{a0}sh")];
    for path in odd {
        let open = json!({ "callId": "r", "path": path, "intent": { "kind": "read" } });
        let reply = host.call("file/open", &open)?;
        ensure!(reply.get("error").is_some(), "`{path}` was opened: {reply}");
    }
    ensure!(host.run("echo on")?.1 == "on\n");
    Ok(())
}

#[test]
fn a_script_cannot_smuggle_a_nul_or_a_variable() -> Result<()> {
    let scene = Scene::new(User::Ordinary)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    for (script, environment) in
        [("echo \0", json!({})), ("true", json!({ "A=B": "c" })), ("true", json!({ "A": "\0" }))]
    {
        let id = host.begin(script, &environment)?;
        expect(&host.reply(id)?, INVALID_PARAMS)?;
    }
    Ok(())
}

fn expect(reply: &Value, code: i64) -> Result<()> {
    ensure!(reply.pointer("/error/code") == Some(&json!(code)), "expected error {code}, got {reply}");
    Ok(())
}
