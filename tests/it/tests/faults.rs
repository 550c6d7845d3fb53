//! A panic of the host while it decides, writes a file, starts a command, answers a command's call, judges a connection
//! or answers another terminal: the request is denied, the log records it, and later requests get answers.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    a_fault_is_a_denial_and_the_host_goes_on,
    a_fault_in_a_verb_is_its_own_failure,
    the_agent_cannot_provoke_a_fault,
);

/// The variable of debug builds that names the point of a fault.
const FAULT: &str = "PORTCULLIS_TEST_FAULT";
/// The exit code of a program with an unhandled panic.
const PANICKED: i32 = 101;
const DENY: i32 = 20;
const OWN_FAILURE: i32 = 125;

/// Points of the host, with the requests that reach each.
const POINTS: &[(&str, &[&str])] = &[
    ("decide", &["file/open", "file/write", "exec", "decide"]),
    ("file", &["file/write"]),
    ("exec", &["exec"]),
    ("call", &["call"]),
    ("judge", &["connect"]),
    ("orders", &["orders"]),
];

const SETTINGS: &str = r#"{ "network": { "allowedDomains": [], "deniedDomains": [] },
    "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] } }"#;

fn scene(user: User) -> Result<Scene> {
    let scene = Scene::new(user)?;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), SETTINGS)?;
    scene.write(&scene.project().join("inside"), "alpha")?;
    Ok(scene)
}

/// A host with a user interface if `request` leads to a question.
fn host(scene: &Scene, request: &str, fault: Option<&str>) -> Result<Serve> {
    let variables: Vec<_> = fault.map(|point| (FAULT, point)).into_iter().collect();
    let mut host = Serve::start(scene, &[], &variables)?;
    let is_asked = matches!(request, "call" | "orders");
    let interface = if is_asked { Interface::Present } else { Interface::Absent };
    let hello = host.hello(interface);
    host.succeed("hello", &hello)?;
    Ok(host)
}

/// Makes the request and returns the reply to it. An allowed one creates `made` in the project or outside.
fn make(scene: &Scene, host: &mut Serve, request: &str, has_fault: bool) -> Result<Value> {
    let made = scene.project().join("made");
    let environment = json!({ "PATH": "/usr/bin:/bin" });
    match request {
        "file/open" => host.call(
            request,
            &json!({ "callId": "r", "path": scene.project().join("inside"), "intent": { "kind": "read" } }),
        ),
        "file/write" => host.call(request, &json!({ "callId": "w", "path": made, "content": "x" })),
        "exec" => {
            let id = host.begin("echo x > made", &environment)?;
            host.reply(id)
        }
        "decide" => {
            host.call(request, &json!({ "callId": "d", "tool": "other", "provider": "builtin", "input": {} }))
        }
        "call" => {
            let place = scene.outside().join("made");
            let id = host.begin(&format!("echo x > '{}'", place.display()), &environment)?;
            if !has_fault {
                let question = host.question()?;
                host.answer(&question, &json!(0))?;
            }
            host.reply(id)
        }
        "connect" => {
            let dial = "bash -c 'exec 3<>/dev/tcp/198.51.100.1/80' 2>/dev/null; echo ended > ended";
            let id = host.begin(dial, &environment)?;
            host.reply(id)
        }
        _ => {
            let told = scene.portcullis(&["asks", "list"])?;
            ensure!(told.code() != PANICKED, "{told:#?}");
            Ok(json!({ "stdout": told.stdout, "stderr": told.stderr }))
        }
    }
}

fn log(scene: &Scene) -> Result<String> {
    scene.logs()?.iter().map(|file| Ok(fs::read_to_string(file)?)).collect()
}

fn a_fault_is_a_denial_and_the_host_goes_on(user: User) -> Result<()> {
    for (point, requests) in POINTS {
        for request in *requests {
            let told = || format!("{request}, a fault at `{point}`");
            one(user, point, request).with_context(told)?;
        }
    }
    Ok(())
}

fn one(user: User, point: &str, request: &str) -> Result<()> {
    // The control: without the fault the request takes effect, and so do later ones.
    let free = scene(user)?;
    let mut serve = host(&free, request, None)?;
    let reply = make(&free, &mut serve, request, false)?;
    ensure!(!reply.to_string().contains("failed"), "control: {reply}");
    let has_made =
        |scene: &Scene| [scene.project(), scene.outside()].iter().any(|at| at.join("made").exists());
    let makes = matches!(request, "file/write" | "exec" | "call");
    ensure!(has_made(&free) == makes, "control: {reply}");
    ensure!(serve.run("echo again")?.1 == "again\n", "control");
    serve.close()?;
    ensure!(!log(&free)?.contains("host.fault"), "control");

    let scene = scene(user)?;
    let mut serve = host(&scene, request, Some(point))?;
    let reply = make(&scene, &mut serve, request, true)?;
    let text = reply.to_string();
    match request {
        // The command itself was allowed before; the call and the connection are refused.
        "call" => ensure!(!text.contains("\"exitCode\":0"), "{reply}"),
        "connect" => ensure!(scene.project().join("ended").exists(), "{reply}"),
        _ => ensure!(text.contains("Portcullis failed while") && text.contains(point), "{reply}"),
    }
    ensure!(!has_made(&scene), "{reply}");
    let log = log(&scene)?;
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("host.fault")).collect();
    ensure!(lines.len() == 1, "{lines:#?}");
    ensure!(lines.iter().all(|line| line.contains("deny") && line.contains(point)), "{lines:#?}");

    // Later requests get answers, and none of them is permitted.
    for later in ["file/open", "file/write", "exec", "decide"] {
        let reply = make(&scene, &mut serve, later, true).with_context(|| format!("later {later}"))?;
        let is_denied = reply.get("error").is_some() || reply.to_string().contains("deny");
        ensure!(is_denied || reply.to_string().contains("denied"), "later {later}: {reply}");
    }
    ensure!(!has_made(&scene), "later");
    let status = serve.succeed("status", &json!({}))?;
    ensure!(status.to_string().contains("Portcullis failed while"), "{status}");
    let errors = serve.errors();
    ensure!(errors.contains("portcullis: panic") && errors.contains(point), "{errors}");
    ensure!(serve.close()?.success(), "{errors}");
    let verified = scene.portcullis(&["audit", "verify"])?;
    ensure!(verified.code() == 0, "{verified:#?}");
    Ok(())
}

/// `run` and `check` end as after a failure or a denial, not like a program that panics.
fn a_fault_in_a_verb_is_its_own_failure(user: User) -> Result<()> {
    let scene = scene(user)?;
    let with = |point: Option<&str>, words: &[&str]| -> Result<Finished> {
        let mut command = scene.portcullis_command(words)?;
        command.envs(point.map(|point| (FAULT, point)));
        Finished::run(&mut command)
    };
    let run = ["run", "--ask", "deny", "--", "sh", "-c", "echo x > made; echo hi"];
    let made = scene.project().join("made");
    for point in ["decide", "exec"] {
        let free = with(None, &run)?.ended_with(0)?;
        ensure!(free.stdout == "hi\n" && made.exists(), "control: {free:#?}");
        fs::remove_file(&made)?;
        let told = with(Some(point), &run)?.ended_with(OWN_FAILURE)?;
        ensure!(told.stdout.is_empty() && !made.exists() && told.stderr.contains(point), "{told:#?}");
    }
    let dial = "bash -c 'exec 3<>/dev/tcp/198.51.100.1/80' 2>/dev/null; echo ended";
    for point in [None, Some("judge")] {
        let told = with(point, &["run", "--ask", "deny", "--", "sh", "-c", dial])?;
        ensure!(told.stdout == "ended\n" && told.code() != PANICKED, "{told:#?}");
        ensure!(told.stderr.contains("portcullis: panic") == point.is_some(), "{told:#?}");
    }
    for words in [&["check", "read", "inside"] as &[&str], &["check", "--json", "read", "inside"]] {
        with(None, words)?.ended_with(0)?;
        let told = with(Some("decide"), words)?.ended_with(DENY)?;
        ensure!(told.stdout.contains("host.fault") == (words.len() == 4), "{told:#?}");
    }
    Ok(())
}

/// The host reads the variable only from its own environment: the environment of a command, or a setting, has no
/// effect.
fn the_agent_cannot_provoke_a_fault(user: User) -> Result<()> {
    let scene = scene(user)?;
    scene.write(&scene.project().join(".env"), &format!("{FAULT}=decide\n"))?;
    let mut serve = host(&scene, "exec", None)?;
    let id = serve.begin(&format!("export {FAULT}=decide; echo x > made"), &json!({ FAULT: "decide" }))?;
    serve.reply(id)?;
    ensure!(serve.run("echo again")?.1 == "again\n");
    ensure!(scene.project().join("made").exists() && !log(&scene)?.contains("host.fault"));
    serve.close()?;
    Ok(())
}
