//! A command that makes a path in the settings unreadable does not prevent the user from tightening them.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{bash, expecting, say, turns};
use portcullis_it::{Interface, Launch, PiVersion, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    links_of_a_command_keep_no_settings_from_being_read,
    what_cannot_be_read_is_read_once_it_can,
    a_session_opens_when_its_settings_are_mended,
    settings_without_a_sandbox_take_away_all_the_same,
);
on_each_pi!(one_enter_switches_nothing_off_when_settings_are_mended);

fn settings(lists: &Value) -> Value {
    let mut all = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
    });
    let filesystem = all.get_mut("filesystem").and_then(Value::as_object_mut);
    if let (Some(all), Some(lists)) = (filesystem, lists.as_object()) {
        all.extend(lists.clone());
    }
    all
}

fn write(scene: &Scene, file: &str, settings: &Value) -> Result<()> {
    scene.write(&scene.home().join(".pi/agent/sandbox").join(file), &settings.to_string())
}

/// Starts a session whose settings let commands write outside, which is the control, with `more` in the list.
fn session(scene: &Scene, more: &str) -> Result<Serve> {
    scene.write(&scene.outside().join("a"), "")?;
    write(scene, "default.json", &settings(&json!({ "allowWrite": [".", more, scene.outside()] })))?;
    Serve::greeted(scene, &[], Interface::Absent)
}

fn can_write(scene: &Scene, host: &mut Serve) -> Result<bool> {
    let file = scene.outside().join("made");
    host.run(&format!("echo x > '{}'", file.display()))?;
    let is_there = file.exists();
    if is_there {
        std::fs::remove_file(file)?;
    }
    Ok(is_there)
}

fn links_of_a_command_keep_no_settings_from_being_read(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("sub/x"), "")?;
    let key = scene.project().join("sub").display().to_string();
    write(&scene, "projects.json", &json!({ key: settings(&json!({})) }))?;
    let mut host = session(&scene, "packages/*/dist")?;
    ensure!(can_write(&scene, &mut host)?, "the control");
    let (_, output) =
        host.run("mkdir $'\\xff' && ln -s $'\\xff' packages && rm -r sub && ln -s . sub && echo done")?;
    ensure!(output == "done\n", "{output}");
    write(&scene, "default.json", &settings(&json!({ "allowWrite": [".", "packages/*/dist"] })))?;
    ensure!(!can_write(&scene, &mut host)?, "it was taken away");
    let shown = scene.portcullis(&["config", "show"])?.ended_with(0)?;
    ensure!(shown.stdout.contains("packages"), "{shown:#?}");
    Ok(())
}

/// The reason why settings cannot be read may be in a file that is not watched.
fn what_cannot_be_read_is_read_once_it_can(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let elsewhere = scene.outside().join("sub");
    scene.write(&elsewhere.join("x"), "")?;
    let mut host = session(&scene, "src")?;
    std::fs::rename(&elsewhere, scene.outside().join("gone"))?;
    std::os::unix::fs::symlink(scene.project(), &elsewhere)?;
    write(&scene, "projects.json", &json!({ elsewhere.display().to_string(): settings(&json!({})) }))?;
    write(&scene, "default.json", &settings(&json!({})))?;
    ensure!(can_write(&scene, &mut host)?, "the control: a key that leads here is not believed");
    std::fs::remove_file(&elsewhere)?;
    ensure!(!can_write(&scene, &mut host)?, "it was taken away");
    Ok(())
}

fn a_session_opens_when_its_settings_are_mended(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let whole = settings(&json!({}));
    let mut other = whole.clone();
    // Settings that cannot be parsed, and settings with a policy that does not exist.
    other
        .as_object_mut()
        .context("an object")?
        .insert("policies".to_owned(), json!([{ "use": "/nowhere.wasm" }]));
    for broken in [format!("{whole},"), other.to_string()] {
        scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &broken)?;
        let mut host = Serve::start(&scene, &[], &[])?;
        let hello = host.hello(Interface::Absent);
        let greeting = host.succeed("hello", &hello)?;
        ensure!(greeting.pointer("/status/state") == Some(&json!("closed")), "the control: {greeting}");
        ensure!(host.run("echo hi").is_err(), "the control: it runs");
        write(&scene, "default.json", &whole)?;
        let (_, output) = host.run("echo again")?;
        ensure!(output == "again\n", "{output}");
        ensure!(host.succeed("status", &json!({}))?.get("state") == Some(&json!("enabled")));
        host.close()?;
    }
    Ok(())
}

/// Settings of which no sandbox can be made: commands are refused, and what the settings close is closed to the file
/// tools.
fn settings_without_a_sandbox_take_away_all_the_same(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = session(&scene, "src")?;
    ensure!(can_write(&scene, &mut host)?, "the control");
    tool_reads(&scene, &mut host)?.context("the control: a tool reads it")?;
    // All of `/` writable is no sandbox.
    write(&scene, "default.json", &settings(&json!({ "allowWrite": ["/"], "denyRead": [scene.outside()] })))?;
    let refused = can_write(&scene, &mut host).err().map(|error| error.to_string()).unwrap_or_default();
    ensure!(refused.contains("commands are refused"), "{refused}");
    ensure!(tool_reads(&scene, &mut host)?.is_none(), "a tool reads what the settings close");
    write(&scene, "default.json", &settings(&json!({})))?;
    let (_, output) = host.run("echo again")?;
    ensure!(output == "again\n", "{output}");
    Ok(())
}

/// What a file tool gets of the file outside, or `None` where it is refused.
fn tool_reads(scene: &Scene, host: &mut Serve) -> Result<Option<Value>> {
    let file = scene.outside().join("a");
    let open = json!({ "callId": "r", "path": file, "intent": { "kind": "read" } });
    Ok(host.call("file/open", &open)?.get("result").cloned())
}

/// A closed session has no menu; after the settings are repaired, both the footer and the menu report that the sandbox
/// is on. The control is that menu: its first entry turns the sandbox off, so Enter would have done so.
fn one_enter_switches_nothing_off_when_settings_are_mended(version: PiVersion, user: User) -> Result<()> {
    const FOOTER: &str = "Portcullis on · writes here · asks network";
    let scene = Scene::new(user)?;
    let (file, made) = (scene.home().join(".pi/agent/sandbox/default.json"), scene.outside().join("made"));
    let whole = settings(&json!({}));
    scene.write(&file, &format!("{whole},"))?;
    let command = bash(&format!("echo x > '{}' || echo sum-$((40+2))", made.display()));
    let script = turns([
        ("early", vec![command.clone(), expecting("not available", say("early over"))]),
        ("confined", vec![command, expecting("sum-42", say("late over"))]),
    ]);
    let screen = Launch::guarded(&scene, version, &script)?.screen()?;
    screen.wait_for("Portcullis closed")?;
    screen.enter("early")?;
    screen.wait_for("early over")?;
    screen.enter("/sandbox")?;
    let shown = screen.wait_for("closed and blocks every tool")?;
    ensure!(!shown.contains("Disable sandbox") && !shown.contains("Enable sandbox"), "{shown}");
    screen.press("Enter")?;
    scene.write(&file, &whole.to_string())?;
    screen.wait_for(FOOTER)?;
    screen.press("Enter")?;
    screen.enter("confined")?;
    screen.wait_for("[esc]  No")?;
    screen.press_calmly("Escape")?;
    let shown = screen.wait_for("late over")?;
    ensure!(!made.exists(), "it is confined: {shown}");
    // pi may be redrawing the footer.
    screen.wait_for(FOOTER)?;

    screen.enter("/sandbox")?;
    screen.wait_for("→ Disable sandbox")?;
    screen.press("Enter")?;
    screen.wait_for("Portcullis OFF")?;
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}
