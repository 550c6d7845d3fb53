//! Offers of credentials to commands that are seen to need one.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Interface, Scene, Serve, User, World};
use serde_json::{Value, json};

use super::ssh::{OwnSsh, prepare};
use crate::network::PROGRAM;

as_each_user!(a_yes_writes_the_settings_and_holds_at_once, without_a_yes_nothing_changes);

/// A repository with a commit that is not pushed.
const MAKE: &str = "git init -q made && cd made && git remote add origin ssh://git@allowed.test:2222/git/repo.git \
    && git fetch -q 2>/dev/null; git -c user.name=n -c user.email=e commit -q --allow-empty -m new; true";

const PUSH: &str = "cd made && git push -q origin HEAD:refs/heads/agent/offered 2>&1; echo \"code $?\"";

fn environment() -> Value {
    json!({ "PATH": "/usr/bin:/bin", "GIT_TERMINAL_PROMPT": "0" })
}

fn settings(scene: &Scene) -> Result<std::path::PathBuf> {
    let own = [scene.at("own-ssh"), scene.at("world").join("client_key")];
    let settings = json!({
        "network": { "allowedDomains": ["allowed.test"], "deniedDomains": [] },
        "filesystem": { "denyRead": own, "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
    });
    let file = scene.home().join(".pi/agent/sandbox/default.json");
    scene.write(&file, &settings.to_string())?;
    Ok(file)
}

fn text<'a>(question: &'a Value, pointer: &str) -> &'a str {
    question.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Runs a command that must not lead to a question.
fn quiet(host: &mut Serve, script: &str) -> Result<String> {
    let id = host.begin(script, &environment())?;
    Ok(host.finish(id)?.1)
}

fn a_yes_writes_the_settings_and_holds_at_once(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let path = prepare(&scene, OwnSsh::default())?;
    let file = settings(&scene)?;
    let mut host = Serve::inside_with(&scene, &world, &[("PATH", &path)], Interface::Present)?;
    quiet(&mut host, MAKE)?;
    let before = fs::read_to_string(&file)?;
    let id = host.begin(PUSH, &environment())?;
    let question = host.question()?;
    ensure!(text(&question, "/params/title") == "git wants to push by your own ssh to", "{question:#}");
    ensure!(text(&question, "/params/subject") == "allowed.test:2222/git/repo", "{question:#}");
    ensure!(fs::read_to_string(&file)? == before, "nothing is written before the answer");
    let options = question.pointer("/params/options").and_then(Value::as_array).context("options")?;
    let yes = options.iter().position(|one| one.get("key") == Some(&json!("A"))).context("a yes")?;
    let adds = options.get(yes).map(Value::to_string).unwrap_or_default();
    ensure!(adds.contains("push to its branches agent/**") && adds.contains("default.json"), "{question:#}");
    host.answer(&question, &json!(yes))?;
    let (_, output) = host.finish(id)?;
    ensure!(output.contains("code 0"), "{output}\n{}", host.errors());
    let after: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
    let wanted = json!([{ "name": "allowed.test-ssh", "host": "allowed.test:2222", "fetch": ["git/repo"], "user": "git" }]);
    ensure!(after.pointer("/credentials/ssh") == Some(&wanted), "{after:#}");
    // The fence is there, and the question is not asked again.
    let output = quiet(&mut host, "cd made && git push -q origin HEAD:main 2>&1; git ls-remote origin")?;
    ensure!(output.contains("refs/heads/agent/offered") && !output.contains("code 0"), "{output}");
    host.close()?;
    let mut next = Serve::inside_with(&scene, &world, &[("PATH", &path)], Interface::Present)?;
    let output = quiet(&mut next, PUSH)?;
    ensure!(output.contains("code 0"), "{output}");
    next.close()?;
    Ok(())
}

/// The control is the yes of the other test.
fn without_a_yes_nothing_changes(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let path = prepare(&scene, OwnSsh::default())?;
    let file = settings(&scene)?;
    let before = fs::read_to_string(&file)?;
    let mut host = Serve::inside_with(&scene, &world, &[("PATH", &path)], Interface::Absent)?;
    quiet(&mut host, MAKE)?;
    let output = quiet(&mut host, PUSH)?;
    ensure!(!output.contains("code 0"), "nobody was asked: {output}");
    host.close()?;
    let mut host = Serve::inside_with(&scene, &world, &[("PATH", &path)], Interface::Present)?;
    let id = host.begin(PUSH, &environment())?;
    let question = host.question()?;
    host.answer(&question, &json!("refuse"))?;
    let (_, output) = host.finish(id)?;
    ensure!(output.contains("code ") && !output.contains("code 0"), "{output}");
    let output = quiet(&mut host, PUSH)?;
    ensure!(!output.contains("code 0"), "it is asked once in a session: {output}");
    host.close()?;
    ensure!(fs::read_to_string(&file)? == before, "the settings are as before");
    Ok(())
}
