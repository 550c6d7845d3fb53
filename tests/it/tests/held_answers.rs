//! The extent of an answer that a running command waited for: exactly what the option says, and no denied file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(a_yes_to_one_name_is_none_to_its_neighbour, a_yes_to_a_place_opens_nothing_denied);

/// The control is the option for every file that the command creates in the directory; after it the command continues
/// without further questions.
fn a_yes_to_one_name_is_none_to_its_neighbour(user: User) -> Result<()> {
    for (key, questions, content) in
        [("o", 1, "evil\n"), ("s", 2, "ours"), ("P", 2, "ours"), ("A", 2, "ours")]
    {
        let scene = Scene::new(user)?;
        let (place, neighbour) = (scene.outside(), scene.outside().join("settings"));
        scene.write(&neighbour, "ours")?;
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        let id = host.begin("echo x > $OUT/log; echo evil > $OUT/settings", &environment(&place))?;
        let question = host.question()?;
        ensure!(question.to_string().contains("/log"), "{question}");
        host.answer(&question, &choice(&question, key)?)?;
        if questions == 2 {
            let question = host.question()?;
            ensure!(question.to_string().contains("/settings"), "{key}: {question}");
            host.answer(&question, &json!("refuse"))?;
        }
        host.finish(id)?;
        ensure!(fs::read_to_string(&neighbour)? == content, "{key}");
        // A call that an answer for the directory covered has its own line in the log as well.
        let lines = log(&scene)?;
        let line = lines.iter().find(|line| line.contains("outside/settings")).context("no line")?;
        ensure!(line.contains("\"allow\"") == (questions == 1), "{key}: {line}");
    }
    Ok(())
}

/// An answer for a directory opens neither a file that was refused for the session nor another name of a file that the
/// settings deny.
fn a_yes_to_a_place_opens_nothing_denied(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (place, locked) = (scene.outside(), scene.project().join("locked"));
    for (path, text) in [(&place.join("keep"), "keep"), (&place.join("free"), "free"), (&locked, "locked")] {
        scene.write(path, text)?;
    }
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": ["locked"] },
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    fs::hard_link(&locked, place.join("other-name"))?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let id = host.begin("echo x > $OUT/keep", &environment(&place))?;
    let question = host.question()?;
    host.answer(&question, &choice(&question, "d")?)?;
    host.finish(id)?;
    let script = "echo x > $OUT/new; for f in free keep other-name; do echo evil > $OUT/$f; done";
    let id = host.begin(script, &environment(&place))?;
    let question = host.question()?;
    host.answer(&question, &choice(&question, "o")?)?;
    host.finish(id)?;
    ensure!(fs::read_to_string(place.join("free"))? == "evil\n", "the control: the yes was for the place");
    ensure!(fs::read_to_string(place.join("keep"))? == "keep");
    ensure!(fs::read_to_string(&locked)? == "locked");
    Ok(())
}

fn environment(place: &Path) -> Value {
    json!({ "PATH": "/usr/bin:/bin", "OUT": place })
}

/// Returns the index of the narrowest option with this key.
fn choice(question: &Value, key: &str) -> Result<Value> {
    let options = question.pointer("/params/options").and_then(Value::as_array);
    let is_it = |option: &Value| option.get("key") == Some(&json!(key));
    let place = options.and_then(|options| options.iter().position(is_it));
    Ok(json!(place.with_context(|| format!("no {key}: {question}"))?))
}

fn log(scene: &Scene) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let mut open: Vec<PathBuf> = vec![scene.home()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "jsonl") {
                lines.extend(fs::read_to_string(&path)?.lines().map(str::to_owned));
            }
        }
    }
    Ok(lines)
}
