//! The operation uses the file that was decided on, however long the answer takes, and whatever happens to its name
//! meanwhile.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    a_question_keeps_the_file,
    a_question_keeps_the_directory,
    an_edit_does_not_lose_another,
    a_write_does_not_lose_a_new_file,
);

/// `harmless` and `hunter1` in base64.
const HARMLESS: &str = "aGFybWxlc3M=";
const HUNTER1: &str = "aHVudGVyMQ==";
/// The index of the option that allows once.
const ONCE: u64 = 0;

/// While a question waits, another file takes the name. The control looks the name up again, as a check by name does.
fn a_question_keeps_the_file(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "harmless")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let id =
        host.request("file/open", &json!({ "callId": "r", "path": notes, "intent": { "kind": "read" } }))?;
    let question = host.question()?;
    fs::rename(&notes, scene.outside().join("moved"))?;
    scene.write(&notes, "hunter1")?;
    host.answer(&question, &json!(ONCE))?;
    let reply = host.reply(id)?;
    ensure!(content(&mut host, &reply)? == HARMLESS, "{reply}");
    ensure!(fs::read_to_string(&notes)? == "hunter1", "the control would have read something else");

    let id =
        host.request("file/open", &json!({ "callId": "r", "path": notes, "intent": { "kind": "read" } }))?;
    let question = host.question()?;
    fs::remove_file(&notes)?;
    symlink(scene.home().join(".ssh/id_rsa"), &notes)?;
    scene.write(&scene.home().join(".ssh/id_rsa"), "hunter2")?;
    host.answer(&question, &json!(ONCE))?;
    let reply = host.reply(id)?;
    ensure!(!reply.to_string().contains("hunter2"), "{reply}");
    if reply.get("result").is_some() {
        ensure!(content(&mut host, &reply)? == HUNTER1, "{reply}");
    }
    Ok(())
}

/// A write to a directory that is replaced by a link while the question waits.
fn a_question_keeps_the_directory(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (shown, elsewhere) = (scene.outside().join("shown"), scene.outside().join("elsewhere"));
    for place in [&shown, &elsewhere] {
        scene.write(&place.join("f"), "before")?;
    }
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let params = json!({ "callId": "w", "path": shown.join("f"), "content": "after" });
    let id = host.request("file/write", &params)?;
    let question = host.question()?;
    fs::rename(&shown, scene.outside().join("kept"))?;
    symlink(&elsewhere, &shown)?;
    host.answer(&question, &json!(ONCE))?;
    let reply = host.reply(id)?;
    ensure!(reply.get("error").is_some(), "{reply}");
    ensure!(fs::read_to_string(elsewhere.join("f"))? == "before", "it was written elsewhere: {reply}");
    fs::write(shown.join("f"), "control")?;
    ensure!(fs::read_to_string(elsewhere.join("f"))? == "control", "by name it would have been");
    Ok(())
}

/// A command changes the file between the reading and the writing of an edit: the model gets an error, and no change is
/// lost.
fn an_edit_does_not_lose_another(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let file = scene.project().join("f");
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    for change in ["echo theirs > f", "echo theirs >> f", "echo theirs > g; mv g f", "rm f; echo theirs > f"]
    {
        scene.write(&file, "alpha\n")?;
        let intent = json!({ "kind": "edit", "edits": [{ "oldText": "alpha", "newText": "ours" }] });
        let opened = host.succeed("file/open", &json!({ "callId": "e", "path": file, "intent": intent }))?;
        host.run(change)?;
        let params = json!({ "handle": opened.get("handle"), "content": "ours\n" });
        let reply = host.call("file/writeHandle", &params)?;
        ensure!(reply.to_string().contains("changed by someone else"), "{change}: {reply}");
        let text = fs::read_to_string(&file)?;
        ensure!(text.contains("theirs") && !text.contains("ours"), "{change}: {text}");
    }
    Ok(())
}

/// A file appears at the path of a new file while the question waits.
fn a_write_does_not_lose_a_new_file(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let new = scene.outside().join("new");
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let id = host.request("file/write", &json!({ "callId": "w", "path": new, "content": "ours" }))?;
    let question = host.question()?;
    scene.write(&new, "theirs")?;
    host.answer(&question, &json!(ONCE))?;
    let reply = host.reply(id)?;
    ensure!(reply.to_string().contains("changed by someone else"), "{reply}");
    ensure!(fs::read_to_string(&new)? == "theirs");
    Ok(())
}

/// Returns the content behind the handle in a reply, in base64.
fn content(host: &mut Serve, opened: &Value) -> Result<String> {
    let handle = opened.pointer("/result/handle").with_context(|| format!("no handle: {opened}"))?;
    let part = host.succeed("file/read", &json!({ "handle": handle, "offset": 0 }))?;
    let text = part.get("contentBase64").and_then(Value::as_str);
    Ok(text.context("content")?.to_owned())
}
