//! Attacks 20, 23 and 24 on the tools: special files, names with unusual bytes and lengths, and names that look like
//! others.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use anyhow::{Result, ensure};
use portcullis_it::script::{call, calls, expecting, expecting_no, read, say, write};
use portcullis_it::{Interface, Launch, PiVersion, Scene, Serve, User, script};
use serde_json::{Value, json};

on_each_pi!(files_that_are_none, arguments_of_other_types);

as_each_user!(lengths_and_bytes, names_that_look_alike);

/// Attack 20, through pi itself. The control is that a named pipe does block a reader.
fn files_that_are_none(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let at = |name: &str| scene.project().join(name);
    let fifo = at("fifo");
    ensure!(user.command(std::path::Path::new("mkfifo")).arg(&fifo).status()?.success());
    let waits = user.command(std::path::Path::new("timeout")).arg("0.5").arg("cat").arg(&fifo).status()?;
    ensure!(waits.code() == Some(124), "the control did not wait: {waits}");
    let _socket = UnixListener::bind(at("socket"))?;
    symlink("/dev/zero", at("endless"))?;
    symlink("/proc/self/environ", at("environment"))?;
    File::create(at("huge"))?.set_len(1 << 40)?;
    let names =
        ["fifo", "socket", "endless", "environment", "huge", "/proc/self/mem", "/dev/tty", "/dev/full"];
    let edit = |path: &str| {
        calls([call("edit", &json!({ "path": path, "edits": [{ "oldText": "a", "newText": "b" }] }))])
    };
    let mut steps = Vec::new();
    for name in names {
        steps.extend([read(name), edit(name)]);
        // Overwriting a long file is harmless.
        if name != "huge" {
            steps.push(write(name, "x"));
        }
    }
    let mut checked: Vec<Value> = Vec::new();
    for (index, step) in steps.into_iter().enumerate() {
        checked.push(if index == 0 { step } else { expecting_no("hunter2|[Ww]rote|replaced", step) });
    }
    checked.push(expecting_no("hunter2|[Ww]rote|replaced", say("done")));
    let launch = Launch::guarded(&scene, version, &script(checked))?.variable("SECRET_OF_PI", "hunter2");
    let finished = launch.print("go")?.ended_unattended()?;
    ensure!(finished.stdout.contains("done"), "{finished:#?}");
    for name in ["fifo", "socket"] {
        ensure!(!fs::symlink_metadata(at(name))?.is_file(), "`{name}` was replaced");
    }
    Ok(())
}

/// Arguments of the wrong type for a path or a text, which a model may send.
fn arguments_of_other_types(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes").display().to_string();
    scene.write(&scene.outside().join("notes"), "hunter1")?;
    scene.write(&scene.project().join("f"), "alpha")?;
    let inputs = [
        json!({ "path": [notes] }),
        json!({ "path": { "toString": notes } }),
        json!({ "path": 7 }),
        json!({ "path": null }),
        json!({ "path": true }),
        json!({ "file_path": notes }),
        json!({ "path": "f", "file_path": notes, "__proto__": { "path": notes }, "constructor": notes }),
        json!({ "path": notes, "offset": -1, "limit": 1e308 }),
        json!({ "path": notes, "offset": "1", "limit": {} }),
        json!([notes]),
        json!(notes),
    ];
    let mut steps: Vec<Value> = inputs.iter().map(|input| calls([call("read", input)])).collect();
    for (tool, input) in [
        ("bash", json!({ "command": ["cat", notes] })),
        ("bash", json!({ "command": format!("cat {notes}"), "timeout": "never" })),
        ("bash", json!({ "command": { "toString": "x" } })),
        ("write", json!({ "path": format!("{notes}2"), "content": { "a": 1 } })),
        ("edit", json!({ "path": notes, "edits": "[{\"oldText\":\"hunter1\",\"newText\":\"x\"}]" })),
        ("edit", json!({ "path": notes, "edits": [{ "oldText": 1, "newText": null }] })),
        ("grep", json!({ "pattern": ["x"], "path": notes })),
        ("grep", json!({ "pattern": "hunter", "path": notes, "limit": -5, "context": 1e300 })),
        ("find", json!({ "pattern": "*", "path": [notes] })),
        ("ls", json!({ "path": ["/"] })),
    ] {
        steps.push(calls([call(tool, &input)]));
    }
    let first = steps.remove(0);
    let mut checked = vec![first];
    checked.extend(steps.into_iter().map(|step| expecting_no("hunter1", step)));
    checked.push(expecting_no("hunter1", read("f")));
    checked.push(expecting("alpha", say("done")));
    let launch = Launch::guarded(&scene, version, &script(checked))?;
    launch.with(["--tools", "read,bash,edit,write,grep,find,ls"]).print("go")?.ended_unattended()?;
    ensure!(fs::read_to_string(scene.outside().join("notes"))? == "hunter1");
    ensure!(!scene.outside().join("notes2").exists());
    Ok(())
}

/// Attack 23: the path is refused or names the expected file, and the host continues. The control reads what each path
/// names.
fn lengths_and_bytes(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.outside().join("notes"), "hunter1")?;
    let (project, outside) = (scene.project().display().to_string(), scene.outside().display().to_string());
    let named = [
        format!("{outside}//notes"),
        format!("{outside}/./notes"),
        format!("/{outside}/../outside/notes"),
        format!("{project}/../outside/notes"),
        format!("{}{outside}/notes", "/.".repeat(1_000)),
    ];
    for path in &named {
        ensure!(fs::read_to_string(path)? == "hunter1", "the control does not read `{path}`");
    }
    let odd = [
        format!("{outside}/notes/"),
        format!("{outside}/notes\0.txt"),
        format!("{project}/{}", "x".repeat(5_000)),
        format!("{project}{}", "/d".repeat(2_500)),
        format!("{project}/{}", "x".repeat(256)),
        String::new(),
        "relative".to_owned(),
        "\u{feff}/etc/passwd".to_owned(),
    ];
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    for path in named.iter().chain(&odd) {
        let intents = [
            json!({ "kind": "read" }),
            json!({ "kind": "edit", "edits": [{ "oldText": "h", "newText": "x" }] }),
        ];
        for intent in intents {
            let reply = host.call("file/open", &json!({ "callId": "o", "path": path, "intent": intent }))?;
            ensure!(reply.get("error").is_some(), "`{path}`: {reply}");
        }
        for method in ["file/list", "file/write"] {
            let content = if method == "file/write" { json!({ "content": "x" }) } else { json!({}) };
            let mut params = json!({ "callId": "o", "path": path });
            if let (Some(params), Some(content)) = (params.as_object_mut(), content.as_object()) {
                params.extend(content.clone());
            }
            let reply = host.call(method, &params)?;
            ensure!(reply.get("error").is_some(), "{method} `{path}`: {reply}");
        }
    }
    ensure!(fs::read_to_string(scene.outside().join("notes"))? == "hunter1");
    scene.write(&scene.project().join("f"), "alpha")?;
    host.succeed(
        "file/open",
        &json!({ "callId": "o", "path": format!("{project}/f"), "intent": { "kind": "read" } }),
    )?;
    Ok(())
}

/// Attack 24: a rule applies to the file with exactly this name, and a question escapes characters that would reorder
/// the name.
fn names_that_look_alike(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}");
    for name in [composed, decomposed] {
        scene.write(&scene.project().join(name), name)?;
    }
    ensure!(fs::read_dir(scene.project())?.count() == 2, "the control: they are two files here");
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": {
            "denyRead": ["/home", scene.project().join(composed)], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [],
        },
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let open = |path: String| json!({ "callId": "o", "path": path, "intent": { "kind": "read" } });
    let project = scene.project().display().to_string();
    let reply = host.call("file/open", &open(format!("{project}/{composed}")))?;
    ensure!(reply.get("error").is_some(), "{reply}");
    host.succeed("file/open", &open(format!("{project}/{decomposed}")))?;
    // Full-width dots do not lead to the parent directory; no file has that name.
    let reply = host.call("file/open", &open(format!("{project}/\u{ff0e}\u{ff0e}/outside")))?;
    ensure!(reply.to_string().contains("notFound"), "{reply}");
    let turned = scene.outside().join("a\u{202e}txt.sh");
    scene.write(&turned, "x")?;
    let id = host.request("file/open", &open(turned.display().to_string()))?;
    let question = host.question()?;
    let text = question.to_string();
    ensure!(!text.contains('\u{202e}') && text.contains("202e"), "{text}");
    host.answer(&question, &json!("refuse"))?;
    host.reply(id)?;
    Ok(())
}
