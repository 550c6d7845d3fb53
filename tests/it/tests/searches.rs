//! `ls`, `find` and `grep` neither list nor match files that may not be read, also without a sandbox.

use std::os::unix::fs::symlink;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{call, calls, expecting, expecting_no, say};
use portcullis_it::{Interface, Launch, PiVersion, Scene, Serve, User, guest, script};
use serde_json::{Value, json};

on_each_pi!(names_and_lines_do_not_leak);

as_each_user!(
    secrets_below_a_searched_directory_are_left_out,
    a_yes_covers_what_the_same_rule_asks,
    the_sessions_own_tmp_is_searched,
    the_host_names_pis_own_output,
    aborted_searches_end,
);

const TOOLS: [&str; 2] = ["--tools", "read,ls,find,grep"];

/// A policy denies one file; as a control, pi alone finds it.
fn names_and_lines_do_not_leak(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("d/secret.txt"), "needle hunter2\n")?;
    scene.write(&scene.project().join("d/other.txt"), "needle\n")?;
    symlink(scene.project().join("d/secret.txt"), scene.project().join("d/innocent"))?;
    let search = |tool: &str, arguments: Value| calls([call(tool, &arguments)]);
    let steps = |check: fn(Value) -> Value| {
        script([
            search("ls", json!({ "path": "d" })),
            check(search("find", json!({ "pattern": "*.txt" }))),
            check(search("grep", json!({ "pattern": "needle" }))),
            check(search("grep", json!({ "pattern": "hunter", "path": "d/secret.txt" }))),
            check(say("done")),
        ])
    };
    let policy = json!({ "use": guest("deny-one", user)?, "config": { "path": "d/secret.txt" } });
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        "policies": [{ "use": "workspace" }, policy],
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let hidden = steps(|step| expecting_no("secret\\.txt\\n|secret\\.txt:|hunter2", step));
    let finished = Launch::guarded(&scene, version, &hidden)?.with(TOOLS).print("go")?.ended_unattended()?;
    ensure!(finished.tool_result(0)? == "other.txt", "{finished:#?}");
    ensure!(finished.tool_result(1)? == "d/other.txt", "{finished:#?}");
    ensure!(finished.tool_result(2)? == "d/other.txt:1: needle", "{finished:#?}");
    ensure!(finished.tool_result(3)?.contains("one.denied"), "{finished:#?}");
    let found = steps(|step| expecting("secret|hunter2", step));
    Launch::plain(&scene, version, &found)?.with(TOOLS).print("go")?.ended_unattended()?;
    Ok(())
}

/// pi's own directory may be read, except for the keys in it.
fn secrets_below_a_searched_directory_are_left_out(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let agent = scene.home().join(".pi/agent");
    scene.write(&agent.join("auth.json"), "needle hunter2\n")?;
    scene.write(&agent.join("notes.md"), "needle\n")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let found = find(&mut host, &scene, &agent.display().to_string(), "*")?;
    ensure!(found.contains("notes.md") && !found.contains("auth.json"), "{found}");
    let found = grep(&mut host, &scene, &agent.display().to_string(), "needle")?;
    ensure!(found == "notes.md:1: needle", "{found}");
    let listed = host.succeed("file/list", &json!({ "callId": "l", "path": agent }))?;
    ensure!(listed.to_string().contains("notes.md") && !listed.to_string().contains("auth.json"), "{listed}");
    Ok(())
}

fn a_yes_covers_what_the_same_rule_asks(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.outside().join("deep/notes"), "needle\n")?;
    scene.write(&scene.outside().join(".npmrc"), "needle\n")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let outside = scene.outside().display().to_string();
    let params = json!({ "callId": "g", "cwd": scene.project(), "path": outside, "pattern": "needle" });
    let id = host.request("file/grep", &params)?;
    let question = host.question()?;
    ensure!(question.to_string().contains(&outside), "{question}");
    host.answer(&question, &json!("refuse"))?;
    let refused = host.reply(id)?;
    ensure!(refused.pointer("/error/data/kind") == Some(&json!("denied")), "{refused}");
    let id = host.request("file/grep", &params)?;
    let question = host.question()?;
    host.answer(&question, &json!(0))?;
    let found = host.reply(id)?;
    ensure!(found.to_string().contains("deep/notes:1: needle"), "{found}");
    Ok(())
}

/// Commands and searches see the same `/tmp`, which is private to the session.
fn the_sessions_own_tmp_is_searched(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let name = format!("of-the-host-{}", std::process::id());
    let of_host = std::path::Path::new("/tmp").join(&name);
    std::fs::write(&of_host, "needle\n")?;
    host.run("mkdir /tmp/d; echo needle > /tmp/d/inside.txt")?;
    let found = grep(&mut host, &scene, "/tmp", "needle");
    let names = find(&mut host, &scene, "/tmp", "*");
    std::fs::remove_file(&of_host)?;
    ensure!(found? == "d/inside.txt:1: needle");
    ensure!(!names?.contains(&name));
    Ok(())
}

/// pi's file with the whole output of a command is in the `/tmp` of the host: it can be read by exactly its name.
fn the_host_names_pis_own_output(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let number = std::process::id();
    let (output, other) =
        (format!("/tmp/pi-bash-{number:016x}.log"), format!("/tmp/pi-bash-f{number:015x}.log"));
    for file in [&output, &other] {
        std::fs::write(file, "the whole output\n")?;
        user.own(file.as_ref())?;
    }
    let open = |path: &str| json!({ "callId": path, "path": path, "intent": { "kind": "read" } });
    let before = host.call("file/open", &open(&output))?;
    host.succeed("file/output", &json!({ "path": output }))?;
    let after = host.call("file/open", &open(&output))?;
    let neighbour = host.call("file/open", &open(&other))?;
    let elsewhere = host.call("file/output", &json!({ "path": "/etc/passwd" }))?;
    // The name allows reading only, in this session: no other call, and no command, can use it.
    let edits = json!([{ "oldText": "whole", "newText": "half" }]);
    let edit = json!({ "callId": "e", "path": output, "intent": { "kind": "edit", "edits": edits } });
    let others = [
        host.call("file/open", &edit)?,
        host.call("file/write", &json!({ "callId": "w", "path": output, "content": "x" }))?,
        host.call("file/list", &json!({ "callId": "l", "path": output }))?,
        host.call(
            "file/grep",
            &json!({ "callId": "g", "cwd": scene.project(), "path": output, "pattern": "whole" }),
        )?,
    ];
    let by_command = host.run(&format!("cat {output}; echo x > {output}; cat {output}"))?.1;
    let mut second = Serve::greeted(&scene, &[], Interface::Absent)?;
    let in_another = second.call("file/open", &open(&output))?;
    let unchanged = std::fs::read_to_string(&output)?;
    for file in [&output, &other] {
        std::fs::remove_file(file)?;
    }
    let is_missing = |reply: &Value| reply.pointer("/error/data/kind") == Some(&json!("notFound"));
    ensure!(is_missing(&before) && is_missing(&neighbour), "{before} {neighbour}");
    ensure!(after.pointer("/result/size") == Some(&json!(17)), "{after}");
    ensure!(elsewhere.get("error").is_some(), "{elsewhere}");
    for reply in others {
        ensure!(!reply.to_string().contains("whole output"), "{reply}");
    }
    ensure!(unchanged == "the whole output\n" && !by_command.contains("whole"), "{unchanged} {by_command}");
    ensure!(is_missing(&in_another), "{in_another}");
    Ok(())
}

fn aborted_searches_end(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    for number in 0..2_000 {
        scene.write(&scene.project().join(format!("d{}/f{number}", number % 50)), &"line\n".repeat(200))?;
    }
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let params = json!({ "callId": "g", "cwd": scene.project(), "pattern": "nothing like it" });
    let id = host.request("file/grep", &params)?;
    host.line(json!({ "jsonrpc": "2.0", "method": "cancel", "params": { "id": id } }).to_string())?;
    let reply = host.reply(id)?;
    ensure!(reply.pointer("/error/code") == Some(&json!(-32800)), "{reply}");
    ensure!(host.run("echo on")?.1 == "on\n");
    Ok(())
}

fn find(host: &mut Serve, scene: &Scene, path: &str, pattern: &str) -> Result<String> {
    text(&host.succeed(
        "file/find",
        &json!({ "callId": "f", "cwd": scene.project(), "path": path, "pattern": pattern }),
    )?)
}

fn grep(host: &mut Serve, scene: &Scene, path: &str, pattern: &str) -> Result<String> {
    text(&host.succeed(
        "file/grep",
        &json!({ "callId": "g", "cwd": scene.project(), "path": path, "pattern": pattern }),
    )?)
}

fn text(result: &Value) -> Result<String> {
    Ok(result.get("text").and_then(Value::as_str).with_context(|| result.to_string())?.to_owned())
}
