//! A thousand calls, many of them cancelled: no process, file descriptor or temporary file remains.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Interface, Scene, Serve, User, processes};
use serde_json::json;

as_each_user!(nothing_is_left_after_a_thousand_calls);

const CALLS: usize = 1_000;
/// Calls before the first count, so that everything that the host keeps permanently exists.
const FIRST: usize = 40;

fn nothing_is_left_after_a_thousand_calls(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    for number in 0..100 {
        scene.write(&scene.project().join(format!("d{}/f{number}", number % 10)), "needle\n")?;
    }
    let sleep = processes::long_sleep();
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    for number in 0..FIRST {
        one_call(&mut host, &scene, number, &sleep)?;
    }
    let listing = "ls -A /tmp";
    let (before, temporary) = (descriptors(&host)?, host.run(listing)?.1);
    for number in 0..CALLS {
        one_call(&mut host, &scene, number, &sleep)?;
    }
    // The host closes the descriptors of a command's kill mechanism shortly after its reply.
    Deadline::start()
        .until("the closing of every descriptor", || Ok((descriptors(&host)? <= before).then_some(())))?;
    ensure!(processes::with_text(&sleep)?.is_empty(), "a process outlived its call");
    let mut left = Vec::new();
    temporary_files(&scene.project(), &mut left)?;
    ensure!(left.is_empty(), "temporary files are left: {left:?}");
    let after = host.run(listing)?.1;
    ensure!(after == temporary, "left in the session's `/tmp`: {after}, before: {temporary}");
    host.close()?;
    processes::wait_scene_gone(&scene, |_| false)
}

/// Makes one call; every third one is cancelled at once.
fn one_call(host: &mut Serve, scene: &Scene, number: usize, sleep: &str) -> Result<()> {
    let path = scene.project().join(format!("d{}/f{}", number % 10, number % 10));
    let call = format!("call-{number}");
    let is_aborted = number.is_multiple_of(3);
    let edits = json!([{ "oldText": "needle", "newText": "needle" }]);
    let (method, params) = match number % 8 {
        0 => ("file/open", json!({ "callId": call, "path": path, "intent": { "kind": "read" } })),
        1 => (
            "file/open",
            json!({ "callId": call, "path": path, "intent": { "kind": "edit", "edits": edits } }),
        ),
        2 => ("file/write", json!({ "callId": call, "path": path, "content": format!("needle {number}\n") })),
        3 => ("file/list", json!({ "callId": call, "path": scene.project() })),
        4 => ("file/find", json!({ "callId": call, "cwd": scene.project(), "pattern": "f*" })),
        5 => ("file/grep", json!({ "callId": call, "cwd": scene.project(), "pattern": "needle" })),
        6 => ("decide", json!({ "callId": call, "tool": "x", "provider": "extension:x", "input": {} })),
        _ => return a_command(host, is_aborted, sleep),
    };
    let id = host.request(method, &params)?;
    if is_aborted {
        abort(host, id)?;
    }
    let reply = host.reply(id)?;
    let Some(handle) = reply.pointer("/result/handle") else { return Ok(()) };
    if number % 16 == 1 {
        host.succeed("file/writeHandle", &json!({ "handle": handle, "content": "needle\n" }))?;
    }
    host.succeed("file/close", &json!({ "handle": handle }))?;
    Ok(())
}

fn a_command(host: &mut Serve, is_aborted: bool, sleep: &str) -> Result<()> {
    if !is_aborted {
        ensure!(host.run("echo on")?.1 == "on\n");
        return Ok(());
    }
    let id = host.begin(&format!("setsid {sleep} & {sleep}"), &json!({ "PATH": "/usr/bin:/bin" }))?;
    abort(host, id)?;
    host.reply(id)?;
    Ok(())
}

fn abort(host: &mut Serve, id: u64) -> Result<()> {
    host.line(json!({ "jsonrpc": "2.0", "method": "cancel", "params": { "id": id } }).to_string())
}

fn descriptors(host: &Serve) -> Result<usize> {
    let list = format!("/proc/{}/fd", host.process_id());
    Ok(fs::read_dir(&list).with_context(|| format!("listing `{list}`"))?.count())
}

fn temporary_files(directory: &std::path::Path, left: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            temporary_files(&path, left)?;
        } else if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".tmp")) {
            left.push(path.display().to_string());
        }
    }
    Ok(())
}
