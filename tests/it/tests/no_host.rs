//! pi with the extension, but without its host: nothing is permitted unless the user says `--no-sandbox`.

use anyhow::{Result, ensure};
use portcullis_it::script::{bash, call, calls, expecting, read, say, write};
use portcullis_it::{Launch, PiVersion, Scene, User, script};
use serde_json::{Value, json};

on_each_pi!(missing, not_a_host, broken_settings, switched_off, flag_says_no, terminal);

/// What pi ends with in print mode where every tool was blocked.
const CLOSED: i32 = 125;

const SEVEN_TOOLS: [&str; 2] = ["--tools", "read,bash,edit,write,grep,find,ls"];

fn missing(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("inside"), "alpha")?;
    let finished = Launch::extended(&scene, version, &everything_refused())?.with(SEVEN_TOOLS).print("go")?;
    let finished = finished.ended_with(CLOSED)?;
    ensure!(finished.stdout.contains("done"), "{finished:#?}");
    // In print mode standard error is the only place where the user can be told.
    ensure!(
        finished.stderr.contains("--no-sandbox") && finished.stderr.contains("PORTCULLIS_HOST"),
        "{finished:#?}"
    );
    // No package of that name is ours, so anybody could publish one.
    let advice = finished.stderr.to_lowercase();
    let installs = ["cargo install", "cargo binstall", "npm install", "npx ", "pip install", "brew install"];
    ensure!(!installs.iter().any(|words| advice.contains(words)), "{finished:#?}");
    ensure!(!scene.project().join("made").exists());
    Ok(())
}

/// Programs that end, that echo, and that say nothing at all.
fn not_a_host(version: PiVersion, user: User) -> Result<()> {
    for impostor in ["/bin/true", "/bin/false", "/bin/cat", "/nowhere/portcullis", "portcullis"] {
        let scene = Scene::new(user)?;
        scene.write(&scene.project().join("inside"), "alpha")?;
        let launch = Launch::extended(&scene, version, &everything_refused())?;
        let finished =
            launch.with(SEVEN_TOOLS).variable("PORTCULLIS_HOST", impostor).print("go")?.ended_with(CLOSED)?;
        ensure!(!scene.project().join("made").exists(), "{impostor}: {finished:#?}");
    }
    Ok(())
}

/// Settings that cannot be read close the session; print mode says so on standard error and in the exit status.
fn broken_settings(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = scene.home().join(".pi/agent/sandbox/default.json");
    scene.write(&settings, r#"{ "filesystem": { "denyRaed": ["/srv"] } }"#)?;
    let refused = |step| expecting("not available, so this tool is blocked", step);
    let steps = script([bash("touch made"), refused(say("done"))]);
    let finished = Launch::guarded(&scene, version, &steps)?.print("go")?.ended_with(CLOSED)?;
    ensure!(
        finished.stderr.contains("denyRaed") && finished.stderr.contains("default.json"),
        "{finished:#?}"
    );
    ensure!(!scene.project().join("made").exists(), "{finished:#?}");

    // The same in JSON mode.
    let json = ["--mode", "json"];
    let finished = Launch::guarded(&scene, version, &steps)?.with(json).print("go")?.ended_with(CLOSED)?;
    ensure!(finished.stderr.contains("denyRaed"), "{finished:#?}");
    ensure!(!scene.project().join("made").exists(), "{finished:#?}");
    // A client in RPC mode gets a notice, and pi goes on.
    let mut pi = Launch::guarded(&scene, version, &steps)?.rpc()?;
    pi.wait("a notice", |message| {
        message.get("method") == Some(&json!("notify"))
            && message.get("notifyType") == Some(&json!("error"))
            && message.to_string().contains("denyRaed")
    })?;
    pi.prompt("go")?;
    pi.wait_for("agent_end")?;
    ensure!(!scene.project().join("made").exists());
    drop(pi);

    // The control: without that file the same runs end well.
    std::fs::remove_file(&settings)?;
    let steps = script([bash("touch made; echo sum-$((40+2))"), expecting("sum-42", say("done"))]);
    for mode in [&[] as &[&str], &json] {
        let finished =
            Launch::guarded(&scene, version, &steps)?.with(mode).print("go")?.ended_unattended()?;
        ensure!(scene.project().join("made").exists(), "{finished:#?}");
        std::fs::remove_file(scene.project().join("made"))?;
    }
    Ok(())
}

fn switched_off(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let made = scene.outside().join("made");
    let script = script([
        bash(&format!("echo sum-$((40+2)) | tee '{}'", made.display())),
        expecting("sum-42", say("done")),
    ]);
    let mut pi = Launch::extended(&scene, version, &script)?.with(["--no-sandbox"]).rpc()?;
    pi.prompt("go")?;
    pi.wait_for("agent_end")?;
    ensure!(pi.close()?.success());
    ensure!(made.exists());
    Ok(())
}

fn flag_says_no(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("inside"), "alpha")?;
    let launch = Launch::extended(&scene, version, &everything_refused())?;
    let finished = launch.with(SEVEN_TOOLS).with(["--no-sandbox=false"]).print("go")?.ended_with(CLOSED)?;
    ensure!(!scene.project().join("made").exists(), "{finished:#?}");
    Ok(())
}

fn terminal(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let screen = Launch::extended(&scene, version, &script([say("hello")]))?.screen()?;
    screen.wait_for("Portcullis closed")?;
    screen.enter("!touch made; echo sum-$((40+2))")?;
    screen.wait_for("(exit 126)")?;
    ensure!(!screen.text()?.contains("sum-42") && !scene.project().join("made").exists());
    ensure!(screen.quit()? == 0);

    let screen =
        Launch::extended(&scene, version, &script([say("hello")]))?.with(["--no-sandbox"]).screen()?;
    screen.wait_for("Portcullis OFF")?;
    screen.enter("!touch made; echo sum-$((40+2))")?;
    screen.wait_for("sum-42")?;
    ensure!(scene.project().join("made").exists());
    Ok(())
}

/// A call of each tool, none of which may do anything, and each of which must say why.
fn everything_refused() -> Value {
    let refused = |step| expecting("not available, so this tool is blocked", step);
    let edit = json!({ "path": "inside", "edits": [{ "oldText": "alpha", "newText": "beta" }] });
    script([
        bash("touch made"),
        refused(read("inside")),
        refused(write("made", "x")),
        refused(calls([call("edit", &edit)])),
        refused(calls([call("grep", &json!({ "pattern": "alpha" }))])),
        refused(calls([call("find", &json!({ "pattern": "*" }))])),
        refused(calls([call("ls", &json!({ "path": "." }))])),
        refused(say("done")),
    ])
}
