//! The policy `bosun`: allowed directories, agents with read-only commands, and agents that reserve files against each
//! other, each with its own host in one project.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{call, calls, expecting, say, write};
use portcullis_it::{Interface, Launch, PiVersion, Scene, Serve, User, script};
use serde_json::{Value, json};

as_each_user!(
    what_one_agent_reserved_another_does_not_write,
    a_killed_agent_has_nothing_reserved,
    the_first_to_write_has_it,
    commands_of_named_agents_write_nothing,
    names_are_not_read,
    the_control_without_reservations
);
on_each_pi!(agents_reserve_with_a_tool_of_pi);

fn scene(user: User, config: &Value) -> Result<Scene> {
    let scene = Scene::new(user)?;
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        "policies": [{ "use": "bosun", "config": config }],
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    scene.write(&scene.project().join("workspace/src/a.txt"), "")?;
    Ok(scene)
}

fn agent(scene: &Scene, name: &str) -> Result<Serve> {
    let mut host = Serve::start(scene, &[], &[("PORTCULLIS_AGENT", name)])?;
    let hello = host.hello(Interface::Absent);
    host.succeed("hello", &hello)?;
    Ok(host)
}

/// Writes a file below `workspace`; returns the rule that denies it, if any.
fn write_file(host: &mut Serve, scene: &Scene, name: &str) -> Result<Option<String>> {
    let path = scene.project().join("workspace").join(name);
    let reply = host.call("file/write", &json!({ "callId": "w", "path": path, "content": "new" }))?;
    if reply.get("result").is_some() {
        return Ok(None);
    }
    let rule = reply.pointer("/error/data/rule").and_then(Value::as_str);
    Ok(Some(rule.with_context(|| format!("no rule: {reply}"))?.to_owned()))
}

/// Reserves paths below `workspace`; returns the rule that denies it, if any.
fn reserve(host: &mut Serve, names: &[&str], release: bool) -> Result<Option<String>> {
    let paths: Vec<String> = names.iter().map(|name| format!("workspace/{name}")).collect();
    let answer = host.succeed("reserve", &json!({ "callId": "r", "paths": paths, "release": release }))?;
    Ok(answer.pointer("/denied/rule").and_then(Value::as_str).map(str::to_owned))
}

fn is_reserved(rule: Option<&str>) -> bool {
    rule == Some("bosun.reserved")
}

fn what_one_agent_reserved_another_does_not_write(user: User) -> Result<()> {
    let scene = scene(user, &json!({}))?;
    let (mut ann, mut bob) = (agent(&scene, "ann")?, agent(&scene, "bob")?);
    // Also through a link: the target counts.
    let link = scene.project().join("workspace/link");
    std::os::unix::fs::symlink("src", &link)?;
    ensure!(write_file(&mut bob, &scene, "src/a.txt")?.is_none(), "control: nothing is reserved yet");
    ensure!(reserve(&mut ann, &["link"], false)?.is_none());
    for name in ["src/a.txt", "src/new/deep.txt", "link/a.txt"] {
        let rule = write_file(&mut bob, &scene, name)?;
        ensure!(is_reserved(rule.as_deref()), "{name}: {rule:?}");
    }
    ensure!(is_reserved(reserve(&mut bob, &["src/a.txt"], false)?.as_deref()));
    // A command cannot write there either; its other writes succeed.
    let (_, output) =
        bob.run("echo x > workspace/src/a.txt || echo refused; echo y > workspace/b && echo written")?;
    ensure!(output.contains("refused") && output.contains("written"), "{output}");
    ensure!(fs::read_to_string(scene.project().join("workspace/src/a.txt"))? == "new");
    ensure!(write_file(&mut bob, &scene, "other")?.is_none());
    ensure!(write_file(&mut ann, &scene, "src/a.txt")?.is_none(), "its owner writes it");
    // An agent cannot release the reservation of another one.
    ensure!(reserve(&mut bob, &["src"], true)?.is_none());
    ensure!(is_reserved(write_file(&mut bob, &scene, "src/a.txt")?.as_deref()));
    ensure!(reserve(&mut ann, &["src"], true)?.is_none());
    ensure!(write_file(&mut bob, &scene, "src/a.txt")?.is_none());
    Ok(())
}

fn a_killed_agent_has_nothing_reserved(user: User) -> Result<()> {
    let scene = scene(user, &json!({}))?;
    let (mut ann, mut bob) = (agent(&scene, "ann")?, agent(&scene, "bob")?);
    ensure!(reserve(&mut ann, &["src"], false)?.is_none());
    ensure!(is_reserved(write_file(&mut bob, &scene, "src/a.txt")?.as_deref()));
    ann.kill()?;
    ensure!(write_file(&mut bob, &scene, "src/a.txt")?.is_none());
    let mut cat = agent(&scene, "cat")?;
    ensure!(reserve(&mut cat, &["src"], false)?.is_none());
    cat.close()?;
    ensure!(write_file(&mut bob, &scene, "src/a.txt")?.is_none());
    Ok(())
}

fn the_first_to_write_has_it(user: User) -> Result<()> {
    let scene = scene(user, &json!({ "reservations": "automatic" }))?;
    let (mut ann, mut bob) = (agent(&scene, "ann")?, agent(&scene, "bob")?);
    ensure!(write_file(&mut ann, &scene, "src/a.txt")?.is_none());
    ensure!(is_reserved(write_file(&mut bob, &scene, "src/a.txt")?.as_deref()));
    ensure!(write_file(&mut bob, &scene, "src/b.txt")?.is_none());
    ensure!(reserve(&mut ann, &["src/a.txt"], true)?.is_none());
    ensure!(write_file(&mut bob, &scene, "src/a.txt")?.is_none());
    Ok(())
}

fn commands_of_named_agents_write_nothing(user: User) -> Result<()> {
    let scene = scene(user, &json!({ "read_only_bash": ["reviewer"] }))?;
    let attack = "echo x > workspace/made && echo written; echo t > $TMPDIR/t && cat $TMPDIR/t; cat workspace/src/a.txt";
    let (_, output) = agent(&scene, "builder")?.run(attack)?;
    ensure!(output.contains("written"), "control: {output}");
    fs::remove_file(scene.project().join("workspace/made"))?;
    let mut reviewer = agent(&scene, "reviewer")?;
    let (_, output) = reviewer.run(attack)?;
    ensure!(!output.contains("written") && output.contains('t'), "{output}");
    ensure!(!scene.project().join("workspace/made").exists());
    ensure!(write_file(&mut reviewer, &scene, "made")?.is_none(), "its tools write");
    // A host with an invalid agent name opens no session.
    let mut odd = Serve::start(&scene, &[], &[("PORTCULLIS_AGENT", "a b")])?;
    let hello = odd.hello(Interface::Absent);
    ensure!(odd.call("hello", &hello).is_err(), "the host should have ended");
    Ok(())
}

fn the_control_without_reservations(user: User) -> Result<()> {
    let scene = scene(user, &json!({ "reservations": "off" }))?;
    let (mut ann, mut bob) = (agent(&scene, "ann")?, agent(&scene, "bob")?);
    let status = ann.succeed("status", &json!({}))?;
    ensure!(status.get("reservations") == Some(&Value::Bool(false)), "{status}");
    ensure!(write_file(&mut ann, &scene, "src/a.txt")?.is_none());
    ensure!(write_file(&mut bob, &scene, "src/a.txt")?.is_none());
    // Without reservations the tool is unknown, and no rule allows it.
    ensure!(reserve(&mut ann, &["src"], false)?.is_some());
    Ok(())
}

fn agents_reserve_with_a_tool_of_pi(version: PiVersion, user: User) -> Result<()> {
    let scene = scene(user, &json!({ "reservations": "required" }))?;
    let mut other = agent(&scene, "other")?;
    ensure!(reserve(&mut other, &["theirs"], false)?.is_none());
    let reserve = |paths: &[&str]| calls([call("reserve", &json!({ "paths": paths }))]);
    let steps = vec![
        write("workspace/mine", "early"),
        expecting("bosun\\.unreserved", reserve(&["workspace/theirs/x"])),
        expecting("bosun\\.reserved", reserve(&["workspace/mine"])),
        expecting("workspace/mine +you", write("workspace/mine", "mine")),
        expecting("Successfully wrote", say("done")),
    ];
    let script = script(steps);
    Launch::guarded(&scene, version, &script)?
        .variable("PORTCULLIS_AGENT", "me")
        .print("go")?
        .ended_unattended()?;
    ensure!(fs::read_to_string(scene.project().join("workspace/mine"))? == "mine");
    ensure!(write_file(&mut other, &scene, "mine")?.as_deref() == Some("bosun.unreserved"), "pi has ended");
    Ok(())
}

/// Names in `deny_read` apply to tools and commands, also for files that appear later. The control reads them.
fn names_are_not_read(user: User) -> Result<()> {
    for (config, open) in [(json!({}), false), (json!({ "deny_read": [] }), true)] {
        let scene = scene(user, &config)?;
        scene.write(&scene.project().join(".env"), "hunter2")?;
        let mut host = agent(&scene, "ann")?;
        let (_, early) = host.run("cat .env; grep -rs hunter2 .; echo end")?;
        scene.write(&scene.project().join("workspace/late.pem"), "hunter3")?;
        let (_, late) = host.run("cat workspace/late.pem; echo end")?;
        let read = |name: &str| json!({ "callId": name, "path": scene.project().join(name), "intent": { "kind": "read" } });
        let by_tool = host.call("file/open", &read(".env"))?;
        ensure!(early.contains("end") && late.contains("end"), "{early}{late}");
        ensure!(early.contains("hunter2") == open && late.contains("hunter3") == open, "{early}{late}");
        ensure!(by_tool.get("result").is_some() == open, "{by_tool}");
        host.close()?;
    }
    Ok(())
}
