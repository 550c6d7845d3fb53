//! The layered settings of `@sysid/pi-sandbox`, end to end: tools, commands, answers, verbs, and a project that acts
//! against its user.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    its_rules_hold_for_tools_and_commands,
    answers_stand_beside_the_users_settings,
    the_verbs_know_its_files,
    edits_of_every_layer_take_effect_at_once,
    a_project_that_turns_hostile_opens_nothing,
);

const FAILED: i32 = 1;

fn layered(user: User) -> Result<Scene> {
    let scene = Scene::new(user)?;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), r#"{ "layout": "layered" }"#)?;
    Ok(scene)
}

fn users(scene: &Scene) -> PathBuf {
    scene.home().join(".pi/agent/extensions/sandbox.json")
}

fn projects(scene: &Scene) -> PathBuf {
    scene.project().join(".pi/sandbox.json")
}

fn entries(scene: &Scene) -> PathBuf {
    scene.home().join(".pi/agent/sandbox/layered.json")
}

fn write_params(path: &std::path::Path) -> Value {
    json!({ "callId": "w", "path": path, "content": "x" })
}

/// Whether the write tool writes a file without a question.
fn is_writable(host: &mut Serve, path: &std::path::Path) -> Result<bool> {
    Ok(host.call("file/write", &write_params(path))?.get("result").is_some())
}

fn its_rules_hold_for_tools_and_commands(user: User) -> Result<()> {
    let scene = layered(user)?;
    scene.write(&scene.home().join(".ssh/id_rsa"), "secret")?;
    scene.write(&projects(&scene), r#"{ "enabled": false, "filesystem": { "denyWrite": ["*.lock"] } }"#)?;
    scene.write(&scene.project().join("sub/.env"), "old")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let project = scene.project();
    for (name, expected) in
        [("free", true), (".env", false), ("sub/.env.local", false), ("a.pem", false), ("deep.lock", false)]
    {
        ensure!(is_writable(&mut host, &project.join(name))? == expected, "{name}");
    }
    let key =
        json!({ "callId": "r", "path": scene.home().join(".ssh/id_rsa"), "intent": { "kind": "read" } });
    ensure!(host.call("file/open", &key)?.get("error").is_some(), "a key is not read");
    let script = format!(
        "for file in free .env sub/.env new/.env.local x.pem y.lock; do mkdir -p $(dirname $file); \
         echo x > $file && echo wrote $file; done 2>/dev/null; cat {}/.ssh/id_rsa; true",
        scene.home().display()
    );
    let (ended, output) = host.run(&script)?;
    ensure!(output.lines().filter(|line| line.starts_with("wrote")).eq(["wrote free"]), "{output} {ended}");
    ensure!(!output.contains("secret"), "{output}");
    ensure!(std::fs::read_to_string(project.join("sub/.env"))? == "old");
    // The status reports that the project wanted to turn the sandbox off.
    let status = host.succeed("status", &json!({}))?;
    ensure!(status.get("state") == Some(&json!("enabled")), "{status}");
    let warnings = status.get("warnings").context("warnings")?.to_string();
    ensure!(warnings.contains("a project cannot turn the sandbox off"), "{warnings}");
    Ok(())
}

fn answers_stand_beside_the_users_settings(user: User) -> Result<()> {
    let scene = layered(user)?;
    scene.write(&projects(&scene), "{}")?;
    let places = ["mine", "all"].map(|name| scene.outside().join(name));
    let [mine, all] = places.each_ref().map(|place| place.join("file"));
    scene.write(&mine, "")?;
    scene.write(&all, "")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    for (path, code, target) in [(&mine, "P", "layered.json"), (&all, "A", "extensions/sandbox.json")] {
        let id = host.request("file/write", &write_params(path))?;
        let question = host.question()?;
        let options = question.pointer("/params/options").and_then(Value::as_array).context("options")?;
        let keys: Vec<_> = options.iter().filter_map(|option| option.get("key")?.as_str()).collect();
        ensure!(!keys.contains(&"N"), "the layered layout has no new entries: {keys:?}");
        // The widest option is for the directory.
        let place = options.iter().rposition(|option| option.get("key") == Some(&json!(code)));
        let place = place.with_context(|| format!("no `{code}` in {question:#}"))?;
        let told = options.get(place).and_then(|option| option.get("target")).context("a target")?;
        ensure!(told.to_string().contains(target), "{told}");
        host.answer(&question, &json!(place))?;
        ensure!(host.reply(id)?.get("result").is_some(), "{code}");
    }
    let read =
        |file: PathBuf| -> Result<Value> { Ok(serde_json::from_str(&std::fs::read_to_string(file)?)?) };
    let entry = read(entries(&scene))?;
    let key = scene.project().canonicalize()?.display().to_string();
    let granted = |settings: &Value| settings.pointer("/grants/0/path").cloned();
    let own = entry.get(&key).context("an entry for the project")?;
    let [first, second] = places.each_ref().map(|place| Some(json!(place)));
    ensure!(granted(own) == first, "{entry:#}");
    ensure!(granted(&read(users(&scene))?) == second);
    ensure!(std::fs::read_to_string(projects(&scene))? == "{}", "the project has no part in it");
    ensure!(!scene.home().join(".pi/agent/sandbox/projects.json").exists());

    // The grants apply to commands and to the next session as well.
    let script = format!("echo x > {} && echo x > {} && echo both", mine.display(), all.display());
    let (ended, output) = host.run(&script)?;
    ensure!(output == "both\n", "{output} {ended}");
    host.close()?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    ensure!(host.run(&script)?.1 == "both\n");
    let listed = scene.portcullis(&["grants", "list", "--json"])?.ended_with(0)?;
    let listed: Value = serde_json::from_str(&listed.stdout)?;
    let kept = listed.get("kept").and_then(Value::as_array).context("kept")?;
    ensure!(kept.len() == 2, "{listed:#}");
    for grant in kept {
        let id = grant.get("id").and_then(Value::as_str).context("an id")?;
        scene.portcullis(&["grants", "revoke", id])?.ended_with(0)?;
    }
    for path in [&mine, &all] {
        ensure!(!is_writable(&mut host, path)?, "taken back: {}", path.display());
    }
    Ok(())
}

fn the_verbs_know_its_files(user: User) -> Result<()> {
    let scene = layered(user)?;
    scene.write(&users(&scene), "{\n  \"network\": { \"allowedDomains\": [\"a.test\"] }\n}\n")?;
    scene.write(&projects(&scene), r#"{ "network": { "allowedDomains": ["a.test", "b.test"] } }"#)?;
    let shown = scene.portcullis(&["config", "show", "--json"])?.ended_with(0)?;
    let shown: Value = serde_json::from_str(&shown.stdout)?;
    ensure!(shown.pointer("/source/kind") == Some(&json!("layered")), "{shown:#}");
    let values = shown.get("values").and_then(Value::as_array).context("values")?;
    let domains: Vec<_> = values
        .iter()
        .filter(|value| value.get("field") == Some(&json!("network.allowedDomains")))
        .map(|value| ["/value", "/standing", "/origin/at/line"].map(|at| value.pointer(at).cloned()))
        .collect();
    let expected = [("a.test", "inForce", 2), ("a.test", "inForce", 1), ("b.test", "overruled", 1)]
        .map(|(value, standing, line)| [json!(value), json!(standing), json!(line)].map(Some));
    ensure!(domains == expected, "{domains:?}");
    let named = scene.portcullis(&["config", "show"])?.ended_with(0)?;
    for part in ["over the defaults", "*.pem", "opens nothing that your own settings"] {
        ensure!(named.stdout.contains(part), "no `{part}` in {named:#?}");
    }
    ensure!(!named.stdout.contains("<built in>"), "{named:#?}");
    let path = scene.portcullis(&["config", "path"])?.ended_with(0)?;
    ensure!(path.stdout.trim() == users(&scene).display().to_string(), "{path:#?}");
    let all = scene.portcullis(&["config", "path", "--all"])?.ended_with(0)?;
    ensure!(all.stdout.matches("in use").count() == 3, "{all:#?}");
    let valid = scene.portcullis(&["config", "validate"])?.ended_with(0)?;
    ensure!(valid.stdout.matches("valid").count() == 3, "{valid:#?}");
    scene.write(&users(&scene), r#"{ "filesystem": { "denyWrites": [] } }"#)?;
    let wrong = scene.portcullis(&["config", "validate"])?.ended_with(FAILED)?;
    ensure!(wrong.stdout.contains("did you mean `denyWrite`?"), "{wrong:#?}");
    let mut edit = scene.portcullis_command(&["config", "edit"])?;
    edit.env("VISUAL", "sed -i s/denyWrites/denyWrite/").stdin(std::process::Stdio::null());
    portcullis_it::Finished::run(&mut edit)?.ended_with(0)?;
    scene.portcullis(&["config", "validate"])?.ended_with(0)?;
    let schema = scene.portcullis(&["config", "schema", "--kind", "layered-project"])?.ended_with(0)?;
    let schema: Value = serde_json::from_str(&schema.stdout)?;
    ensure!(schema.pointer("/properties/policies").is_none(), "a project says nothing of policies");
    Ok(())
}

fn edits_of_every_layer_take_effect_at_once(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let out = scene.outside().join("out");
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let inside = scene.project().join("x.pem");
    ensure!(is_writable(&mut host, &inside)?, "the first layout has no names");
    // The layout setting itself is changed.
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), r#"{ "layout": "layered" }"#)?;
    ensure!(!is_writable(&mut host, &inside)?);
    // Files that the other layout does not read.
    let place = format!(r#"{{ "filesystem": {{ "allowWrite": [".", "{}"] }} }}"#, scene.outside().display());
    scene.write(&users(&scene), &place)?;
    ensure!(is_writable(&mut host, &out)?);
    scene.write(&projects(&scene), r#"{ "filesystem": { "allowWrite": ["."] } }"#)?;
    ensure!(!is_writable(&mut host, &out)?, "the project narrows");
    scene.write(&projects(&scene), "{}")?;
    ensure!(is_writable(&mut host, &out)?);
    // Settings that cannot be used change no rule and are reported.
    scene.write(&users(&scene), "{ broken")?;
    ensure!(is_writable(&mut host, &out)?);
    let status = host.succeed("status", &json!({}))?;
    ensure!(status.to_string().contains("The edited settings cannot be used"), "{status}");
    scene.write(&users(&scene), "{}")?;
    ensure!(!is_writable(&mut host, &out)?);
    Ok(())
}

fn a_project_that_turns_hostile_opens_nothing(user: User) -> Result<()> {
    let scene = layered(user)?;
    scene.write(&projects(&scene), r#"{ "network": { "deniedDomains": ["evil.test"] } }"#)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let out = scene.outside().join("out");
    let file = projects(&scene);
    let loosening = r#"{ "enabled": false, "filesystem": { "allowWrite": ["/"], "denyWrite": [] },
        "network": { "allowedDomains": ["evil.test"], "deniedDomains": [] } }"#;
    let huge = " ".repeat(1024 * 1024 + 1);
    for (what, text) in
        [("loosening", loosening), ("broken", "{"), ("huge", &huge), ("unknown", r#"{"x":1}"#)]
    {
        scene.write(&file, text)?;
        ensure!(!is_writable(&mut host, &out)?, "{what}");
        ensure!(!is_writable(&mut host, &scene.project().join(".env"))?, "{what}");
        let mut other = Serve::start(&scene, &[], &[])?;
        let hello = other.call("hello", &other.hello(Interface::Absent))?;
        let state = hello.pointer("/result/status/state").cloned();
        let expected = if what == "loosening" { "enabled" } else { "closed" };
        ensure!(state == Some(json!(expected)), "{what}: {hello}");
        ensure!(!is_writable(&mut other, &out)?, "{what}");
    }
    std::fs::remove_file(&file)?;
    let made = std::process::Command::new("mkfifo").arg(&file).status()?;
    ensure!(made.success());
    ensure!(!is_writable(&mut host, &out)?, "a named pipe holds nobody");
    std::fs::remove_file(&file)?;
    std::os::unix::fs::symlink(users(&scene), &file)?;
    ensure!(!is_writable(&mut host, &out)?, "nor does a link to what the user allows");
    Ok(())
}
