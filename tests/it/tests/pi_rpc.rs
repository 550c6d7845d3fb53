//! pi in RPC mode: questions go to a client.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::processes::Process;
use portcullis_it::script::{awaiting, bash, call, calls, expecting, expecting_no, read, say, turns, write};
use portcullis_it::{Deadline, Launch, PiVersion, Rpc, Scene, User, processes, script};
use serde_json::{Value, json};

on_each_pi!(
    asked,
    two_questions,
    answered_while_a_command_runs,
    aborted_command,
    aborted_question,
    the_clients_own_commands,
    the_whole_output_of_the_users_commands,
    host_killed_once,
    host_killed_twice,
);

fn asked(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "hunter1")?;
    let path = notes.display().to_string();
    let script = turns([
        ("refused", vec![read(&path), expecting_no("hunter1", say("done"))]),
        ("allowed", vec![read(&path), expecting("hunter1", say("done"))]),
    ]);
    let mut pi = Launch::guarded(&scene, version, &script)?.rpc()?;
    pi.prompt("to be refused")?;
    let question = pi.question()?;
    ensure!(question.to_string().contains(&path), "the question does not name the file: {question}");
    pi.answer(&question, &option(&question, Answer::Refuse)?)?;
    pi.wait_for("agent_end")?;
    pi.prompt("to be allowed")?;
    let question = pi.question()?;
    pi.answer(&question, &option(&question, Answer::Allow)?)?;
    pi.wait_for("agent_end")?;
    ends_well(pi)
}

fn two_questions(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let path = |name: &str| scene.outside().join(name).display().to_string();
    scene.write(path("one").as_ref(), "first-text")?;
    scene.write(path("two").as_ref(), "second-text")?;
    let both = ["one", "two"].map(|name| call("read", &json!({ "path": path(name) })));
    let script = script([calls(both), expecting("first-text.*second-text", say("done"))]);
    let mut pi = Launch::guarded(&scene, version, &script)?.rpc()?;
    pi.prompt("go")?;
    for _ in 0..2 {
        let question = pi.question()?;
        // Questions come one after another: no other comes until this one is answered.
        let before = pi.seen().len();
        pi.send(&json!({ "id": "state", "type": "get_state" }))?;
        pi.wait_for("response")?;
        let others = pi.seen().iter().skip(before).filter(|message| is_dialog(message)).count();
        ensure!(others == 0, "two questions at once: {:?}", pi.seen());
        pi.answer(&question, &option(&question, Answer::Allow)?)?;
    }
    pi.wait_for("agent_end")?;
    ends_well(pi)
}

fn answered_while_a_command_runs(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "hunter1")?;
    let sleep = processes::long_sleep();
    let waiting = format!("{sleep} & until [ -e go ]; do sleep 0.02; done; echo went-on");
    let both = [call("bash", &json!({ "command": waiting })), call("read", &json!({ "path": notes }))];
    let script = script([calls(both), expecting("went-on.*hunter1", say("done"))]);
    let mut pi = Launch::guarded(&scene, version, &script)?.rpc()?;
    pi.prompt("go")?;
    let question = pi.question()?;
    processes::wait_running(&sleep)?;
    pi.answer(&question, &option(&question, Answer::Allow)?)?;
    pi.wait("end of the read", |message| {
        message.get("type") == Some(&json!("tool_execution_end"))
            && message.get("toolName") == Some(&json!("read"))
    })?;
    ensure!(!processes::with_text(&sleep)?.is_empty(), "the command did not run meanwhile");
    scene.write(&scene.project().join("go"), "")?;
    pi.wait_for("agent_end")?;
    ends_well(pi)
}

fn aborted_command(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (sleep, detached) = (processes::long_sleep(), processes::long_sleep());
    let script = script([bash(&format!("setsid {detached} & echo begun; {sleep}")), say("never said")]);
    let mut pi = Launch::guarded(&scene, version, &script)?.rpc()?;
    pi.prompt("go")?;
    processes::wait_running(&sleep)?;
    processes::wait_running(&detached)?;
    pi.send(&json!({ "id": "stop", "type": "abort" }))?;
    let end = pi.wait_for("tool_execution_end")?.to_string();
    ensure!(end.contains("Command aborted"), "{end}");
    processes::wait_gone(&sleep)?;
    processes::wait_gone(&detached)?;
    ends_well(pi)
}

fn aborted_question(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "hunter1")?;
    let script = turns([
        ("first", vec![read(&notes.display().to_string()), say("never said")]),
        ("second", vec![bash("echo sum-$((40+2))"), expecting("sum-42", say("done"))]),
    ]);
    let mut pi = Launch::guarded(&scene, version, &script)?.rpc()?;
    pi.prompt("the first")?;
    let question = pi.question()?;
    pi.send(&json!({ "id": "stop", "type": "abort" }))?;
    let end = pi.wait_for("tool_execution_end")?.to_string();
    ensure!(!end.contains("hunter1"), "{end}");
    // The answer comes too late and has no effect.
    pi.answer(&question, &option(&question, Answer::Allow)?)?;
    pi.wait_for("agent_end")?;
    pi.prompt("the second")?;
    pi.wait_for("agent_end")?;
    ends_well(pi)
}

/// The client's `bash` command is treated like the user's own commands. pi 0.74 does not report it to extensions by
/// itself, as the control shows.
fn the_clients_own_commands(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let made = scene.outside().join("made");
    let command = format!("echo x > '{}'; echo then $?; echo sum-$((40+2))", made.display());
    let run = |pi: &mut Rpc, command: &str, refused: bool| {
        pi.send(&json!({ "id": "own", "type": "bash", "command": command }))?;
        if refused {
            let question = pi.question()?;
            pi.answer(&question, &option(&question, Answer::Refuse)?)?;
        }
        let response = pi.wait("response", |message| {
            message.get("id") == Some(&json!("own")) && message.get("type") == Some(&json!("response"))
        })?;
        anyhow::Ok(response.to_string())
    };
    let mut pi = Launch::guarded(&scene, version, &script([say("hello")]))?.rpc()?;
    let response = run(&mut pi, &command, true)?;
    ensure!(response.contains("then 1") && response.contains("sum-42"), "{response}");
    ensure!(!made.exists(), "{response}");
    kill_host_twice(&scene)?;
    let response = run(&mut pi, "touch made; echo sum-$((40+2))", false)?;
    // At this moment the host is dead and the extension may not have noticed yet.
    let is_refused = response.contains("this tool is blocked") || response.contains("host is gone");
    ensure!(is_refused && !response.contains("sum-42"), "{response}");
    ends_well(pi)?;
    ensure!(!scene.project().join("made").exists());

    let mut plain = Launch::plain(&scene, version, &script([say("hello")]))?.rpc()?;
    let response = run(&mut plain, &command, false)?;
    ensure!(response.contains("then 0") && made.exists(), "{response}");
    ends_well(plain)
}

/// pi keeps the whole output of a long command in a file in the host's temporary directory, and tells the model its
/// path. There the model may read exactly this file, and an image that the user pasted, which pi stores there as well.
fn the_whole_output_of_the_users_commands(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let temporary = scene.at("temporary");
    fs::create_dir(&temporary)?;
    user.own(&temporary)?;
    let image =
        |digit: &str| temporary.join(format!("pi-clipboard-{0}-1234-4abc-8def-{0}0000.png", digit.repeat(8)));
    let (pasted, other_image) = (image("a"), image("b"));
    scene.write(&pasted, "gamma")?;
    scene.write(&other_image, "hunter1")?;
    let other = temporary.join(format!("pi-bash-{}.log", "0".repeat(16)));
    scene.write(&other, "hunter1")?;
    let steps = script([
        // The command does not print the whole name: a name in the result of a tool counts as known from then on.
        bash("cat digits"),
        expecting("^[0-9a-f]{16}$", read(&temporary.join("pi-bash-{{result}}.log").display().to_string())),
        expecting("line-1\\nline-2\\n", read(&other.display().to_string())),
        expecting_no("hunter1", read(&pasted.display().to_string())),
        expecting("gamma", read(&other_image.display().to_string())),
        expecting_no("hunter1", say("done")),
    ]);
    let launch = Launch::guarded(&scene, version, &steps)?;
    let mut pi = launch.variable("TMPDIR", temporary.display().to_string()).rpc()?;
    pi.send(&json!({ "id": "own", "type": "bash", "command": "seq -f line-%g 100000" }))?;
    let response = pi.wait("response", |message| {
        message.get("id") == Some(&json!("own")) && message.get("type") == Some(&json!("response"))
    })?;
    let path = response.pointer("/data/fullOutputPath").and_then(Value::as_str);
    let path = path.with_context(|| format!("no file of the whole output: {response}"))?;
    let digits = path.rsplit_once('-').and_then(|(_, rest)| rest.strip_suffix(".log"));
    scene.write(&scene.project().join("digits"), digits.with_context(|| path.to_owned())?)?;
    pi.prompt(&format!("look at {}", pasted.display()))?;
    // Reading the other files leads to questions.
    for _ in 0..2 {
        let question = pi.question()?;
        pi.answer(&question, &option(&question, Answer::Refuse)?)?;
    }
    pi.wait_for("agent_end")?;
    let requests = pi.requests()?;
    ensure!(requests.len() == 6, "{requests:#?}");
    ends_well(pi)
}

/// The extension restarts a host that died, reports it, and nothing runs unconfined in between.
fn host_killed_once(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let killed = scene.at("killed");
    let outside = scene.outside().join("made");
    let command = format!("touch made; echo x > '{}' || echo sum-$((40+2))", outside.display());
    let script = script([
        bash("echo before"),
        expecting("before", awaiting(&killed.display().to_string(), bash(&command))),
        expecting("sum-42", say("done")),
    ]);
    let mut pi = Launch::guarded(&scene, version, &script)?.rpc()?;
    pi.prompt("go")?;
    pi.wait_for("tool_execution_end")?;
    let first = kill_host(&scene)?;
    next_host(&scene, &first)?;
    scene.write(&killed, "")?;
    // The new host asks as the first one would have.
    let question = pi.question()?;
    pi.answer(&question, &option(&question, Answer::Refuse)?)?;
    pi.wait_for("agent_end")?;
    // A client has no `/reload`, so it is not told of it.
    let said = |text| pi.seen().iter().any(|message| message.to_string().contains(text));
    ensure!(said("was started again") && said("It is not started a second time"), "{:#?}", pi.seen());
    ensure!(!said("/reload"), "{:#?}", pi.seen());
    ensure!(scene.project().join("made").exists() && !outside.exists(), "it runs, and confined");
    ends_well(pi)
}

fn host_killed_twice(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let killed = scene.at("killed");
    scene.write(&scene.project().join("inside"), "alpha")?;
    let refused = |step| expecting("[Hh]ost|blocked", expecting_no("sum-42|alpha|[Ww]rote|made", step));
    let second = awaiting(&killed.display().to_string(), bash("touch made; echo sum-$((40+2))"));
    let script = script([
        bash("echo before"),
        expecting("before", second),
        refused(read("inside")),
        refused(write("made", "x")),
        refused(calls([call("ls", &json!({ "path": "." }))])),
        refused(say("done")),
    ]);
    let launch = Launch::guarded(&scene, version, &script)?;
    let mut pi = launch.with(["--tools", "read,bash,edit,write,grep,find,ls"]).rpc()?;
    pi.prompt("go")?;
    pi.wait_for("tool_execution_end")?;
    kill_host_twice(&scene)?;
    scene.write(&killed, "")?;
    pi.wait_for("agent_end")?;
    let requests = pi.requests()?;
    let failures: Vec<_> =
        requests.iter().filter(|request| request.get("failures") != Some(&json!([]))).collect();
    ensure!(failures.is_empty(), "{failures:#?}");
    ensure!(requests.len() == 6, "{requests:#?}");
    ensure!(!scene.project().join("made").exists());
    ends_well(pi)
}

/// Kills the host, and the second one that the extension starts in its place.
pub(crate) fn kill_host_twice(scene: &Scene) -> Result<()> {
    let first = kill_host(scene)?;
    let second = next_host(scene, &first)?;
    kill(&second)
}

/// Waits for the host that the extension starts in the place of one that died.
pub(crate) fn next_host(scene: &Scene, first: &Process) -> Result<Process> {
    let deadline = Deadline::start();
    deadline
        .until("the next host", || Ok(Some(processes::host_of(scene)?).filter(|host| host.id != first.id)))
}

pub(crate) fn kill_host(scene: &Scene) -> Result<Process> {
    let host = processes::host_of(scene)?;
    kill(&host)?;
    Ok(host)
}

fn kill(host: &Process) -> Result<()> {
    let id = i32::try_from(host.id).ok().and_then(rustix::process::Pid::from_raw).context("a process id")?;
    rustix::process::kill_process(id, rustix::process::Signal::KILL)?;
    processes::wait_end(host)
}

#[derive(Clone, Copy)]
enum Answer {
    Allow,
    Refuse,
}

/// Returns the label of the option of a question that gives this answer, the narrowest if there are several.
fn option(question: &Value, answer: Answer) -> Result<String> {
    let words: &[&str] = match answer {
        Answer::Allow => &["1. "],
        Answer::Refuse => &["no"],
    };
    let options = question.get("options").and_then(Value::as_array).with_context(|| format!("{question}"))?;
    let says = |option: &&str| words.iter().any(|word| option.to_lowercase().contains(word));
    let found = options.iter().filter_map(Value::as_str).find(says);
    Ok(found.with_context(|| format!("no option says {words:?}: {question}"))?.to_owned())
}

fn is_dialog(message: &Value) -> bool {
    message
        .get("method")
        .and_then(Value::as_str)
        .is_some_and(|method| ["select", "confirm"].contains(&method))
}

/// Checks that pi ends by itself with all expectations of the script met.
fn ends_well(pi: Rpc) -> Result<()> {
    let status = pi.close()?;
    ensure!(status.success(), "{status}");
    Ok(())
}
