//! Answers that were kept: they match again, they can be withdrawn completely, and a later denial in the settings
//! overrides them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    an_answer_through_a_link_matches_again,
    an_answer_for_all_projects_is_taken_back_as_a_whole,
    edits_of_the_defaults_count_in_projects_with_an_entry,
    no_yes_survives_a_later_denial,
);

fn default_file(scene: &Scene) -> PathBuf {
    scene.home().join(".pi/agent/sandbox/default.json")
}

fn projects_file(scene: &Scene) -> PathBuf {
    default_file(scene).with_file_name("projects.json")
}

/// Edits the settings file, or the default settings if there is no file.
fn edit(scene: &Scene, change: impl FnOnce(&mut Value)) -> Result<()> {
    let file = default_file(scene);
    let mut settings = match fs::read_to_string(&file) {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => json!({
            "network": { "allowedDomains": [], "deniedDomains": [] },
            "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        }),
    };
    change(&mut settings);
    scene.write(&file, &settings.to_string())
}

fn add(settings: &mut Value, pointer: &str, entry: Value) {
    if let Some(list) = settings.pointer_mut(pointer).and_then(Value::as_array_mut) {
        list.push(entry);
    }
}

fn reading(path: &Path) -> Value {
    json!({ "callId": "r", "path": path, "given": path, "intent": { "kind": "read" } })
}

fn writing(path: &Path) -> Value {
    json!({ "callId": "w", "path": path, "given": path, "content": "x" })
}

/// The result of a request.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    Allowed,
    Denied,
    Asked,
}

/// Sends a request, and refuses the question if one comes.
fn put(host: &mut Serve, method: &str, params: &Value) -> Result<Came> {
    let id = host.request(method, params)?;
    let message = host.wait("a reply or a question", |message| {
        let is_reply = message.get("method").is_none() && message.get("id") == Some(&json!(id));
        is_reply || message.get("method") == Some(&json!("ask"))
    })?;
    if message.get("method").is_some() {
        host.answer(&message, &json!("refuse"))?;
        host.reply(id)?;
        return Ok(Came::Asked);
    }
    Ok(if message.get("result").is_some() { Came::Allowed } else { Came::Denied })
}

/// Sends a request, and answers its question with the narrowest option of this key.
fn answered(host: &mut Serve, method: &str, params: &Value, key: &str) -> Result<()> {
    let id = host.request(method, params)?;
    let question = host.question()?;
    let options = question.pointer("/params/options").and_then(Value::as_array).context("options")?;
    let place = options.iter().position(|option| option.get("key") == Some(&json!(key)));
    host.answer(&question, &json!(place.with_context(|| format!("no `{key}`: {question}"))?))?;
    let reply = host.reply(id)?;
    ensure!(reply.get("result").is_some(), "{reply}");
    Ok(())
}

/// The user made the links: one in the project and one on the way to the file.
fn an_answer_through_a_link_matches_again(user: User) -> Result<()> {
    for key in ["s", "P", "A"] {
        let scene = Scene::new(user)?;
        let (real, other) = (scene.outside().join("real/notes"), scene.outside().join("real/other"));
        for file in [&real, &other, &scene.outside().join("moved/notes")] {
            scene.write(file, "alpha\n")?;
        }
        symlink(scene.outside().join("real"), scene.outside().join("way"))?;
        symlink(scene.outside().join("way"), scene.project().join("link"))?;
        let through = scene.project().join("link/notes");
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        answered(&mut host, "file/open", &reading(&through), key)?;
        if key != "s" {
            host.close()?;
            host = Serve::greeted(&scene, &[], Interface::Present)?;
        }
        for path in [&through, &scene.outside().join("way/notes"), &real] {
            let came = put(&mut host, "file/open", &reading(path))?;
            ensure!(came == Came::Allowed, "{key}, {}: {came:?}", path.display());
        }
        let (_, output) = host.run(&format!("cat '{}' '{}'", through.display(), real.display()))?;
        ensure!(output == "alpha\nalpha\n", "{key}, a command: {output}");
        // The controls: a neighbouring file, a write, and the same path after the link was changed.
        let neighbour = put(&mut host, "file/open", &reading(&scene.project().join("link/other")))?;
        ensure!(neighbour == Came::Asked, "{key}: {neighbour:?}");
        let written = put(&mut host, "file/write", &writing(&through))?;
        ensure!(written == Came::Asked, "{key}: {written:?}");
        fs::remove_file(scene.outside().join("way"))?;
        symlink(scene.outside().join("moved"), scene.outside().join("way"))?;
        let moved = put(&mut host, "file/open", &reading(&through))?;
        ensure!(moved == Came::Asked, "{key}, led elsewhere: {moved:?}");
        host.close()?;
    }
    Ok(())
}

/// For kinds of requests that are stored both as an entry of a settings list and as a grant.
fn an_answer_for_all_projects_is_taken_back_as_a_whole(user: User) -> Result<()> {
    for has_entry in [false, true] {
        for method in ["file/open", "file/write", "decide"] {
            let scene = Scene::new(user)?;
            let place = scene.outside().join("notes");
            scene.write(&place, "alpha\n")?;
            if has_entry {
                let entry = json!({ scene.project().display().to_string(): { "extends": "default" } });
                scene.write(&projects_file(&scene), &entry.to_string())?;
            }
            let params = match method {
                "file/open" => reading(&place),
                "file/write" => writing(&place),
                _ => {
                    json!({ "callId": "t", "tool": "look_up", "provider": "mcp:words", "input": { "word": "a" } })
                }
            };
            let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
            answered(&mut host, method, &params, "A")?;
            let came = put(&mut host, method, &params)?;
            ensure!(came == Came::Allowed, "{method}, it holds: {came:?}");
            let listed = scene.portcullis(&["grants", "list", "--all", "--json"])?.ended_with(0)?;
            let listed: Value = serde_json::from_str(&listed.stdout)?;
            let kept = listed.get("kept").and_then(Value::as_array).context("kept")?;
            let ids: Vec<&str> = kept.iter().filter_map(|kept| kept.get("id")?.as_str()).collect();
            let [id] = ids.as_slice() else { anyhow::bail!("{method}: one answer, one id: {listed:#}") };
            let done = scene.portcullis(&["grants", "revoke", id])?.ended_with(0)?;
            ensure!(done.stdout.starts_with("taken back: "), "{done:#?}");
            let came = put(&mut host, method, &params)?;
            ensure!(came != Came::Allowed, "{method}, taken back: {came:?}");
            if method == "file/write" {
                let id = host.begin(
                    &format!("echo y > '{}' && echo wrote", place.display()),
                    &json!({ "PATH": "/bin" }),
                )?;
                let question = host.question()?;
                host.answer(&question, &json!("refuse"))?;
                let (_, output) = host.finish(id)?;
                ensure!(!output.contains("wrote"), "a command: {output}");
            }
            host.close()?;
            let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
            let came = put(&mut host, method, &params)?;
            ensure!(came == Came::Asked, "{method}, in the next session: {came:?}");
            host.close()?;
        }
    }
    Ok(())
}

fn edits_of_the_defaults_count_in_projects_with_an_entry(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (notes, more) = (scene.outside().join("notes"), scene.outside().join("more"));
    scene.write(&notes, "alpha\n")?;
    scene.write(&more, "beta\n")?;
    edit(&scene, |_| ())?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    answered(&mut host, "file/open", &reading(&notes), "P")?;
    let entry: Value = serde_json::from_str(&fs::read_to_string(projects_file(&scene))?)?;
    let entry = entry.get(scene.project().display().to_string()).context("an entry")?;
    ensure!(entry.get("filesystem").is_none() && entry.get("network").is_none(), "no copy: {entry:#}");

    ensure!(put(&mut host, "file/open", &reading(&more))? == Came::Asked, "the control");
    edit(&scene, |settings| add(settings, "/filesystem/allowRead", json!(more)))?;
    let came = put(&mut host, "file/open", &reading(&more))?;
    ensure!(came == Came::Allowed, "an edit that loosens: {came:?}");
    let inside = scene.project().join("inside");
    ensure!(put(&mut host, "file/write", &writing(&inside))? == Came::Allowed, "the control");
    edit(&scene, |settings| add(settings, "/filesystem/denyWrite", json!(inside)))?;
    let came = put(&mut host, "file/write", &writing(&inside))?;
    ensure!(came == Came::Denied, "an edit that tightens: {came:?}");
    let (_, output) = host.run("echo y > inside && echo wrote")?;
    ensure!(!output.contains("wrote"), "{output}");
    host.close()?;
    // The answer for the project remains in force beside them, also in the next session.
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    for (method, params, expected) in [
        ("file/open", reading(&notes), Came::Allowed),
        ("file/open", reading(&more), Came::Allowed),
        ("file/write", writing(&inside), Came::Denied),
    ] {
        let came = put(&mut host, method, &params)?;
        ensure!(came == expected, "{method}: {came:?}");
    }
    host.close()?;
    Ok(())
}

/// For each kind of answer and each lifetime: the denial holds in the running session and in the next one.
fn no_yes_survives_a_later_denial(user: User) -> Result<()> {
    for key in ["s", "P", "A"] {
        for (method, list) in [("file/open", "denyRead"), ("file/write", "denyWrite")] {
            let scene = Scene::new(user)?;
            let place = scene.outside().join("place/notes");
            scene.write(&place, "alpha\n")?;
            edit(&scene, |_| ())?;
            let params = if method == "file/open" { reading(&place) } else { writing(&place) };
            let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
            answered(&mut host, method, &params, key)?;
            let command = match method {
                "file/open" => format!("cat '{}' && echo done", place.display()),
                _ => format!("echo y > '{}' && echo done", place.display()),
            };
            ensure!(put(&mut host, method, &params)? == Came::Allowed, "the control: {key} {method}");
            let (_, output) = host.run(&command)?;
            ensure!(output.contains("done"), "the control: {key} {method}: {output}");
            // The denial names the path itself, the directory above it, or a pattern.
            for denial in
                [json!(place), json!(scene.outside().join("place")), json!(scene.outside().join("**/note*"))]
            {
                let before = fs::read_to_string(default_file(&scene))?;
                edit(&scene, |settings| add(settings, &format!("/filesystem/{list}"), denial.clone()))?;
                let came = put(&mut host, method, &params)?;
                ensure!(came == Came::Denied, "{key} {method} {denial}: {came:?}");
                let (_, output) = host.run(&command)?;
                ensure!(!output.contains("done"), "{key} {method} {denial}, a command: {output}");
                let mut next = Serve::greeted(&scene, &[], Interface::Present)?;
                let came = put(&mut next, method, &params)?;
                ensure!(came == Came::Denied, "{key} {method} {denial}, the next session: {came:?}");
                next.close()?;
                scene.write(&default_file(&scene), &before)?;
                let came = put(&mut host, method, &params)?;
                ensure!(came == Came::Allowed, "{key} {method}, the denial is gone: {came:?}");
            }
            host.close()?;
        }
    }
    Ok(())
}
