//! A policy's rules for one command apply only to that command, and only tighten.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User, guest};
use serde_json::{Value, json};

as_each_user!(
    limits_of_one_command_hold,
    variables_of_one_command_hold,
    output_of_one_command_is_bounded,
    rules_of_one_command_open_nothing,
    an_ask_of_one_command_is_asked,
    limits_of_one_command_widen_nothing
);

/// Runs a script with `rules` for this command; an empty text means none.
fn run(scene: &Scene, policy: &str, rules: &str, script: &str) -> Result<Finished> {
    let script = format!(": @@{rules}@@; {script}");
    scene.portcullis(&["run", "--policy", policy, "--", "bash", "-c", &script])
}

fn policy(user: User) -> Result<String> {
    let path: PathBuf = guest("per-command", user)?;
    path.to_str().map(str::to_owned).context("a path is text")
}

/// Writes settings of the user with `more` in them.
fn settings(scene: &Scene, more: &Value) -> Result<()> {
    let mut all = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": {
            "denyRead": ["/home"], "allowRead": [".", "~/.pi"], "allowWrite": ["."], "denyWrite": [],
        },
    });
    let (all_keys, more) =
        (all.as_object_mut().context("an object")?, more.as_object().context("an object")?);
    all_keys.extend(more.clone());
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &all.to_string())
}

fn limits_of_one_command_hold(user: User) -> Result<()> {
    let (scene, policy) = (Scene::new(user)?, policy(user)?);
    for (rules, script, told) in [
        ("wall-ms=500", "sleep 60", &["its time ran out after 0.5 s"][..]),
        ("cpu-ms=1000", "while :; do :; done", &["`limits.cpuMs`"]),
        ("processes=10", "for i in {1..40}; do sleep 1 & done; wait", &["`limits.processes`"]),
        ("file-mib=1", "head -c 3M /dev/zero > big", &["`limits.fileMib`"]),
        // `tail` cannot get the memory, or is killed when the memory of all processes is counted.
        (
            "memory-mib=64",
            "head -c 200M /dev/zero | tail -c 150M | wc -c",
            &["memory exhausted", "`limits.memoryMib`"],
        ),
    ] {
        let is_told = |finished: &Finished| told.iter().any(|text| finished.stderr.contains(text));
        let met = run(&scene, &policy, rules, script)?;
        ensure!(is_told(&met), "{rules}: {met:?}");
        // The control, except for scripts that would never end.
        if !rules.starts_with("wall") && !rules.starts_with("cpu") {
            let free = run(&scene, &policy, "", script)?.ended_with(0)?;
            ensure!(!is_told(&free), "{rules}: {free:?}");
        }
    }
    let open_files = run(&scene, &policy, "open-files=40", "ulimit -n")?.ended_with(0)?;
    ensure!(open_files.stdout.trim() == "40", "{open_files:?}");
    let free = run(&scene, &policy, "", "ulimit -n")?.ended_with(0)?;
    ensure!(free.stdout.trim() != "40", "control: {free:?}");
    Ok(())
}

fn limits_of_one_command_widen_nothing(user: User) -> Result<()> {
    let (scene, policy) = (Scene::new(user)?, policy(user)?);
    settings(&scene, &json!({ "limits": { "wallMs": 500, "openFiles": 64 } }))?;
    let met = run(&scene, &policy, "wall-ms=60000", "sleep 60")?;
    ensure!(met.stderr.contains("its time ran out after 0.5 s"), "{met:?}");
    let open_files = run(&scene, &policy, "open-files=512", "ulimit -n")?.ended_with(0)?;
    ensure!(open_files.stdout.trim() == "64", "{open_files:?}");
    Ok(())
}

fn variables_of_one_command_hold(user: User) -> Result<()> {
    let (scene, policy) = (Scene::new(user)?, policy(user)?);
    let shown = |rules: &str| -> Result<String> {
        let script = format!(": @@{rules}@@; echo ${{FOO-none}} ${{GIVEN-none}} ${{GITHUB_TOKEN-none}}");
        let mut command =
            scene.portcullis_command(&["run", "--policy", &policy, "--", "bash", "-c", &script])?;
        let finished =
            Finished::run(command.env("FOO", "mine").env("GITHUB_TOKEN", "ghp_x"))?.ended_with(0)?;
        Ok(finished.stdout.trim().to_owned())
    };
    ensure!(shown("")? == "mine none none", "control");
    ensure!(shown("drop=FOO set=GIVEN")? == "none given none", "dropped and given");
    // A variable that the host withholds stays withheld: only the standing rules can pass it on.
    ensure!(shown("keep=GITHUB_TOKEN")? == "mine none none", "{}", shown("keep=GITHUB_TOKEN")?);
    Ok(())
}

fn output_of_one_command_is_bounded(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.trust(&guest("per-command", user)?)?;
    settings(
        &scene,
        &json!({ "policies": [{ "use": "workspace" }, { "use": guest("per-command", user)? }] }),
    )?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let (ended, _) = host.run(": @@output-kib=64@@; head -c 1M /dev/zero | tr '\\0' x")?;
    ensure!(ended.to_string().contains("limits.outputKib"), "{ended}");
    let (ended, output) = host.run("head -c 1M /dev/zero | tr '\\0' x")?;
    ensure!(!ended.to_string().contains("limits.outputKib") && output.len() >= 1 << 20, "control: {ended}");
    host.close()?;
    Ok(())
}

fn rules_of_one_command_open_nothing(user: User) -> Result<()> {
    let (scene, policy) = (Scene::new(user)?, policy(user)?);
    let secret = scene.home().join("secret.txt");
    scene.write(&secret, "secret")?;
    let read = format!("cat {}", secret.display());
    let closed = run(&scene, &policy, "", &read)?;
    ensure!(closed.code() != 0, "control: it is closed to commands: {closed:?}");
    let asked_for = run(&scene, &policy, &format!("allow={}", secret.display()), &read)?;
    ensure!(asked_for.code() != 0 && !asked_for.stdout.contains("secret"), "{asked_for:?}");
    // The control: the same rule takes effect where it denies.
    let inside = scene.project().join("inside.txt");
    scene.write(&inside, "inside")?;
    run(&scene, &policy, "", "cat inside.txt")?.ended_with(0)?;
    let denied = run(&scene, &policy, &format!("deny={}", inside.display()), "cat inside.txt")?;
    ensure!(denied.code() != 0 && !denied.stdout.contains("inside"), "{denied:?}");
    Ok(())
}

/// The broker asks because of the command's own rules; those of the session would allow it.
fn an_ask_of_one_command_is_asked(user: User) -> Result<()> {
    let (scene, policy) = (Scene::new(user)?, policy(user)?);
    let place = scene.project().join("asked");
    run(&scene, &policy, "", "echo free > asked")?.ended_with(0)?;
    std::fs::remove_file(&place)?;
    let refused = run(&scene, &policy, &format!("ask={}", place.display()), "echo asked > asked")?;
    ensure!(refused.code() != 0 && !place.exists(), "{refused:?}");
    ensure!(refused.stderr.contains("nobody could be asked"), "{refused:?}");
    Ok(())
}
