//! `portcullis serve` from the point of view of its client; pi's tools rely on the behaviour tested here.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Interface, Scene, Serve, User, processes};
use serde_json::{Value, json};

as_each_user!(
    commands_are_confined,
    files_in_the_project_are_free,
    files_elsewhere_are_a_question,
    secrets_are_denied_without_a_question,
    nobody_to_ask_means_no,
    questions_and_commands_at_once,
    calls_of_a_command_wait_for_the_answer,
    a_yes_for_the_session_ends_with_it,
    a_cancelled_question_is_withdrawn,
    cancel_ends_the_whole_tree,
    the_end_of_the_host_ends_everything,
    what_commands_see_of_the_environment,
    background_processes_end_with_their_command,
);

fn commands_are_confined(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let outside = scene.outside().join("made");
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let script = format!("echo in > inside; echo out > '{}'; echo then $?; pwd", outside.display());
    let (ended, output) = host.run(&script)?;
    ensure!(ended.get("exitCode") == Some(&json!(0)), "{ended} {output}");
    ensure!(output.contains("then 1"), "{output}");
    ensure!(output.contains(&scene.project().display().to_string()), "{output}");
    ensure!(!outside.exists(), "a command wrote outside the project: {output}");
    ensure!(std::fs::read_to_string(scene.project().join("inside"))? == "in\n");
    Ok(())
}

fn files_in_the_project_are_free(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let path = scene.project().join("deep/er/file.txt");
    host.succeed("file/write", &json!({ "callId": "w", "path": path, "content": "alpha\n" }))?;
    ensure!(std::fs::read_to_string(&path)? == "alpha\n");
    ensure!(content(&mut host, &path.display().to_string())? == "YWxwaGEK");
    Ok(())
}

fn files_elsewhere_are_a_question(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "alpha\n")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;

    let refused = open_asked(&mut host, &notes.display().to_string(), &json!("refuse"))?;
    ensure!(denied(&refused), "{refused}");
    let allowed = open_asked(&mut host, &notes.display().to_string(), &json!(0))?;
    let handle = allowed.pointer("/result/handle").with_context(|| format!("{allowed}"))?;
    let read = host.succeed("file/read", &json!({ "handle": handle }))?;
    ensure!(read.get("contentBase64") == Some(&json!("YWxwaGEK")), "{read}");

    let made = scene.outside().join("made");
    let id = host.request("file/write", &json!({ "callId": "w", "path": made, "content": "x" }))?;
    let question = host.question()?;
    ensure!(question.to_string().contains(&made.display().to_string()), "{question}");
    ensure!(!made.exists(), "written before the answer");
    host.answer(&question, &json!("refuse"))?;
    let reply = host.reply(id)?;
    ensure!(denied(&reply), "{reply}");
    ensure!(!made.exists(), "written in spite of the refusal");
    Ok(())
}

fn secrets_are_denied_without_a_question(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let secret = scene.home().join(".pi/agent/auth.json");
    scene.write(&secret, "{\"key\":\"hunter2\"}")?;
    let linked = scene.project().join("innocent.json");
    std::os::unix::fs::symlink(&secret, &linked)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    for path in [&secret, &linked] {
        let open = reading(&path.display().to_string());
        let reply = host.call("file/open", &open)?;
        ensure!(denied(&reply), "{reply}");
        let write = host.call("file/write", &json!({ "callId": "w", "path": path, "content": "{}" }))?;
        ensure!(denied(&write), "{write}");
    }
    let (_, output) = host.run(&format!("cat '{}' innocent.json; echo end", secret.display()))?;
    ensure!(!output.contains("hunter2") && output.contains("end"), "{output}");
    ensure!(std::fs::read_to_string(&secret)?.contains("hunter2"));
    Ok(())
}

fn nobody_to_ask_means_no(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "alpha\n")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let open = json!({ "callId": "r", "path": notes, "intent": { "kind": "read" } });
    let reply = host.call("file/open", &open)?;
    ensure!(denied(&reply), "{reply}");
    Ok(())
}

fn questions_and_commands_at_once(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (one, two) = (scene.outside().join("one"), scene.outside().join("two"));
    scene.write(&one, "1")?;
    scene.write(&two, "2")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let running =
        host.begin("until [ -e go ]; do sleep 0.02; done; echo went", &json!({ "PATH": "/usr/bin:/bin" }))?;
    let open = |path| json!({ "callId": path, "path": path, "intent": { "kind": "read" } });
    let first = host.request("file/open", &open(&one))?;
    let second = host.request("file/open", &open(&two))?;
    // The questions are answered in reverse order, while the command is still running.
    let questions = [host.question()?, host.question()?];
    for question in questions.iter().rev() {
        host.answer(question, &json!(0))?;
    }
    for id in [second, first] {
        let reply = host.reply(id)?;
        ensure!(reply.get("result").is_some(), "{reply}");
    }
    let (_, output) = host.run("touch go; echo other")?;
    ensure!(output == "other\n", "{output}");
    let (_, output) = host.finish(running)?;
    ensure!(output == "went\n", "{output}");
    Ok(())
}

/// The same command continues after an answer; each place leads to one question.
fn calls_of_a_command_wait_for_the_answer(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let text = |value: &Value, pointer: &str| {
        value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let environment = json!({ "PATH": "/usr/bin:/bin", "OUT": scene.outside() });
    let script = "echo settings > .npmrc && cat .npmrc; for i in 1 2 3; do echo $i > $OUT/f$i; done; cat $OUT/f3; \
        rm $OUT/f1; rm $OUT/../other/x; echo y > .nvmrc; echo x > a/.envrc || echo refused";
    std::fs::create_dir(scene.project().join("a"))?;
    scene.user().own(&scene.project().join("a"))?;
    let id = host.begin(script, &environment)?;
    // A file that other programs execute leads to a question of its own.
    scene.write(&scene.at("other/x"), "x")?;
    for (name, label, answer) in [
        (".npmrc", "For this command", json!(0)),
        ("outside", "For this command: reading, changing and removing everything below ", json!(0)),
        ("other", "For this command: reading, changing and removing everything below ", json!("refuse")),
        (".nvmrc", "For this command", json!("refuse")),
        ("a/.envrc", "For this command", json!("refuse")),
    ] {
        let question = host.question()?;
        ensure!(text(&question, "/params/subject").ends_with(name), "{question}");
        ensure!(text(&question, "/params/options/0/label").starts_with(label), "{question}");
        ensure!(text(&question, "/params/callId") == format!("call-{id}"), "{question}");
        host.answer(&question, &answer)?;
    }
    let (_, output) = host.finish(id)?;
    ensure!(output.starts_with("settings\n3\n") && output.ends_with("refused\n"), "{output}");
    // The grant was for this command.
    let id = host.begin("echo other > .npmrc || echo refused", &environment)?;
    let question = host.question()?;
    host.answer(&question, &json!("refuse"))?;
    let (_, output) = host.finish(id)?;
    ensure!(output.ends_with("refused\n"), "{output}");
    ensure!(std::fs::read_to_string(scene.project().join(".npmrc"))? == "settings\n");
    Ok(())
}

fn a_yes_for_the_session_ends_with_it(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "alpha\n")?;
    let path = notes.display().to_string();
    for _session in 0..2 {
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        let opened = host.request("file/open", &reading(&path))?;
        let question = host.question()?;
        let options = question.pointer("/params/options").and_then(Value::as_array);
        let for_session = |option: &Value| option.get("scope") == Some(&json!("session"));
        let choice = options.and_then(|options| options.iter().position(for_session));
        host.answer(&question, &json!(choice.with_context(|| format!("{question}"))?))?;
        ensure!(host.reply(opened)?.get("result").is_some());
        // There is no second question; but a grant for reading does not cover writing.
        ensure!(content(&mut host, &path)? == "YWxwaGEK");
        let write = host.request("file/write", &json!({ "callId": "w", "path": path, "content": "x" }))?;
        let question = host.question()?;
        host.answer(&question, &json!("refuse"))?;
        ensure!(denied(&host.reply(write)?));
        host.close()?;
    }
    Ok(())
}

fn a_cancelled_question_is_withdrawn(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "alpha\n")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let id = host.request("file/open", &reading(&notes.display().to_string()))?;
    let question = host.question()?;
    host.line(json!({ "jsonrpc": "2.0", "method": "cancel", "params": { "id": id } }).to_string())?;
    let reply = host.reply(id)?;
    ensure!(reply.get("error").is_some(), "{reply}");
    let withdrawn = host.wait("withdrawal", |message| {
        message.get("method").and_then(Value::as_str) == Some("ask/withdraw")
    })?;
    ensure!(
        withdrawn.pointer("/params/askId") == question.pointer("/params/askId"),
        "{withdrawn} {question}"
    );
    // An answer that comes too late permits nothing and does no harm.
    host.answer(&question, &json!(0))?;
    ensure!(host.run("echo on")?.1 == "on\n");
    Ok(())
}

fn cancel_ends_the_whole_tree(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let (sleep, detached) = (processes::long_sleep(), processes::long_sleep());
    let id = host.begin(&format!("setsid {detached} & {sleep}"), &json!({ "PATH": "/usr/bin:/bin" }))?;
    processes::wait_running(&sleep)?;
    processes::wait_running(&detached)?;
    host.line(json!({ "jsonrpc": "2.0", "method": "cancel", "params": { "id": id } }).to_string())?;
    let reply = host.reply(id)?;
    ensure!(reply.get("result").is_none_or(|ended| ended.get("exitCode").is_none()), "{reply}");
    ensure!(processes::with_text(&sleep)?.is_empty(), "the reply came before the end of the command");
    ensure!(processes::with_text(&detached)?.is_empty(), "a detached process outlived its command");
    // The host works as before.
    ensure!(host.run("echo on")?.1 == "on\n");
    Ok(())
}

fn the_end_of_the_host_ends_everything(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let sleep = processes::long_sleep();
    let begin = || -> Result<Serve> {
        let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
        host.begin(&sleep, &json!({ "PATH": "/usr/bin:/bin" }))?;
        processes::wait_running(&sleep)?;
        Ok(host)
    };
    // The host is killed and cannot clean up.
    begin()?.kill()?;
    processes::wait_gone(&sleep)?;
    // The client closes the connection, as when pi is killed.
    begin()?.close()?;
    ensure!(processes::with_text(&sleep)?.is_empty(), "the host ended before its command");
    processes::wait_scene_gone(&scene, |_| false)?;
    Ok(())
}

fn what_commands_see_of_the_environment(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let environment = json!({
        "PATH": "/usr/bin:/bin", "PI_SESSION_ID": "kept-1", "MY_SETTING": "kept-2",
        "ANTHROPIC_API_KEY": "hunter2", "GITHUB_TOKEN": "hunter2", "AWS_SECRET_ACCESS_KEY": "hunter2",
        "SSH_AUTH_SOCK": "/hunter2", "LD_PRELOAD": "/hunter2.so", "BASH_ENV": "/hunter2", "NODE_OPTIONS": "--hunter2",
        "GIT_DIR": "/hunter2", "BASH_FUNC_ls%%": "() { echo hunter2; }",
    });
    let id = host.begin("env; tr '\\0' '\\n' < /proc/self/environ; ls", &environment)?;
    let (_, output) = host.finish(id)?;
    ensure!(output.contains("kept-1") && output.contains("kept-2"), "{output}");
    ensure!(!output.contains("hunter2"), "{output}");
    Ok(())
}

fn background_processes_end_with_their_command(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let sleep = processes::long_sleep();
    let (ended, output) = host.run(&format!("setsid {sleep} >&- 2>&- & echo left; exit 7"))?;
    ensure!(ended.get("exitCode") == Some(&json!(7)) && output == "left\n", "{ended} {output}");
    ensure!(processes::with_text(&sleep)?.is_empty());
    let (ended, _) = host.run("kill -TERM $$; sleep 9")?;
    ensure!(ended.get("signal") == Some(&json!(15)), "{ended}");
    Ok(())
}

fn reading(path: &str) -> Value {
    json!({ "callId": path, "path": path, "intent": { "kind": "read" } })
}

/// Opens `path` for reading, answers the expected question, and returns the reply.
fn open_asked(host: &mut Serve, path: &str, choice: &Value) -> Result<Value> {
    let id = host.request("file/open", &reading(path))?;
    let question = host.question()?;
    ensure!(question.to_string().contains(path), "the question does not name `{path}`: {question}");
    host.answer(&question, choice)?;
    host.reply(id)
}

/// Reads a file that leads to no question; returns its bytes in base64.
fn content(host: &mut Serve, path: &str) -> Result<String> {
    let open = reading(path);
    let opened = host.succeed("file/open", &open)?;
    let read = host.succeed("file/read", &json!({ "handle": opened.get("handle") }))?;
    host.succeed("file/close", &json!({ "handle": opened.get("handle") }))?;
    Ok(read.get("contentBase64").and_then(Value::as_str).unwrap_or_default().to_owned())
}

fn denied(reply: &Value) -> bool {
    reply.pointer("/error/data/kind") == Some(&json!("denied"))
}
