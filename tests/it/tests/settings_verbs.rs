//! `config edit` and `config import`, the effect of `ignoreViolations`, and rules that `/sandbox` makes of denials.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    an_edit_is_put_in_place_only_when_it_can_be_used,
    an_edit_of_what_somebody_else_changed_meanwhile_is_kept_beside,
    no_editor_of_the_projects_is_started,
    others_settings_are_taken_over,
    a_project_does_not_loosen_by_an_import,
    silenced_reports_stay_refusals,
    the_agent_is_told_what_has_changed,
    a_denial_becomes_a_rule,
);

const FAILED: i32 = 1;

const SETTINGS: &str = r#"{
  "network": { "allowedDomains": [], "deniedDomains": [] },
  "filesystem": { "denyRead": [], "allowWrite": ["."], "denyWrite": [] }
}
"#;

/// Runs `config edit` with a script as the editor; `$1` is the file.
fn edit(scene: &Scene, script: &str, words: &[&str]) -> Result<Finished> {
    let editor = scene.at("editor");
    scene.write(&editor, &format!("#!/bin/sh\n{script}\n"))?;
    std::fs::set_permissions(&editor, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let words: Vec<&str> = ["config", "edit"].iter().chain(words).copied().collect();
    let mut command = scene.portcullis_command(&words)?;
    Finished::run(command.env("VISUAL", editor).stdin(std::process::Stdio::null()))
}

fn an_edit_is_put_in_place_only_when_it_can_be_used(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let default = sandbox(&scene).join("default.json");
    let told = edit(&scene, "true", &[])?.ended_with(0)?;
    ensure!(told.stderr.contains("nothing was changed") && !default.exists(), "{told:#?}");

    // A file that does not exist yet starts with the built-in defaults.
    let told =
        edit(&scene, "sed -i 's/\"allowedDomains\": \\[\\]/\"allowedDomains\": [\"a.test\"]/' \"$1\"", &[])?;
    told.ended_with(0)?;
    let text = std::fs::read_to_string(&default)?;
    ensure!(text.contains("[\"a.test\"]") && text.contains("/Users"), "{text}");

    let wrong = edit(&scene, "sed -i 's/allowWrite/alowWrite/' \"$1\"", &[])?.ended_with(FAILED)?;
    for part in ["did you mean `allowWrite`?", "default.json:7:"] {
        ensure!(wrong.stdout.contains(part), "no `{part}` in {wrong:#?}");
    }
    ensure!(std::fs::read_to_string(&default)? == text, "it stays as it was");
    let kept = wrong.stderr.split('`').nth(1).context("where the copy is")?;
    ensure!(std::fs::read_to_string(kept)?.contains("alowWrite"), "{kept}");
    edit(&scene, "exit 3", &[])?.ended_with(FAILED)?;

    // The verb can repair a broken file.
    std::fs::write(&default, "{ nonsense")?;
    edit(&scene, &format!("cp '{}' \"$1\"", with(&scene, "good.json", SETTINGS)?), &[])?.ended_with(0)?;
    ensure!(std::fs::read_to_string(&default)? == SETTINGS);

    let projects = format!(
        "echo '{{ \"{}\": '; cat '{}'; echo '}}'",
        scene.project().display(),
        scene.at("good.json").display()
    );
    edit(&scene, &format!("({projects}) > \"$1\""), &["projects"])?.ended_with(0)?;
    let shown = scene.portcullis(&["config", "path"])?.ended_with(0)?;
    ensure!(shown.stdout.ends_with("projects.json\n"), "{shown:#?}");
    edit(&scene, "echo '{ \"relative\": {} }' > \"$1\"", &["projects"])?.ended_with(FAILED)?;

    let left = std::fs::read_dir(scene.home().join(".local/state/portcullis"))?.flatten();
    let copies = left.filter(|entry| entry.file_name().to_string_lossy().starts_with("edit-")).count();
    ensure!(copies == 2, "only what could not be put in place is kept: {copies}");
    Ok(())
}

fn an_edit_of_what_somebody_else_changed_meanwhile_is_kept_beside(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let default = sandbox(&scene).join("default.json");
    scene.write(&default, SETTINGS)?;
    let other = SETTINGS.replace("[]", "[ ]");
    let script = format!(
        "cp '{}' '{}'; sed -i 's/\"denyWrite\": \\[\\]/\"denyWrite\": [\"x\"]/' \"$1\"",
        with(&scene, "other.json", &other)?,
        default.display()
    );
    let told = edit(&scene, &script, &[])?.ended_with(FAILED)?;
    ensure!(told.stderr.contains("your text is in"), "{told:#?}");
    ensure!(std::fs::read_to_string(&default)? == other, "the other's change stays");
    Ok(())
}

/// The directory of a virtual environment is first in PATH, and the agent can write in it.
fn no_editor_of_the_projects_is_started(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let own = scene.project().join(".venv/bin");
    let mark = scene.project().join("was-run");
    for name in ["vi", "myeditor"] {
        scene.write(&own.join(name), &format!("#!/bin/sh\ntouch '{}'\n", mark.display()))?;
        std::fs::set_permissions(own.join(name), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    }
    let path = format!("{}:/usr/bin:/bin", own.display());
    let mut control = scene.user().command("/bin/sh".as_ref());
    scene.enter(&mut control);
    Finished::run(control.args(["-c", "vi"]).env("PATH", &path))?.ended_with(0)?;
    ensure!(mark.exists(), "control: it is found by its name");
    std::fs::remove_file(&mark)?;
    for editor in ["", "myeditor"] {
        let mut command = scene.portcullis_command(&["config", "edit"])?;
        command.env("PATH", &path).env("EDITOR", editor).env("TERM", "dumb");
        // Any other editor that the system has ends at once, because there is no terminal.
        Finished::run(command.stdin(std::process::Stdio::null()))?;
        ensure!(!mark.exists(), "`{editor}` of the project was started");
    }
    Ok(())
}

fn others_settings_are_taken_over(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let default = sandbox(&scene).join("default.json");
    scene.portcullis(&["config", "import", "--from", "srt"])?.ended_with(FAILED)?;
    scene.portcullis(&["config", "import", "--from", "nobody"])?.ended_with(FAILED)?;

    let given = r#"{ "network": { "allowedDomains": ["a.test", "*"], "deniedDomains": [], "filterRequest": { "x": 1 } },
        "filesystem": { "denyRead": ["~/.ssh"], "allowWrite": ["."], "denyWrite": [] }, "speed": 9 }"#;
    scene.write(&scene.home().join(".srt-settings.json"), given)?;
    let dry = scene.portcullis(&["config", "import", "--from", "srt", "--dry-run"])?.ended_with(0)?;
    for part in
        ["would write", "not carried", "network.filterRequest", "speed", "\"*\"", "a.test", "in force"]
    {
        ensure!(dry.stdout.contains(part), "no `{part}` in {dry:#?}");
    }
    ensure!(!default.exists(), "a dry run writes nothing");
    scene.portcullis(&["config", "import", "--from", "srt"])?.ended_with(0)?;
    scene.portcullis(&["config", "validate"])?.ended_with(0)?;
    scene.portcullis(&["check", "connect", "a.test:443"])?.ended_with(0)?;
    let text = std::fs::read_to_string(&default)?;
    // The same import again changes nothing and says so; a different one needs a confirmation.
    let again = scene.portcullis(&["config", "import", "--from", "srt"])?.ended_with(0)?;
    ensure!(again.stdout.contains("nothing changed") && !again.stdout.starts_with("written"), "{again:#?}");
    let team = with(&scene, "project/team.json", &given.replace("a.test", "team.test"))?;
    let refused = scene.portcullis(&["config", "import", "--from", &team])?.ended_with(FAILED)?;
    ensure!(
        refused.stderr.contains("--replace") && std::fs::read_to_string(&default)? == text,
        "{refused:#?}"
    );
    scene.portcullis(&["config", "import", "--from", "./team.json", "--replace"])?.ended_with(0)?;
    scene.portcullis(&["check", "connect", "team.test:443"])?.ended_with(0)?;

    with(
        &scene,
        "project/config.toml",
        "[other]\nx = 1\n[bwrap]\ndeny_read = ['.ssh', '*.pem']\nnetwork = 'open'\nallow_write = ['.']\n",
    )?;
    let named = ["config", "import", "--from", "./config.toml", "--replace", "--json"];
    let told: Value = serde_json::from_str(&scene.portcullis(&named)?.ended_with(0)?.stdout)?;
    ensure!(
        told.pointer("/files/0/settings/filesystem/denyRead") == Some(&json!(["~/.ssh", "**/*.pem"])),
        "{told:#}"
    );
    ensure!(told.pointer("/files/0/notCarried/0/key") == Some(&json!("network")), "{told:#}");

    let project = scene.project().display().to_string();
    with(&scene, "projects.json", &format!("{{ \"{project}\": {given} }}"))?;
    let from = scene.at("projects.json").display().to_string();
    scene.portcullis(&["config", "import", "--from", "oddsjam", &from])?.ended_with(0)?;
    let shown = scene.portcullis(&["config", "path"])?.ended_with(0)?;
    ensure!(shown.stdout.ends_with("projects.json\n"), "{shown:#?}");
    let again = scene.portcullis(&["config", "import", "--from", "oddsjam", &from])?.ended_with(0)?;
    ensure!(again.stdout.contains("nothing changed"), "{again:#?}");
    with(&scene, "projects.json", &format!("{{ \"{project}\": {} }}", given.replace("a.test", "b.test")))?;
    scene.portcullis(&["config", "import", "--from", "oddsjam", &from])?.ended_with(FAILED)?;
    Ok(())
}

fn a_project_does_not_loosen_by_an_import(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let own = "[bwrap]\nallow_read = ['/']\nallow_write = ['/']\ndeny_write = ['*.lock']\n";
    with(&scene, "project/config.toml", own)?;
    let told = scene.portcullis(&["config", "import", "--from", "bosun"])?.ended_with(0)?;
    for part in ["allowRead", "allowWrite", "can only tighten", "portcullis.json"] {
        ensure!(told.stdout.contains(part), "bosun: no `{part}` in {told:#?}");
    }
    ensure!(!sandbox(&scene).join("default.json").exists(), "the project has made settings of the user's");
    scene.portcullis(&["check", "write", "deep/x.lock"])?.ended_with(20)?;
    scene.portcullis(&["check", "write", "deep/x"])?.ended_with(0)?;
    std::fs::remove_file(scene.project().join("config.toml"))?;
    std::os::unix::fs::symlink(
        with(&scene, "secret", "hunter2 hunter2")?,
        scene.project().join("config.toml"),
    )?;
    let refused = scene.portcullis(&["config", "import", "--from", "bosun"])?.ended_with(FAILED)?;
    ensure!(!format!("{refused:?}").contains("hunter2"), "{refused:#?}");

    for (source, file) in [("sysid", "extensions/sandbox.json"), ("pi-sandbox", "sandbox.json")] {
        let scene = Scene::new(user)?;
        let users = r#"{ "network": { "allowedDomains": ["a.test"] } }"#;
        scene.write(&scene.home().join(".pi/agent").join(file), users)?;
        let own = r#"{ "enabled": false, "network": { "allowedDomains": ["evil.test"] },
            "filesystem": { "allowWrite": ["/"], "denyWrite": ["*.lock"] } }"#;
        scene.write(&scene.project().join(".pi/sandbox.json"), own)?;
        let told = scene.portcullis(&["config", "import", "--from", source])?.ended_with(0)?;
        for part in ["evil.test", "can only tighten", "portcullis.json", "default.json"] {
            ensure!(told.stdout.contains(part), "{source}: no `{part}` in {told:#?}");
        }
        scene.portcullis(&["check", "connect", "a.test:443"])?.ended_with(0)?;
        scene.portcullis(&["check", "connect", "evil.test:443"])?.ended_with(10)?;
        scene.portcullis(&["check", "write", "deep/x.lock"])?.ended_with(20)?;
        scene.portcullis(&["check", "write", "deep/.env"])?.ended_with(20)?;
        scene.portcullis(&["check", "write", "deep/x"])?.ended_with(0)?;
        // A link out of the project is not followed: the error message would quote lines of the target.
        let link = scene.project().join(".pi/sandbox.json");
        std::fs::remove_file(&link)?;
        std::os::unix::fs::symlink(with(&scene, "secret", "hunter2")?, &link)?;
        let refused =
            scene.portcullis(&["config", "import", "--from", source, "--dry-run"])?.ended_with(FAILED)?;
        ensure!(!format!("{refused:?}").contains("hunter2"), "{refused:#?}");
    }
    Ok(())
}

fn silenced_reports_stay_refusals(user: User) -> Result<()> {
    const TRY: &str =
        "for host in loud.test quiet.test; do (exec 3<>/dev/tcp/$host/22 && cat <&3) 2>/dev/null; done";
    for (ignored, heard) in [
        ("{}", [true, true]),
        (r#"{ "*": ["quiet.test"] }"#, [true, false]),
        (r#"{ "/dev/tcp": ["quiet.test", "loud.test"] }"#, [false, false]),
        (r#"{ "git push": ["quiet.test"] }"#, [true, true]),
    ] {
        let scene = Scene::new(user)?;
        let settings = SETTINGS.replace("\"deniedDomains\": []", "\"deniedDomains\": [\"*.test\"]");
        let settings = settings.replacen('{', &format!("{{ \"ignoreViolations\": {ignored},"), 1);
        scene.write(&sandbox(&scene).join("default.json"), &settings)?;
        let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
        let (ended, _) = host.run(TRY)?;
        let notes = ended.get("notes").context("notes")?.to_string();
        let found = ["loud.test", "quiet.test"].map(|host| notes.contains(host));
        ensure!(found == heard, "{ignored}: {notes}");
        let log = scene.portcullis(&["audit", "tail"])?.ended_with(0)?;
        for host in ["quiet.test", "loud.test"] {
            let is_denial = |line: &str| line.contains("deny") && line.contains(host);
            ensure!(log.stdout.lines().any(is_denial), "{ignored}: refused in any case: {log:#?}");
        }
    }
    Ok(())
}

fn sandbox(scene: &Scene) -> PathBuf {
    scene.home().join(".pi/agent/sandbox")
}

/// Writes a file beside home and project, and returns its path.
fn with(scene: &Scene, name: &str, text: &str) -> Result<String> {
    let file = scene.at(name);
    scene.write(&file, text)?;
    Ok(file.display().to_string())
}

/// The model is told that a settings file was edited after the session began.
fn the_agent_is_told_what_has_changed(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let brief = |host: &mut Serve| -> Result<String> {
        let status = host.succeed("status", &json!({}))?;
        Ok(status.get("brief").and_then(Value::as_str).context("a brief")?.to_owned())
    };
    let told = brief(&mut host)?;
    ensure!(!told.contains("have changed since this session began"), "nothing has changed: {told}");
    // The model learns its directory, the files there, the permissions, what leads to questions, and what to do after a
    // refusal.
    let project = scene.project().display().to_string();
    let words =
        ["run in a sandbox on", &project, "/tmp", "Commands reach", "after a question", "What is refused"];
    ensure!(words.iter().all(|word| told.contains(word)), "{told}");
    let edited = SETTINGS.replace("\"allowedDomains\": []", "\"allowedDomains\": [\"new.test\"]");
    scene.write(&sandbox(&scene).join("default.json"), &edited)?;
    let told = brief(&mut host)?;
    ensure!(told.contains("have changed since this session began") && told.contains("new.test"), "{told}");
    // Settings that cannot be used change nothing, so the model is not told of them.
    scene.write(&sandbox(&scene).join("default.json"), "{ broken")?;
    ensure!(brief(&mut host)? == told, "{told}");
    Ok(())
}

/// `/sandbox`: a decision is explained, and a denial becomes a rule that takes effect at once.
fn a_denial_becomes_a_rule(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "alpha")?;
    let open = json!({ "callId": "r", "path": notes, "intent": { "kind": "read" } });
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let id = host.request("file/open", &open)?;
    let question = host.question()?;
    host.answer(&question, &json!("refuse"))?;
    ensure!(host.reply(id)?.get("error").is_some());

    let mut press = |event: Value| host.succeed("menu", &json!({ "event": event }));
    let place = |screen: &Value, wanted: &str| -> Result<usize> {
        let items = screen.get("items").and_then(Value::as_array).context("items")?;
        let found = items.iter().position(|item| item.to_string().contains(wanted));
        found.with_context(|| format!("no `{wanted}` in {screen:#}"))
    };
    let overview = press(json!({ "kind": "open" }))?;
    let recent = press(json!({ "kind": "choose", "index": place(&overview, "Recent decisions")? }))?;
    let explained = press(json!({ "kind": "choose", "index": place(&recent, "notes")? }))?;
    for part in ["you said no", "base.outside"] {
        ensure!(explained.to_string().contains(part), "no `{part}` in {explained:#}");
    }
    let rule = place(&explained, "Always in this project: reading")?;
    let done = press(json!({ "kind": "choose", "index": rule }))?;
    ensure!(done.to_string().contains("written: "), "{done:#}");
    let written = std::fs::read_to_string(sandbox(&scene).join("projects.json"))?;
    ensure!(written.contains("outside/notes"), "{written}");
    ensure!(host.call("file/open", &open)?.pointer("/result/handle").is_some(), "it holds at once");
    Ok(())
}
