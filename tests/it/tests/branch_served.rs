//! Branches of the host that pi starts: file tools, and `/branch`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Finished, Interface, Scene, Serve, User};
use serde_json::{Value, json};

use crate::branch_review::with_whole_change;
use crate::branches::branch;
use crate::undo::tree;

as_each_user!(
    file_tools_see_and_change_the_branch_only,
    no_tool_opens_a_file_of_the_project_itself,
    the_record_of_the_branch_is_closed_to_tools,
    a_policy_denies_and_asks_about_branch_commit,
    names_of_a_commit_lead_nowhere_else,
    a_killed_host_leaves_no_part_of_a_commit,
);

/// Starts a host in the branch `fix`, and sends `hello`.
fn start(scene: &Scene, interface: Interface) -> Result<Serve> {
    let mut host = Serve::start(scene, &[], &[("PORTCULLIS_BRANCH", "fix")])?;
    let hello = host.hello(interface);
    host.succeed("hello", &hello)?;
    Ok(host)
}

/// Calls the host, answers its questions with yes, and returns the result of the call.
fn asked(host: &mut Serve, method: &str, params: &Value) -> Result<Value> {
    let id = host.request(method, params)?;
    loop {
        let message = host.wait("a question or the answer", |message| {
            message.get("method") == Some(&json!("ask")) || message.get("id") == Some(&json!(id))
        })?;
        if message.get("method").is_none() {
            return Ok(message);
        }
        // Once.
        host.answer(&message, &json!(0))?;
    }
}

/// Returns the content in base64, or the error.
fn read(host: &mut Serve, path: &Path) -> Result<Value> {
    let params = json!({ "callId": "read", "path": path, "intent": { "kind": "read" } });
    let opened = asked(host, "file/open", &params)?;
    match opened.pointer("/result/handle") {
        Some(handle) => host.call("file/read", &json!({ "handle": handle })),
        None => Ok(opened),
    }
}

fn write(host: &mut Serve, path: &Path) -> Result<Value> {
    asked(host, "file/write", &json!({ "callId": "write", "path": path, "content": "of a tool\n" }))
}

/// `of a command`, `of the project` and `of outside`, in base64.
const OF_A_COMMAND: &str = "b2YgYSBjb21tYW5kCg==";
const OF_THE_PROJECT: &str = "b2YgdGhlIHByb2plY3QK";
const OF_OUTSIDE: &str = "b2Ygb3V0c2lkZQo=";

fn file_tools_see_and_change_the_branch_only(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let project = scene.project();
    for name in ["file", "gone", "d/file"] {
        scene.write(&project.join(name), "of the project\n")?;
    }
    let before = tree(&project)?;
    let mut host = start(&scene, Interface::Absent)?;
    host.run("echo of a command > file; rm gone; rm -r d; mkdir d; echo of a command > d/new")?;
    for path in ["gone", "d/file"] {
        let said = read(&mut host, &project.join(path))?;
        ensure!(said.get("error").is_some() && !said.to_string().contains(OF_THE_PROJECT), "{path}: {said}");
    }
    for path in ["file", "d/new"] {
        let said = read(&mut host, &project.join(path))?;
        ensure!(said.to_string().contains(OF_A_COMMAND), "{path}: {said}");
    }
    let written = write(&mut host, &project.join("file"))?;
    ensure!(written.get("error").is_none(), "{written}");
    let (_, output) = host.run("cat file")?;
    ensure!(output == "of a tool\n", "{output}");
    ensure!(tree(&project)? == before, "the project has changed");
    host.close()?;
    Ok(())
}

/// A name outside of the project that leads into it: the sandbox may not have that name, the host has it.
fn no_tool_opens_a_file_of_the_project_itself(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let project = scene.project();
    for name in ["file", "gone"] {
        scene.write(&project.join(name), "of the project\n")?;
    }
    scene.write(&scene.outside().join("own"), "of outside\n")?;
    for name in ["file", "gone"] {
        symlink(project.join(name), scene.outside().join(name))?;
    }
    let before = tree(&project)?;
    let mut host = start(&scene, Interface::Present)?;
    host.run("echo of a command > file; rm gone")?;
    for name in ["file", "gone"] {
        let said = read(&mut host, &scene.outside().join(name))?;
        ensure!(!said.to_string().contains(OF_THE_PROJECT), "{name}: {said}");
        write(&mut host, &scene.outside().join(name))?;
        ensure!(tree(&project)? == before, "{name}: the project has changed");
    }
    // Control: what lies outside itself is opened there, after a yes.
    let said = read(&mut host, &scene.outside().join("own"))?;
    ensure!(said.to_string().contains(OF_OUTSIDE), "control: {said}");
    host.close()?;
    Ok(())
}

fn the_record_of_the_branch_is_closed_to_tools(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = start(&scene, Interface::Present)?;
    host.run("echo x > made")?;
    let all = scene.home().join(".local/state/portcullis/branches");
    let own = fs::read_dir(&all)?.next().context("a project")??.path().join("fix");
    ensure!(own.join("upper/made").exists(), "control");
    let before = tree(&all)?;
    symlink(own.join("upper"), scene.outside().join("link"))?;
    let places =
        [own.join("upper/made"), own.join("about.json"), own.join("settled.json"), own.join("commit")];
    for path in places.into_iter().chain([scene.outside().join("link/made")]) {
        let said = read(&mut host, &path)?;
        ensure!(said.get("error").is_some(), "{}: {said}", path.display());
        let said = write(&mut host, &path)?;
        ensure!(said.get("error").is_some(), "{}: {said}", path.display());
    }
    ensure!(tree(&all)? == before, "the record has changed");
    host.close()?;
    Ok(())
}

fn commit(host: &mut Serve, paths: &[&str], approved: bool) -> Result<Value> {
    let review = host.succeed("branch", &json!({ "diff": false }))?;
    let params = json!({
        "review": review.get("review"), "paths": paths, "protected": false, "approved": approved,
    });
    host.call("branch/commit", &params)
}

fn a_policy_denies_and_asks_about_branch_commit(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    with_whole_change(&scene, user)?;
    let project = scene.project();
    let mut host = start(&scene, Interface::Absent)?;
    host.run("touch a b c d forbidden")?;
    let review = host.succeed("branch", &json!({ "diff": false }))?;
    ensure!(review.to_string().contains("forbidden files are among the changes"), "{review}");
    for approved in [false, true] {
        let denied = commit(&mut host, &[], approved)?;
        ensure!(denied.to_string().contains("a policy denies this change"), "{denied}");
        ensure!(fs::read_dir(&project)?.count() == 0, "{denied}");
    }
    // The session goes on in the branch.
    let (_, output) = host.run("ls; rm forbidden")?;
    ensure!(output.contains("forbidden"), "{output}");
    let asks = commit(&mut host, &[], false)?;
    let question = asks.pointer("/result/question").and_then(Value::as_str).context("a question")?;
    ensure!(question.contains("more than 3 names"), "{asks}");
    ensure!(fs::read_dir(&project)?.count() == 0, "{asks}");
    // A part of it is another request.
    let part = commit(&mut host, &["a"], false)?;
    ensure!(part.pointer("/result/committed") == Some(&json!(1)), "{part}");
    host.run("touch e")?;
    let all = commit(&mut host, &[], true)?;
    ensure!(all.pointer("/result/committed") == Some(&json!(4)), "{all}");
    ensure!(fs::read_dir(&project)?.count() == 5, "{all}");
    host.close()?;
    Ok(())
}

fn names_of_a_commit_lead_nowhere_else(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = start(&scene, Interface::Absent)?;
    host.run("mkdir d; touch d/x y")?;
    for name in ["../outside/x", "/etc/passwd", "missing"] {
        let refused = commit(&mut host, &[name], false)?;
        ensure!(refused.to_string().contains("nothing differs at"), "{name}: {refused}");
    }
    let (absolute, others) = (scene.project().join("d"), scene.project().join("y"));
    let done = commit(&mut host, &[absolute.to_str().context("a path")?], false)?;
    ensure!(done.pointer("/result/committed") == Some(&json!(2)) && !others.exists(), "{done}");
    let done = commit(&mut host, &["./y"], false)?;
    ensure!(done.pointer("/result/committed") == Some(&json!(1)) && others.exists(), "{done}");
    host.close()?;
    Ok(())
}

fn a_killed_host_leaves_no_part_of_a_commit(user: User) -> Result<()> {
    const FILES: usize = 400;
    let scene = Scene::new(user)?;
    let project = scene.project();
    for number in 0..FILES {
        scene.write(&project.join(format!("file-{number:03}")), "first")?;
    }
    let before = tree(&project)?;
    let mut host = start(&scene, Interface::Absent)?;
    host.run("for name in file-*; do echo changed > $name; done")?;
    let review = host.succeed("branch", &json!({ "diff": false }))?;
    let params = json!({
        "review": review.get("review"), "paths": [], "protected": false, "approved": false,
    });
    host.request("branch/commit", &params)?;
    let first = project.join("file-000");
    let deadline = Deadline::start();
    while fs::read_to_string(&first)? == "first" {
        ensure!(!deadline.left().is_zero(), "the commit does not begin: {}", host.errors());
    }
    host.kill()?;
    let between = tree(&project)?;
    let changed = between.iter().filter(|(name, state)| before.get(*name) != Some(*state)).count();
    ensure!(changed > 0 && changed < FILES, "control: {changed} files were committed");
    // The next host takes it back, and goes on in the branch.
    let mut host = start(&scene, Interface::Absent)?;
    ensure!(tree(&project)? == before, "{}", host.errors());
    let (_, output) = host.run("cat file-000")?;
    ensure!(output == "changed\n", "{output}");
    let done = commit(&mut host, &[], false)?;
    ensure!(done.pointer("/result/committed") == Some(&json!(FILES)), "{done}");
    host.close()?;
    let list = branch(&scene, &["list"])?.ended_with(0)?;
    ensure!(list.stdout.contains("no branches"), "{list:?}");
    let mut undo = scene.portcullis_command(&["undo", "--yes"])?;
    Finished::run(undo.current_dir(&project))?.ended_with(0)?;
    ensure!(fs::read_to_string(&first)? == "first", "the commit is not undone");
    Ok(())
}
