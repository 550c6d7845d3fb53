//! Tests of the harness itself, with pi alone: what the other tests rely on, and that a failure is detected.

use anyhow::{Result, ensure};
use portcullis_it::script::{bash, expecting, expecting_no, read, say, turns, write};
use portcullis_it::{Launch, PiVersion, Scene, User, processes, script};
use serde_json::{Value, json};

on_each_pi!(with_node_20: print_mode, wrong_expectation, misbehaving_model, rpc_mode, terminal);

fn print_mode(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let outside = scene.outside().join("made");
    let script = script([
        bash(&format!("echo sum-$((40+2)) >&2; touch '{}'; echo key=$SOME_API_KEY", outside.display())),
        expecting("sum-42", write("a/b.txt", "alpha\n")),
        expecting("wrote", read("a/b.txt")),
        expecting("alpha", say("pi said {{result:2}}")),
    ]);
    let finished = Launch::plain(&scene, version, &script)?.print("go")?.ended_unattended()?;
    ensure!(finished.stdout.contains("pi said alpha"), "{finished:#?}");
    ensure!(
        finished.tool_result(0)?.contains("key=\n"),
        "the environment is not the test's own: {finished:#?}"
    );
    // The control of every test of confinement: without Portcullis a command does write outside the project.
    ensure!(outside.exists(), "{finished:#?}");
    ensure!(std::fs::read_to_string(scene.project().join("a/b.txt"))? == "alpha\n");
    ensure!(finished.requests.len() == 4, "{finished:#?}");
    Ok(())
}

fn wrong_expectation(version: PiVersion, user: User) -> Result<()> {
    const UNMET: i32 = 97;
    let scene = Scene::new(user)?;
    for step in [expecting("no such text", say("unreached")), expecting_no("real", say("unreached"))] {
        let script = script([bash("echo real-text"), step]);
        let finished = Launch::plain(&scene, version, &script)?.print("go")?.ended_with(UNMET)?;
        ensure!(finished.stderr.contains("real-text"), "{finished:#?}");
    }
    Ok(())
}

fn misbehaving_model(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let busy = script([json!({ "status": 429, "body": { "error": { "message": "too-busy" } } })]);
    let finished = Launch::plain(&scene, version, &busy)?.print("go")?.ended_with(1)?;
    ensure!(finished.stderr.contains("too-busy"), "{finished:#?}");

    let broken =
        script([json!({ "calls": [{ "name": "bash", "raw": "{\"command\": \"touch made" }] }), say("done")]);
    let finished = Launch::plain(&scene, version, &broken)?.print("go")?.ended_unattended()?;
    // pi 0.74.2 repairs the arguments and runs the command; 1.5.2 refuses them.
    ensure!(scene.project().join("made").exists() == (version != PiVersion::V1_5), "{finished:#?}");

    let mut pi =
        Launch::plain(&scene, version, &script([json!({ "text": "begun", "hang": true })]))?.rpc()?;
    pi.prompt("go")?;
    pi.wait_for("message_update")?;
    pi.send(&json!({ "id": "stop", "type": "abort" }))?;
    pi.wait_for("agent_end")?;
    ensure!(pi.close()?.success());
    Ok(())
}

fn rpc_mode(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let sleep = processes::long_sleep();
    let script = turns([
        ("first", vec![bash("echo one"), expecting("one", say("said {{result}}"))]),
        ("second", vec![bash(&sleep), say("aborted")]),
    ]);
    let mut pi = Launch::plain(&scene, version, &script)?.rpc()?;
    pi.prompt("the first")?;
    let end = pi.wait_for("agent_end")?;
    ensure!(end.to_string().contains("said one"), "{end}");

    pi.prompt("the second")?;
    pi.wait_for("tool_execution_start")?;
    processes::wait_running(&sleep)?;
    pi.send(&json!({ "id": "stop", "type": "abort" }))?;
    let end = pi.wait_for("tool_execution_end")?;
    ensure!(end.get("isError") == Some(&Value::Bool(true)), "{end}");
    processes::wait_gone(&sleep)?;
    ensure!(pi.close()?.success());
    Ok(())
}

fn terminal(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let script = turns([("greet", vec![bash("echo sum-$((40+2))"), say("pi said {{result}}")])]);
    let screen = Launch::plain(&scene, version, &script)?.screen()?;
    screen.wait_for("scripted")?;
    screen.enter("greet")?;
    screen.wait_for("pi said sum-42")?;
    screen.enter("!echo user-$((1+1))")?;
    screen.wait_for("user-2")?;
    ensure!(screen.quit()? == 0);
    processes::wait_scene_gone(&scene, |process| process.command_line.contains("tmux"))
}
