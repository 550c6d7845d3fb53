//! Records of sessions on their way to collectors.

use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Finished, Scene, User, processes};
use serde_json::Value;

as_each_user!(
    records_are_sent_while_a_session_runs,
    a_collector_that_hangs_holds_up_no_session,
    a_file_with_a_mistake_is_told_and_changes_no_decision,
    commands_cannot_name_collectors_or_change_what_is_sent,
);

/// The command line of the process that sends while a session runs.
const IN_BACKGROUND: &str = "audit export --background";

/// Names a collector at a listener on loopback.
fn with_collector(user: User) -> Result<(Scene, TcpListener)> {
    let scene = Scene::new(user)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let text =
        format!("[[destination]]\nname = \"team\"\nformat = \"syslog\"\nto = \"tcp://127.0.0.1:{port}\"\n");
    scene.write(&file(&scene), &text)?;
    Ok((scene, listener))
}

fn file(scene: &Scene) -> std::path::PathBuf {
    scene.home().join(".pi/agent/sandbox/export.toml")
}

/// Reads a batch to its end, and closes the connection.
fn batch(mut stream: TcpStream) -> Result<String> {
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

fn sending(scene: &Scene) -> Result<Vec<processes::Process>> {
    let all = processes::of_scene(scene)?;
    Ok(all.into_iter().filter(|process| process.command_line.ends_with(IN_BACKGROUND)).collect())
}

fn wait_for_its_end(scene: &Scene) -> Result<()> {
    Deadline::start()
        .until("the end of the process that sends", || Ok(sending(scene)?.is_empty().then_some(())))
}

fn status(scene: &Scene) -> Result<(i32, Value)> {
    let finished = scene.portcullis(&["audit", "export", "--status", "--json"])?;
    let status = serde_json::from_str(finished.stdout.trim()).with_context(|| format!("{finished:?}"))?;
    Ok((finished.code(), status))
}

fn records_are_sent_while_a_session_runs(user: User) -> Result<()> {
    let (scene, listener) = with_collector(user)?;
    let mut command = scene.portcullis_command(&["run", "--", "sh", "-c", "echo $$ > pid; sleep 300"])?;
    let mut running = command.spawn()?;
    // The decision arrives while the command runs.
    let (stream, _) = listener.accept()?;
    let decision = batch(stream)?;
    ensure!(decision.contains("\"kind\":\"decision\"") && decision.contains("sleep 300"), "{decision}");
    ensure!(!decision.contains("\"kind\":\"outcome\""), "{decision}");
    ensure!(sending(&scene)?.len() == 1, "control");
    running.kill()?;
    running.wait()?;
    wait_for_its_end(&scene)?;

    let receiver = std::thread::spawn(move || -> Result<String> {
        let mut text = String::new();
        while !text.contains("\"kind\":\"outcome\"") {
            text.push_str(&batch(listener.accept()?.0)?);
        }
        Ok(text)
    });
    scene.portcullis(&["run", "--", "true"])?.ended_with(0)?;
    scene.portcullis(&["audit", "export"])?;
    let text = receiver.join().map_err(|_| anyhow::anyhow!("the collector ended"))??;
    ensure!(text.contains("\"result\":\"exit 0\"") && !text.contains("sleep 300"), "{text}");
    wait_for_its_end(&scene)?;
    let (code, status) = status(&scene)?;
    let number = |name: &str| status.get(name).and_then(Value::as_u64);
    ensure!(code == 0 && number("waitingBytes") == Some(0) && number("repeated") == Some(0), "{status}");
    Ok(())
}

fn a_collector_that_hangs_holds_up_no_session(user: User) -> Result<()> {
    let (scene, listener) = with_collector(user)?;
    // It accepts the connection, and neither reads nor closes it.
    scene.portcullis(&["run", "--", "true"])?.ended_with(0)?;
    let (held, _) = listener.accept()?;
    scene.portcullis(&["run", "--", "sh", "-c", "exit 3"])?.ended_with(3)?;
    ensure!(!sending(&scene)?.is_empty(), "control: it still waits for the collector");
    drop(listener);
    drop(held);
    wait_for_its_end(&scene)?;
    let (code, status) = status(&scene)?;
    let failure = status.get("failure").and_then(Value::as_str).unwrap_or_default();
    let sent = status.get("sent").and_then(Value::as_u64);
    ensure!(code == 1 && sent == Some(0) && failure.contains("127.0.0.1"), "{status}");
    let finished = scene.portcullis(&["audit", "export"])?;
    ensure!(finished.code() == 1 && finished.stdout.contains("waiting"), "{finished:?}");
    Ok(())
}

fn a_file_with_a_mistake_is_told_and_changes_no_decision(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&file(&scene), "[[destination]]\nname = \"team\"\nformat = \"gelf\"\n")?;
    let finished = scene.portcullis(&["run", "--", "sh", "-c", "exit 3"])?;
    ensure!(finished.code() == 3, "{finished:?}");
    ensure!(finished.stderr.contains("export.toml") && finished.stderr.contains("line 3"), "{finished:?}");
    let finished = scene.portcullis(&["audit", "export"])?;
    ensure!(finished.code() == 1 && finished.stderr.contains("gelf"), "{finished:?}");
    Ok(())
}

/// If the project is the home directory itself, commands can write beside these files.
fn commands_cannot_name_collectors_or_change_what_is_sent(user: User) -> Result<()> {
    let (scene, listener) = with_collector(user)?;
    let receiver = std::thread::spawn(move || batch(listener.accept()?.0));
    scene.portcullis(&["run", "--", "true"])?.ended_with(0)?;
    scene.portcullis(&["audit", "export"])?;
    receiver.join().map_err(|_| anyhow::anyhow!("the collector ended"))??;
    wait_for_its_end(&scene)?;
    let state = scene.home().join(".local/state/portcullis/export/team.json");
    let before = fs::read(file(&scene))?;
    let home = scene.home().display().to_string();
    let attack = "for f in .pi/agent/sandbox/export.toml .local/state/portcullis/export/team.json; do \
        cat \"$f\" > /dev/null 2>&1 && echo \"read $f\"; echo evil > \"$f\"; rm -f \"$f\"; \
        echo evil > \"$f.new\" && mv \"$f.new\" \"$f\" && echo \"replaced $f\"; done; echo end";
    let mut command = scene.portcullis_command(&["run", "--project", &home, "--", "sh", "-c", attack])?;
    let finished = Finished::run(command.current_dir(scene.home()))?;
    ensure!(finished.stdout.ends_with("end\n") && !finished.stdout.contains("replaced"), "{finished:?}");
    ensure!(!finished.stdout.contains("read .local"), "{finished:?}");
    wait_for_its_end(&scene)?;
    ensure!(fs::read(file(&scene))? == before, "the collectors were changed");
    ensure!(fs::read_to_string(&state)?.contains("\"accepted\":{"), "the state was changed");
    let control = Finished::run(scene.program("sh".as_ref()).args(["-c", attack]).current_dir(scene.home()))?;
    ensure!(control.stdout.contains("replaced .pi"), "control: {control:?}");
    Ok(())
}
