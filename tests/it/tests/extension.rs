//! The ways of loading the extension into pi: installed, through `portcullis pi`, and both at once; and its removal.

use std::fs;
use std::process::Command;

use anyhow::{Result, ensure};
use portcullis_it::script::{bash, expecting, expecting_no, read, say, turns};
use portcullis_it::{Finished, Launch, PiVersion, Scene, User, portcullis, script};
use serde_json::{Value, json};

on_each_pi!(
    with_node_20:
    installed_for_plain_pi,
    installed_under_a_running_pi,
    loaded_twice,
    installed_but_the_host_is_gone,
    switched_off_in_spite_of_a_host,
    switched_off_in_the_settings,
    another_policy_file,
    extensions_of_a_project,
);

fn installed_for_plain_pi(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let place = scene.portcullis(&["pi-extension", "path"])?.ended_with(0)?;
    for _ in 0..2 {
        scene.portcullis(&["pi-extension", "install"])?.ended_with(0)?;
    }
    ensure!(fs::metadata(place.stdout.trim())?.is_dir(), "{place:#?}");
    Launch::plain(&scene, version, &confined(&scene))?.print("go")?.ended_unattended()?;
    ensure!(!scene.outside().join("made").exists());

    scene.portcullis(&["pi-extension", "remove"])?.ended_with(0)?;
    ensure!(!fs::exists(place.stdout.trim())?);
    let script = script([bash(&write_outside(&scene)), expecting("then 0", say("done"))]);
    Launch::plain(&scene, version, &script)?.print("go")?.ended_unattended()?;
    ensure!(scene.outside().join("made").exists(), "the control did not write outside");
    Ok(())
}

/// An update while pi runs: the session continues as it began, confined.
fn installed_under_a_running_pi(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.portcullis(&["pi-extension", "install"])?.ended_with(0)?;
    // A named pipe outside the project is refused without a question.
    let made = scene.outside().join("made");
    let escape = bash(&format!("mkfifo '{}'; echo then $?; echo sum-$((40+2))", made.display()));
    let script = turns([
        ("before", vec![escape.clone(), expecting("then 1\nsum-42", say("first over"))]),
        ("after", vec![escape, expecting("then 1\nsum-42", say("second over"))]),
    ]);
    let mut pi = Launch::plain(&scene, version, &script)?.rpc()?;
    pi.prompt("before")?;
    pi.wait_for("agent_end")?;
    scene.portcullis(&["pi-extension", "install"])?.ended_with(0)?;
    pi.prompt("after")?;
    pi.wait_for("agent_end")?;
    ensure!(pi.close()?.success() && !made.exists());
    Ok(())
}

fn loaded_twice(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.portcullis(&["pi-extension", "install"])?.ended_with(0)?;
    let finished = Launch::guarded(&scene, version, &confined(&scene))?.print("go")?.ended_unattended()?;
    ensure!(!scene.outside().join("made").exists(), "{finished:#?}");
    Ok(())
}

fn installed_but_the_host_is_gone(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let copy = scene.at("portcullis");
    // `cp` copies the file: if this process had it open for writing, a child that another test forks at that moment
    // would inherit the descriptor, and executing the file would fail with ETXTBSY.
    ensure!(Command::new("cp").arg(portcullis(user)?).arg(&copy).status()?.success(), "copying the host");
    user.own(&copy)?;
    let mut install = user.command(&copy);
    scene.enter(&mut install);
    Finished::run(install.args(["pi-extension", "install"]))?.ended_with(0)?;
    fs::remove_file(&copy)?;
    let refused = |step| expecting("so this tool is blocked", step);
    let script = script([bash("touch made"), refused(say("done"))]);
    let finished = Launch::plain(&scene, version, &script)?.print("go")?.ended_with(125)?;
    ensure!(!scene.project().join("made").exists(), "{finished:#?}");
    Ok(())
}

fn switched_off_in_spite_of_a_host(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let script = script([bash(&write_outside(&scene)), expecting("then 0", say("done"))]);
    let launch = Launch::guarded(&scene, version, &script)?;
    let finished = launch.with(["--no-sandbox=true"]).print("go")?.ended_unattended()?;
    ensure!(scene.outside().join("made").exists(), "{finished:#?}");
    Ok(())
}

/// The user may turn the extension off in the settings; a project may not.
fn switched_off_in_the_settings(version: PiVersion, user: User) -> Result<()> {
    let off = settings(&json!({ "enabled": false }));
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join(".pi/portcullis.json"), &off)?;
    scene.write(&scene.project().join(".pi/sandbox.json"), &off)?;
    let finished = Launch::guarded(&scene, version, &script([bash(&write_outside(&scene)), say("done")]))?
        .print("go")?;
    ensure!(!scene.outside().join("made").exists(), "the project switched the sandbox off: {finished:#?}");

    let scene = Scene::new(user)?;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &off)?;
    let script = script([bash(&write_outside(&scene)), expecting("then 0", say("done"))]);
    Launch::guarded(&scene, version, &script)?.print("go")?.ended_unattended()?;
    ensure!(scene.outside().join("made").exists());
    Ok(())
}

/// One more policy file in the settings changes what tools and commands may do, without a rebuild.
fn another_policy_file(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("secret.txt"), "hunter2")?;
    let read = || read("secret.txt");
    let open =
        script([read(), expecting("hunter2", bash("cat secret.txt")), expecting("hunter2", say("done"))]);
    Launch::guarded(&scene, version, &open)?.print("go")?.ended_unattended()?;

    let policy = portcullis_it::guest("deny-one", user)?;
    let text = settings(&json!({ "policies": [{ "use": "workspace" }, { "use": policy }] }));
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &text)?;
    let closed = script([
        read(),
        expecting_no("hunter2", expecting("one\\.denied", bash("cat secret.txt; echo then $?"))),
        expecting_no("hunter2", expecting("then 1", bash("echo x > secret.txt; echo then $?"))),
        expecting("then [12]", say("done")),
    ]);
    Launch::guarded(&scene, version, &closed)?.print("go")?.ended_unattended()?;
    ensure!(fs::read_to_string(scene.project().join("secret.txt"))? == "hunter2");
    Ok(())
}

/// pi 0.74 runs the extensions of a project without a question; `portcullis pi` does not start it in such a project.
/// The control is pi 0.74 alone.
fn extensions_of_a_project(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let ran = scene.outside().join("ran");
    let text = format!(
        "import {{ writeFileSync }} from 'node:fs'; export default () => writeFileSync('{}', '');",
        ran.display()
    );
    scene.write(&scene.project().join(".pi/extensions/own.ts"), &text)?;
    let hello = script([say("hello")]);
    let finished = Launch::guarded(&scene, version, &hello)?.print("go")?;
    ensure!(!ran.exists(), "{finished:#?}");
    let is_old = version != PiVersion::V1_5;
    ensure!((finished.code() == 1 && finished.stderr.contains("--approve")) == is_old, "{finished:#?}");
    Launch::plain(&scene, version, &hello)?.print("go")?.ended_unattended()?;
    ensure!(ran.exists() == is_old);
    Launch::guarded(&scene, version, &hello)?.with(["--approve"]).print("go")?.ended_unattended()?;
    ensure!(ran.exists());
    Ok(())
}

/// A script that succeeds only if a command can write in the project and cannot write outside it.
fn confined(scene: &Scene) -> Value {
    script([
        bash(&write_outside(scene)),
        expecting("then 1", bash("echo x > inside; echo then $?")),
        expecting("then 0", say("done")),
    ])
}

fn write_outside(scene: &Scene) -> String {
    format!("echo x > '{}/made'; echo then $?", scene.outside().display())
}

/// Returns complete settings with `changes` applied.
fn settings(changes: &Value) -> String {
    let mut settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": [".", "~/.pi"], "allowWrite": ["."], "denyWrite": [] },
    });
    if let (Some(settings), Some(changes)) = (settings.as_object_mut(), changes.as_object()) {
        settings.extend(changes.clone());
    }
    settings.to_string()
}
