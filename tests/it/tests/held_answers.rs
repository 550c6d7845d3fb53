//! The extent of an answer that a running command waited for: exactly the files that the option names, and no denied
//! file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(a_yes_to_one_place_is_none_to_its_neighbour, a_yes_to_a_place_opens_nothing_denied);

/// The control is a second file in the place, which the command writes without a further question.
fn a_yes_to_one_place_is_none_to_its_neighbour(user: User) -> Result<()> {
    for key in ["o", "s", "P", "A"] {
        let scene = Scene::new(user)?;
        let (place, neighbour) = (scene.outside().join("place"), scene.outside().join("settings/f"));
        scene.write(&place.join("f"), "ours")?;
        scene.write(&neighbour, "ours")?;
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        let script = "echo x > $OUT/log; echo evil > $OUT/f; echo evil > $OUT/../settings/f";
        let id = host.begin(script, &environment(&place))?;
        let question = host.question()?;
        ensure!(question.to_string().contains("write log"), "{question}");
        host.answer(&question, &choice(&question, key)?)?;
        let question = host.question()?;
        ensure!(question.to_string().contains("/settings"), "{key}: {question}");
        host.answer(&question, &json!("refuse"))?;
        host.finish(id)?;
        ensure!(fs::read_to_string(place.join("f"))? == "evil\n", "{key}");
        ensure!(fs::read_to_string(&neighbour)? == "ours", "{key}");
        // A call that an answer for the place covered has its own line in the log as well.
        let lines = log(&scene)?;
        for (path, is_allowed) in [("outside/place/f", true), ("outside/settings/f", false)] {
            let line = lines.iter().find(|line| line.contains(path)).context("no line")?;
            ensure!(line.contains("\"allow\"") == is_allowed, "{key}: {line}");
        }
    }
    Ok(())
}

/// An answer for a directory opens neither a place in it that was refused for the session nor another name of a file that the
/// settings deny.
fn a_yes_to_a_place_opens_nothing_denied(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (place, locked) = (scene.outside(), scene.project().join("locked"));
    for (path, text) in [(&place.join("keep/f"), "keep"), (&place.join("free"), "free"), (&locked, "locked")]
    {
        scene.write(path, text)?;
    }
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": ["locked"] },
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    fs::hard_link(&locked, place.join("other-name"))?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let id = host.begin("echo x > $OUT/keep/new", &environment(&place))?;
    let question = host.question()?;
    host.answer(&question, &choice(&question, "d")?)?;
    host.finish(id)?;
    let script = "echo x > $OUT/new; for f in free keep/f other-name; do echo evil > $OUT/$f; done";
    let id = host.begin(script, &environment(&place))?;
    let question = host.question()?;
    host.answer(&question, &choice(&question, "o")?)?;
    host.finish(id)?;
    ensure!(fs::read_to_string(place.join("free"))? == "evil\n", "the control: the yes was for the place");
    ensure!(fs::read_to_string(place.join("keep/f"))? == "keep");
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
