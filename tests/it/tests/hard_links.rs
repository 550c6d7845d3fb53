//! Files with several names: build trees and package stores contain them and work, and no second name evades a rule.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use portcullis_it::{Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    all_names_in_the_project,
    a_package_store_is_read_and_not_written,
    an_answer_holds_for_that_file,
    a_secret_by_another_name,
    commands_read_no_secret_by_another_name,
    a_hook_by_another_name,
);

fn link(scene: &Scene, original: &Path, name: &str) -> Result<()> {
    let name = scene.project().join(name);
    scene.write(&name, "")?;
    fs::remove_file(&name)?;
    Ok(fs::hard_link(original, name)?)
}

fn write(scene: &Scene, name: &str, content: &str) -> Value {
    json!({ "callId": "w", "path": scene.project().join(name), "content": content })
}

fn edit(scene: &Scene, name: &str) -> Value {
    let intent = json!({ "kind": "edit", "edits": [{ "oldText": "a", "newText": "b" }] });
    json!({ "callId": "e", "path": scene.project().join(name), "intent": intent })
}

fn read(scene: &Scene, name: &str) -> Value {
    json!({ "callId": "r", "path": scene.project().join(name), "intent": { "kind": "read" } })
}

/// cargo links its build results under two names.
fn all_names_in_the_project(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let one = scene.project().join("target/debug/app");
    scene.write(&one, "alpha")?;
    link(&scene, &one, "target/debug/deps/app-1")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    host.succeed("file/write", &write(&scene, "target/debug/deps/app-1", "beta"))?;
    ensure!(fs::read_to_string(&one)? == "beta");
    let handle = host.succeed("file/open", &edit(&scene, "target/debug/app"))?;
    let params = json!({ "handle": handle.get("handle"), "content": "gamma" });
    host.succeed("file/writeHandle", &params)?;
    ensure!(fs::read_to_string(scene.project().join("target/debug/deps/app-1"))? == "gamma");
    Ok(())
}

/// pnpm links every file of a package to a store that all projects share.
fn a_package_store_is_read_and_not_written(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let stored = scene.home().join(".local/share/pnpm/store/v10/files/ab/cdef");
    scene.write(&stored, "needle")?;
    link(&scene, &stored, "node_modules/.pnpm/p/index.js")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    host.succeed("file/open", &read(&scene, "node_modules/.pnpm/p/index.js"))?;
    let search = json!({ "callId": "g", "cwd": scene.project(), "pattern": "needle" });
    let found = host.succeed("file/grep", &search)?;
    ensure!(found.to_string().contains("index.js:1: needle"), "{found}");
    for ask in [
        ("file/write", write(&scene, "node_modules/.pnpm/p/index.js", "evil")),
        ("file/open", edit(&scene, "node_modules/.pnpm/p/index.js")),
    ] {
        let id = host.request(ask.0, &ask.1)?;
        let question = host.question()?;
        ensure!(question.to_string().contains("2 names (hard links), of which 1"), "{question}");
        host.answer(&question, &json!("refuse"))?;
        let reply = host.reply(id)?;
        ensure!(reply.to_string().contains("host.hard-links"), "{reply}");
    }
    ensure!(fs::read_to_string(&stored)? == "needle");
    let id = host.request("file/write", &write(&scene, "node_modules/.pnpm/p/index.js", "mended"))?;
    let question = host.question()?;
    host.answer(&question, &json!(0))?;
    host.reply(id)?;
    // The question told the user that the other names change as well.
    ensure!(fs::read_to_string(&stored)? == "mended");
    Ok(())
}

fn an_answer_holds_for_that_file(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    for name in ["one", "two"] {
        let original = scene.outside().join(name);
        scene.write(&original, "alpha")?;
        link(&scene, &original, &format!("d/{name}"))?;
    }
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let id = host.request("file/write", &write(&scene, "d/one", "beta"))?;
    let question = host.question()?;
    let options = question.pointer("/params/options").and_then(Value::as_array).cloned().unwrap_or_default();
    let in_session = |option: &Value| {
        option.get("scope") == Some(&json!("session")) && option.get("effect") == Some(&json!("allow"))
    };
    let session: Vec<usize> =
        options.iter().enumerate().filter(|(_, option)| in_session(option)).map(|(index, _)| index).collect();
    // There is no option for a whole directory with such files in it.
    ensure!(session.len() == 1, "{question}");
    host.answer(&question, &json!(session.first()))?;
    host.reply(id)?;
    host.succeed("file/write", &write(&scene, "d/one", "gamma"))?;
    let id = host.request("file/write", &write(&scene, "d/two", "beta"))?;
    let question = host.question()?;
    host.answer(&question, &json!("refuse"))?;
    host.reply(id)?;
    ensure!(fs::read_to_string(scene.outside().join("two"))? == "alpha");
    Ok(())
}

/// Attack 4: the user made the link, on the host. The control reads the secret through it.
fn a_secret_by_another_name(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let secret = scene.home().join(".pi/agent/auth.json");
    scene.write(&secret, "hunter2\n")?;
    link(&scene, &secret, "innocent")?;
    ensure!(fs::read_to_string(scene.project().join("innocent"))? == "hunter2\n");
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    for params in [read(&scene, "innocent"), edit(&scene, "innocent")] {
        let reply = host.call("file/open", &params)?;
        ensure!(reply.to_string().contains("another name (hard link)"), "{reply}");
    }
    for (path, pattern) in [(".", "hunter"), ("innocent", "hunter")] {
        let search = json!({ "callId": "g", "cwd": scene.project(), "path": path, "pattern": pattern });
        let reply = host.call("file/grep", &search)?;
        ensure!(!reply.to_string().contains("hunter2"), "{reply}");
    }
    // Another name of the secret as an ignore file: if the search followed it, the missing results would reveal its
    // content.
    link(&scene, &secret, ".gitignore")?;
    scene.write(&scene.project().join("hunter2"), "")?;
    let search = json!({ "callId": "f", "cwd": scene.project(), "pattern": "*" });
    let reply = host.succeed("file/find", &search)?;
    ensure!(reply.to_string().contains("hunter2"), "{reply}");
    Ok(())
}

/// Row 4: a file that a rule denies has another name in the project, made on the host.
fn commands_read_no_secret_by_another_name(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let secret = scene.home().join(".pi/agent/auth.json");
    scene.write(&secret, "hunter2\n")?;
    link(&scene, &secret, "innocent")?;
    scene.write(&scene.project().join("plain"), "plain\n")?;
    let script = "cat innocent; cp innocent copy; cat copy; ln innocent other; cat < other; cat plain";
    let inside = scene.portcullis(&["run", "--", "sh", "-c", &format!("exec 2>/dev/null; {script}")])?;
    ensure!(inside.stdout == "plain\n", "{inside:#?}");
    ensure!(fs::read_to_string(scene.project().join("innocent"))? == "hunter2\n", "control");
    Ok(())
}

fn a_hook_by_another_name(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let hook = scene.project().join(".git/hooks/pre-commit");
    scene.write(&hook, "#!/bin/sh\n")?;
    link(&scene, &hook, "script.sh")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let reply = host.call("file/write", &write(&scene, "script.sh", "evil"))?;
    ensure!(reply.to_string().contains("host.hard-links"), "{reply}");
    ensure!(fs::read_to_string(&hook)? == "#!/bin/sh\n");
    Ok(())
}
