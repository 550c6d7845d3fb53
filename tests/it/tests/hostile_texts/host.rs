//! The messages of the host to a client: questions, answers, the menu, the summary, and the text for the model.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{bash, read, say};
use portcullis_it::{Interface, Launch, PiVersion, Scene, Serve, User, script};
use serde_json::{Value, json};

use super::{MARK, MARK_OF_A_POLICY, ODD, default_file, hostile, scan};

as_each_user!(questions_are_shown, notices_and_screens_are_shown, what_a_policy_tells_the_model_is_shown);
on_each_pi!(what_the_model_reads_is_shown);

/// Checks every string of a message, keys included, after JSON has decoded it.
fn scan_all(what: &str, value: &Value) -> Result<()> {
    match value {
        Value::String(text) => scan(what, text),
        Value::Array(items) => items.iter().try_for_each(|item| scan_all(what, item)),
        Value::Object(members) => members.iter().try_for_each(|(name, value)| {
            scan(what, name)?;
            scan_all(&format!("{what}/{name}"), value)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn shown(what: &str, mark: &str, value: &Value) -> Result<()> {
    scan_all(what, value)?;
    ensure!(value.to_string().contains(mark), "{what} does not show it: {value}");
    Ok(())
}

/// A question of each kind: as the client gets it, as another terminal lists it, and as the reply after a refusal
/// quotes it.
fn questions_are_shown(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let outside = scene.outside().join(ODD);
    scene.write(&outside, "x")?;
    let given = outside.display().to_string();
    for (method, params) in [
        ("file/open", json!({ "callId": "r", "path": given, "given": given, "intent": { "kind": "read" } })),
        ("file/write", json!({ "callId": "w", "path": given, "given": given, "content": ODD })),
        (
            "decide",
            json!({ "callId": "t", "tool": ODD, "provider": format!("mcp:{ODD}"), "input": { ODD: ODD } }),
        ),
    ] {
        let id = host.request(method, &params)?;
        let question = host.question()?;
        shown(&format!("the question of {method}"), MARK, &question)?;
        for words in [&["asks", "list"][..], &["asks", "list", "--json"]] {
            super::shown(&format!("{words:?}"), MARK, &scene.portcullis(words)?.ended_with(0)?)?;
        }
        host.answer(&question, &json!("refuse"))?;
        scan_all(&format!("the reply of {method}"), &host.reply(id)?)?;
    }
    // An allowed request is listed.
    let open = json!({ "callId": "r", "path": given, "intent": { "kind": "read" } });
    for key in ["s", "P"] {
        let id = host.request("file/open", &open)?;
        let question = host.question()?;
        let options = question.pointer("/params/options").and_then(Value::as_array).context("options")?;
        let place = options.iter().position(|option| option.get("key") == Some(&json!(key)));
        host.answer(&question, &json!(place.with_context(|| format!("no `{key}`: {question}"))?))?;
        host.reply(id)?;
        for words in [&["grants", "list"][..], &["grants", "list", "--json"]] {
            super::shown(&format!("{words:?}"), MARK, &scene.portcullis(words)?.ended_with(0)?)?;
        }
        if key == "s" {
            let listed = scene.portcullis(&["grants", "list", "--json"])?.ended_with(0)?;
            let listed: Value = serde_json::from_str(&listed.stdout)?;
            let id = listed.pointer("/sessions/0/id").and_then(Value::as_str).context("an id")?;
            super::shown(
                "a revoked answer",
                MARK,
                &scene.portcullis(&["grants", "revoke", id])?.ended_with(0)?,
            )?;
        }
    }
    // A system call of a command.
    let id = host.begin("mkdir \"$D\"", &json!({ "PATH": "/usr/bin:/bin", "D": format!("{given}-made") }))?;
    let question = host.question()?;
    shown("the question of a command", MARK, &question)?;
    host.answer(&question, &json!("refuse"))?;
    let (ended, _) = host.finish(id)?;
    scan_all("the end of a command", &ended)?;
    host.close()?;
    Ok(())
}

fn notices_and_screens_are_shown(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = |more: &str| {
        json!({
            "network": { "allowedDomains": [], "deniedDomains": [] },
            "filesystem": {
                "denyRead": ["/home"], "allowRead": ["."], "allowWrite": [".", more], "denyWrite": [more],
            },
        })
    };
    scene.write(&default_file(&scene), &settings("plain").to_string())?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    // A refused request is among the recent decisions.
    let denied = json!({ "callId": "w", "path": scene.project().join("plain").join(ODD), "content": "x" });
    scan_all("a denial", &host.call("file/write", &denied)?)?;
    let menu = host.succeed("menu", &json!({ "event": { "kind": "open" } }))?;
    let items = menu.get("items").and_then(Value::as_array).context("items")?;
    let recent = items.iter().position(|item| item.get("label") == Some(&json!("Recent decisions")));
    for index in [recent.context("an item")?, 0] {
        let screen = host.succeed("menu", &json!({ "event": { "kind": "choose", "index": index } }))?;
        shown("a decision in /sandbox", MARK, &screen)?;
    }
    // The settings change while the session runs, and are then invalid.
    scene.write(&default_file(&scene), &settings(ODD).to_string())?;
    let notice = host.wait("a notice", |message| message.to_string().contains(MARK))?;
    scan_all("a notice", &notice)?;
    shown("the summary", MARK, &host.succeed("status", &json!({}))?)?;
    // The wizard: the list, and each of its screens.
    host.succeed("menu", &json!({ "event": { "kind": "open" } }))?;
    for index in 0..3 {
        let screen = host.succeed("menu", &json!({ "event": { "kind": "choose", "index": index } }))?;
        scan_all("a screen of /sandbox", &screen)?;
    }
    scene.write(&default_file(&scene), &json!({ ODD: 1 }).to_string())?;
    let notice = host.wait("a warning", |message| {
        message.to_string().contains("STILL in force") || message.to_string().contains("level")
    })?;
    scan_all("a warning", &notice)?;
    scan_all("the status", &host.succeed("status", &json!({}))?)?;
    scan_all("/sandbox", &host.succeed("menu", &json!({ "event": { "kind": "open" } }))?)?;
    scan("standard error", &host.errors())?;
    host.close()?;
    // A session that starts with invalid settings refuses everything and reports why.
    let mut host = Serve::start(&scene, &[], &[])?;
    let hello = host.hello(Interface::Present);
    shown("a closed session", MARK, &host.call("hello", &hello)?)?;
    scan_all("/sandbox of a closed session", &host.call("menu", &json!({ "event": { "kind": "open" } }))?)?;
    host.close()?;
    Ok(())
}

fn what_a_policy_tells_the_model_is_shown(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    for (fault, place) in [
        ("odd-texts", "brief"),
        ("odd-texts", "inspect"),
        ("odd-denial", "evaluate"),
        ("odd-question", "evaluate"),
    ] {
        hostile(&scene, fault, place)?;
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        let status = host.succeed("status", &json!({}))?;
        match place {
            "brief" => shown("the policy's text for the model", MARK_OF_A_POLICY, &status)?,
            _ => scan_all("status", &status)?,
        }
        let content = json!([{ "kind": "text", "text": "plain" }]);
        let inspect = json!({ "callId": "i", "tool": "t", "provider": "builtin", "input": {}, "isError": false, "content": content });
        scan_all("inspect", &host.call("inspect", &inspect)?)?;
        let read = json!({ "callId": "r", "path": scene.project().join("x"), "intent": { "kind": "read" } });
        let id = host.request("file/open", &read)?;
        if fault == "odd-question" {
            let question = host.question()?;
            shown("a policy's question", MARK_OF_A_POLICY, &question)?;
            super::shown("asks list", MARK_OF_A_POLICY, &scene.portcullis(&["asks", "list"])?)?;
            host.answer(&question, &json!("refuse"))?;
        }
        let reply = host.reply(id)?;
        scan_all("a denial", &reply)?;
        ensure!(fault != "odd-denial" || reply.to_string().contains(MARK_OF_A_POLICY), "{reply}");
        scan_all("/sandbox", &host.succeed("menu", &json!({ "event": { "kind": "open" } }))?)?;
        scan("standard error", &host.errors())?;
        host.close()?;
    }
    Ok(())
}

/// Refusals, as the model gets them through pi.
fn what_the_model_reads_is_shown(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let outside = scene.outside().join(ODD).display().to_string();
    scene.write(&scene.outside().join(ODD), "x")?;
    let script =
        script([read(&outside), bash(&format!("mkdir '{outside}-made' 2> /dev/null; true")), say("done")]);
    let finished = Launch::guarded(&scene, version, &script)?.print("go")?.ended_unattended()?;
    let told = [finished.tool_result(0)?, finished.tool_result(1)?].join("\n");
    scan("what the model reads", &told)?;
    ensure!(told.contains(MARK), "it does not show it: {told}");
    scan("the output of pi", &finished.stdout)?;
    Ok(())
}
