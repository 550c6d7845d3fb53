//! Edits by the user while pi is contained apply to pi itself as well; here a program runs in the place of pi.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Finished, Scene, User, World, code_of, processes};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use super::asked;
use super::ends::with_pi;
use super::servers::beside;
use crate::network::PROGRAM;

as_each_user!(what_the_user_changes_holds_for_pi_itself);

/// Reports continuously whether it reaches a host.
const DIALS: &str = "while :; do
    if curl -sS http://allowed.test/ 2> /dev/null | grep -q REACHED; then echo reached; else echo refused; fi > said.new
    mv said.new said; sleep 0.05
done";

const NOTHING: &str = r#"{ "allowedDomains": [], "deniedDomains": [] }"#;
const ALLOWED: &str = r#"{ "allowedDomains": ["allowed.test"], "deniedDomains": [] }"#;
const DENIED: &str = r#"{ "allowedDomains": [], "deniedDomains": ["allowed.test"] }"#;

/// Waits until the program has reported this after the call.
fn wait_said(scene: &Scene, what: &str) -> Result<()> {
    let said = scene.project().join("said");
    let is_it = || Ok((fs::read_to_string(&said).unwrap_or_default().trim() == what).then_some(()));
    Deadline::start().until(what, is_it)
}

/// Returns the id of the entry of `grants list` whose place in the settings is `pointer`, which names the host.
fn listed(portcullis: &impl Fn(&[&str]) -> Result<Finished>, pointer: &str) -> Result<String> {
    let told: Value =
        serde_json::from_str(&portcullis(&["grants", "list", "--json"])?.ended_with(0)?.stdout)?;
    let listed = told.pointer(pointer).filter(|listed| listed.to_string().contains("allowed.test"));
    let id = listed.and_then(|listed| listed.get("id")).and_then(Value::as_str);
    id.map(str::to_owned).with_context(|| format!("nothing of the host at {pointer}: {told:#}"))
}

fn what_the_user_changes_holds_for_pi_itself(user: User) -> Result<()> {
    let scene = with_pi(user, DIALS)?;
    let world = World::new(&scene, PROGRAM)?;
    world.settings_of_the_user(ALLOWED)?;
    let mut command = world.command(&portcullis_it::portcullis(user)?)?;
    command.args(["pi", "--contain", "--mode", "rpc"]);
    let errors = fs::File::create(scene.at("errors"))?;
    let mut pi =
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn()?;
    let changed = changes(&scene, &world);
    let group = Pid::from_child(&pi);
    let _ended_already = kill_process_group(group, Signal::KILL);
    pi.wait()?;
    changed.with_context(|| fs::read_to_string(scene.at("errors")).unwrap_or_default())?;
    processes::wait_scene_gone(&scene, |_| false)
}

fn changes(scene: &Scene, world: &World<'_>) -> Result<()> {
    wait_said(scene, "reached").context("the control")?;
    world.settings_of_the_user(DENIED)?;
    wait_said(scene, "refused")?;
    world.settings_of_the_user(NOTHING)?;
    let host = processes::container_of(scene)?.id;
    let portcullis = |words: &[&str]| beside(scene, host, words);
    let answer = |known: &str, code: &str| {
        let (id, question) = asked(portcullis, known)?;
        ensure!(question.to_string().contains("allowed.test"), "{question:#}");
        portcullis(&["asks", "answer", &id, &code_of(&question, code)])?.ended_with(0)?;
        anyhow::Ok(id)
    };

    // Removing the entry from the settings ends the grant.
    let first = answer("", "A")?;
    wait_said(scene, "reached")?;
    portcullis(&["grants", "revoke", &listed(&portcullis, "/kept/0")?])?.ended_with(0)?;

    // A refusal for the session is listed and can be withdrawn; a plain refusal applies to one attempt.
    let second = answer(&first, "d")?;
    wait_said(scene, "refused")?;
    portcullis(&["grants", "revoke", &listed(&portcullis, "/sessions/0")?])?.ended_with(0)?;
    let third = answer(&second, "no")?;
    world.settings_of_the_user(ALLOWED)?;
    wait_said(scene, "reached")?;
    world.settings_of_the_user(NOTHING)?;
    answer(&third, "no")?;
    let told = fs::read_to_string(scene.at("errors"))?;
    ensure!(
        told.contains("pi itself: The settings have changed: no longer reachable allowed.test"),
        "{told}"
    );
    Ok(())
}
