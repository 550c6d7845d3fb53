//! `portcullis migrate`: the way over from each other sandbox, and back.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::say;
use portcullis_it::{Finished, Launch, PiVersion, Scene, User, script};
use serde_json::{Value, json};

mod bad_input;

as_each_user!(
    nothing_is_found_where_nothing_is,
    the_first_and_its_extension,
    the_second_in_all_its_files,
    the_third_for_its_project,
    the_answers_are_compared_differences_first,
    plain_sandbox_runtime_when_it_is_named,
    a_project_cannot_lead_it_outside,
    changes_of_the_old_file_are_told,
    prompts_that_speak_of_it,
);

on_each_pi!(an_old_extension_is_named_before_pi_stops);

const FAILED: i32 = 1;

/// The settings of the second sandbox, from its documentation.
const SECOND: &str = r#"{
  "enabled": true,
  "network": { "allowedDomains": ["github.com", "*.github.com", "registry.npmjs.org"], "deniedDomains": [] },
  "filesystem": {
    "denyRead": ["~/.ssh", "~/.aws", "~/.gnupg"],
    "allowWrite": [".", "/tmp"],
    "denyWrite": [".env", ".env.*", "*.pem", "*.key"]
  }
}"#;

const THIRD: &str = "[model]\nname = 'x'\n[sandbox]\ndeny_read = ['.ssh', '.env', '*.pem']\n\
                     allow_write = ['workspace', '.pi', '/srv']\ndeny_write = ['config.toml']\n";

fn migrate(scene: &Scene, words: &[&str]) -> Result<Finished> {
    scene.portcullis(&[&["migrate"], words].concat())
}

fn told(scene: &Scene, words: &[&str]) -> Result<Value> {
    let finished = migrate(scene, &[&["--json"], words].concat())?.ended_with(0)?;
    Ok(serde_json::from_str(&finished.stdout)?)
}

/// Installs something with the name of the first sandbox.
fn first_extension(scene: &Scene) -> Result<()> {
    let place = scene.home().join(".pi/agent/extensions/zackify-pi-sandbox");
    scene.write(
        &place.join("package.json"),
        r#"{ "name": "@oddsjam/pi-sandbox", "pi": { "extensions": ["./index.ts"] } }"#,
    )?;
    let flag =
        r#"export default (pi) => pi.registerFlag("no-sandbox", { type: "boolean", description: "x" });"#;
    scene.write(&place.join("index.ts"), flag)
}

/// All files of the home and the project, with their texts, but for what the program itself records.
fn files(scene: &Scene) -> Result<BTreeMap<String, Vec<u8>>> {
    fn walk(directory: &Path, found: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() {
                walk(&path, found)?;
            } else {
                found.insert(path.display().to_string(), fs::read(&path).unwrap_or_default());
            }
        }
        Ok(())
    }
    let mut found = BTreeMap::new();
    walk(&scene.home(), &mut found)?;
    walk(&scene.project(), &mut found)?;
    found.retain(|path, _| !path.contains("/.local/state/") && !path.contains("/.cache/"));
    Ok(found)
}

fn check(scene: &Scene, words: &[&str], code: i32) -> Result<()> {
    scene.portcullis(&[&["check"], words].concat())?.ended_with(code)?;
    Ok(())
}

fn nothing_is_found_where_nothing_is(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("config.toml"), "[server]\nport = 1\n")?;
    let said = migrate(&scene, &[])?.ended_with(0)?;
    ensure!(said.stdout.contains("no other sandbox for pi was found"), "{said:#?}");
    migrate(&scene, &["--apply"])?.ended_with(0)?;
    let undone = migrate(&scene, &["--undo"])?.ended_with(FAILED)?;
    ensure!(undone.stderr.contains("nothing to take back"), "{undone:#?}");
    migrate(&scene, &["--from", "nobody"])?.ended_with(FAILED)?;
    // Our own settings are no other sandbox.
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), r#"{ "filesystem": {} }"#)?;
    let said = migrate(&scene, &[])?.ended_with(0)?;
    ensure!(said.stdout.contains("no other sandbox for pi was found"), "{said:#?}");
    Ok(())
}

fn the_first_and_its_extension(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    first_extension(&scene)?;
    let project = scene.project().display().to_string();
    let sandbox = scene.home().join(".pi/agent/sandbox");
    let lists = json!({ "enabled": true, "network": { "allowedDomains": ["x.com"], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/Users", "/home"], "allowRead": [".", "~/.pi"], "allowWrite": ["."], "denyWrite": [] } });
    scene.write(&sandbox.join("default.json"), &lists.to_string())?;
    let doctor = scene.portcullis(&["doctor"])?;
    ensure!(doctor.stdout.contains("@oddsjam/pi-sandbox") && doctor.stdout.contains("rm -r "), "{doctor:#?}");
    let mut odd = lists.clone();
    odd.as_object_mut().context("an object")?.insert("speed".to_owned(), json!(9));
    scene.write(&sandbox.join("projects.json"), &json!({ &project: odd }).to_string())?;
    let before = files(&scene)?;

    let said = migrate(&scene, &[])?.ended_with(0)?;
    for part in [
        "@oddsjam/pi-sandbox",
        "default.json",
        "used as it is",
        "projects.json",
        "speed",
        "install",
        "--apply",
    ] {
        ensure!(said.stdout.contains(part), "no `{part}` in {said:#?}");
    }
    ensure!(files(&scene)? == before, "without --apply nothing is changed");
    // The home by another spelling is the same home.
    let mut spelled = scene.portcullis_command(&["migrate"])?;
    let spelled = Finished::run(spelled.env("HOME", scene.project().join("..").join("home").join(".")))?;
    ensure!(spelled.stdout == said.stdout, "{spelled:#?}");

    migrate(&scene, &["--apply"])?.ended_with(0)?;
    let extensions = scene.home().join(".pi/agent/extensions");
    ensure!(!extensions.join("zackify-pi-sandbox").exists() && extensions.join("portcullis").is_dir());
    let copy = sandbox.join("projects.json.before-portcullis");
    ensure!(before.get(&sandbox.join("projects.json").display().to_string()) == Some(&fs::read(copy)?));
    scene.portcullis(&["config", "validate"])?.ended_with(0)?;
    check(&scene, &["connect", "x.com:443"], 0)?;
    let again = migrate(&scene, &[])?.ended_with(0)?;
    ensure!(again.stdout.contains("no other sandbox for pi was found"), "{again:#?}");
    let doctor = scene.portcullis(&["doctor"])?;
    ensure!(!doctor.stdout.contains("@oddsjam"), "{doctor:#?}");

    migrate(&scene, &["--undo"])?.ended_with(0)?;
    ensure!(files(&scene)? == before, "{:#?}", files(&scene)?.keys());
    Ok(())
}

fn the_second_in_all_its_files(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let agent = scene.home().join(".pi/agent");
    scene.write(&agent.join("extensions/sandbox.json"), SECOND)?;
    scene.write(
        &scene.project().join(".pi/sandbox.json"),
        r#"{ "enabled": false,
        "network": { "deniedDomains": ["evil.test"] }, "filesystem": { "denyWrite": ["*.lock"] } }"#,
    )?;
    let packages =
        r#"{ "theme": "dark", "packages": ["npm:other", "npm:@sysid/pi-sandbox-extended@1.0.6"] }"#;
    scene.write(&agent.join("settings.json"), packages)?;
    let before = files(&scene)?;
    let planned = told(&scene, &[])?;
    ensure!(planned.pointer("/sandboxes/0/sandbox") == Some(&json!("sysid")), "{planned:#}");
    let remove = planned.pointer("/sandboxes/0/extensions/0/remove");
    ensure!(remove == Some(&json!("pi remove npm:@sysid/pi-sandbox-extended@1.0.6")), "{planned:#}");
    ensure!(files(&scene)? == before);

    migrate(&scene, &["--apply"])?.ended_with(0)?;
    let settings: Value = serde_json::from_slice(&fs::read(agent.join("settings.json"))?)?;
    ensure!(settings == json!({ "theme": "dark", "packages": ["npm:other"] }), "{settings}");
    ensure!(fs::read_to_string(agent.join("settings.json.before-portcullis"))? == packages);
    for (words, code) in [
        (&["connect", "github.com:443"][..], 0),
        (&["connect", "evil.test:443"], 20),
        (&["write", "src/main.ts"], 0),
        (&["write", ".env.local"], 20),
        (&["write", "a/cert.pem"], 20),
        (&["write", "a/x.lock"], 20),
        (&["read", "~/.ssh/id_rsa"], 20),
        (&["read", "/etc/passwd"], 0),
        (&["write", "/etc/passwd"], 10),
    ] {
        check(&scene, words, code)?;
    }
    let shown = scene.portcullis(&["config", "show"])?.ended_with(0)?;
    ensure!(
        !shown.stdout.contains("has no effect here") && !shown.stdout.contains("have no effect here"),
        "{shown:#?}"
    );
    migrate(&scene, &["--undo"])?.ended_with(0)?;
    ensure!(files(&scene)? == before);
    Ok(())
}

fn the_third_for_its_project(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("config.toml"), THIRD)?;
    let said = migrate(&scene, &["--apply"])?.ended_with(0)?;
    for part in ["\"/srv\"", "outside of the project", "connect", "unlistedHosts"] {
        ensure!(said.stdout.contains(part), "no `{part}` in {said:#?}");
    }
    for (words, code) in [
        (&["write", "workspace/a"][..], 0),
        (&["write", "src/a"], 20),
        (&["read", "src/a"], 0),
        (&["read", ".env"], 20),
        (&["read", "deep/a.pem"], 20),
        (&["write", "config.toml"], 20),
    ] {
        check(&scene, words, code)?;
    }
    let mut elsewhere = scene.portcullis_command(&["check", "write", "x"])?;
    Finished::run(elsewhere.current_dir(scene.outside()))?.ended_with(0)?;
    migrate(&scene, &["--undo"])?.ended_with(0)?;
    check(&scene, &["write", "src/a"], 0)
}

fn the_answers_are_compared_differences_first(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let silenced = SECOND.replacen(
        "\"enabled\": true,",
        "\"enabled\": true, \"ignoreViolations\": { \"npm run build\": [\"/x\"] },",
        1,
    );
    scene.write(&scene.home().join(".pi/agent/extensions/sandbox.json"), &silenced)?;
    scene.write(&scene.home().join(".ssh/id"), "KEY")?;
    let compared = told(&scene, &[])?;
    let answers = compared.pointer("/comparison/0/answers").and_then(Value::as_array).context("answers")?;
    let is_same = |answer: &Value| answer.get("same") == Some(&json!(true));
    let first_same = answers.iter().position(is_same).context("some are the same")?;
    ensure!(answers.iter().skip(first_same).all(is_same), "{answers:#?}");
    for what in
        ["github.com:443", "example.github.com:443", "unlisted.example:443", ".env", "example.pem", ".ssh"]
    {
        let named = |answer: &&Value| {
            answer.get("what").and_then(Value::as_str).is_some_and(|told| told.ends_with(what))
        };
        let answer = answers.iter().find(named).with_context(|| format!("no {what} in {answers:#?}"))?;
        ensure!(answer.get("rule").is_some_and(|rule| rule != ""), "{answer}");
    }
    // What is compared is what holds: each new answer is that of `check` once it is done.
    migrate(&scene, &["--apply"])?.ended_with(0)?;
    for answer in answers {
        let text = |key: &str| answer.get(key).and_then(Value::as_str).unwrap_or_default();
        let code = match text("now") {
            "allow" => 0,
            "ask" => 10,
            _ => 20,
        };
        match text("action").strip_prefix("command ") {
            None => {
                check(&scene, &[text("action"), text("what")], code).with_context(|| answer.to_string())?
            }
            Some(verb) => {
                by_command(&scene, (verb, text("what")), code == 0).with_context(|| answer.to_string())?
            }
        }
    }
    for (action, what) in [
        ("exec", "npm run build"),
        ("exec", "echo hello"),
        ("command reads", ".ssh"),
        ("command writes", ".env"),
    ] {
        let named = |answer: &&Value| {
            answer.get("action") == Some(&json!(action))
                && answer.get("what").and_then(Value::as_str).is_some_and(|told| told.ends_with(what))
        };
        ensure!(answers.iter().any(|answer| named(&answer)), "no {action} {what} in {answers:#?}");
    }
    Ok(())
}

/// Compares an answer about commands with a command.
fn by_command(scene: &Scene, (verb, path): (&str, &str), is_allowed: bool) -> Result<()> {
    let script = match verb {
        "reads" => {
            format!("test -e '{path}' || exit 7; if [ -d '{path}' ]; then ls '{path}'; else cat '{path}'; fi")
        }
        _ => format!("if [ -d '{path}' ]; then : > '{path}/made'; else : >> '{path}'; fi"),
    };
    let told = scene.portcullis(&["run", "--ask", "deny", "--", "bash", "-c", &script])?;
    // A file that is not there is neither read nor hidden.
    let is_missing = verb == "reads" && is_allowed && told.code() == 7;
    ensure!(is_missing || (told.code() == 0) == is_allowed, "{verb} {path}: {told:#?}");
    Ok(())
}

fn plain_sandbox_runtime_when_it_is_named(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let given = r#"{ "network": { "allowedDomains": ["a.test"], "deniedDomains": [], "tlsTerminate": {} },
        "filesystem": { "denyRead": ["~/.ssh"], "allowWrite": ["."], "denyWrite": [] }, "ripgrep": { "command": "rg" } }"#;
    scene.write(&scene.home().join(".srt-settings.json"), given)?;
    ensure!(migrate(&scene, &[])?.ended_with(0)?.stdout.contains("no other sandbox"), "it is none of pi");
    migrate(&scene, &["--from", "srt", "--apply"])?.ended_with(0)?;
    check(&scene, &["connect", "a.test:443"], 0)?;
    ensure!(fs::read_to_string(scene.home().join(".srt-settings.json"))? == given, "the old file stays");
    Ok(())
}

/// A project's file that is a link is not followed out of the project, and its settings never become the user's.
fn a_project_cannot_lead_it_outside(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.at("secret"), "hunter2 hunter2")?;
    fs::create_dir(scene.project().join(".pi"))?;
    scene.user().own(&scene.project().join(".pi"))?;
    symlink(scene.at("secret"), scene.project().join(".pi/sandbox.json"))?;
    let said = migrate(&scene, &["--apply"])?;
    ensure!(!format!("{said:?}").contains("hunter2") && said.code() == FAILED, "{said:#?}");
    fs::remove_file(scene.project().join(".pi/sandbox.json"))?;
    let loose =
        r#"{ "network": { "allowedDomains": ["evil.test"] }, "filesystem": { "allowWrite": ["/"] } }"#;
    scene.write(&scene.project().join(".pi/sandbox.json"), loose)?;
    migrate(&scene, &["--from", "sysid", "--apply"])?.ended_with(0)?;
    check(&scene, &["connect", "evil.test:443"], 10)?;
    check(&scene, &["write", "/etc/passwd"], 10)
}

fn changes_of_the_old_file_are_told(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let file = scene.project().join("config.toml");
    scene.write(&file, THIRD)?;
    migrate(&scene, &["--apply"])?.ended_with(0)?;
    let shown =
        |scene: &Scene| Ok::<_, anyhow::Error>(scene.portcullis(&["config", "show"])?.ended_with(0)?.stdout);
    ensure!(!shown(&scene)?.contains("it has changed since"));
    scene.write(&file, &THIRD.replace("'.env',", "'.env', '*.key',"))?;
    let told = shown(&scene)?;
    for part in ["it has changed since", "`deny_read` gained `*.key`", "migrate --from bosun"] {
        ensure!(told.contains(part), "no `{part}` in {told}");
    }
    let doctor = scene.portcullis(&["doctor"])?;
    ensure!(doctor.stdout.contains("`deny_read` gained `*.key`"), "{doctor:#?}");
    migrate(&scene, &["--from", "bosun", "--apply", "--replace"])?.ended_with(0)?;
    ensure!(!shown(&scene)?.contains("it has changed since"));
    check(&scene, &["read", "a.key"], 20)?;
    // It may be removed.
    fs::remove_file(&file)?;
    ensure!(!shown(&scene)?.contains("it has changed since"));
    Ok(())
}

fn prompts_that_speak_of_it(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.home().join(".pi/agent/extensions/sandbox.json"), SECOND)?;
    let prompt = scene.home().join(".pi/agent/prompts/start.md");
    scene.write(&prompt, "Begin.\nAsk the user for /sandbox-configure.\n")?;
    let said = migrate(&scene, &["--apply"])?.ended_with(0)?;
    ensure!(said.stdout.contains("start.md:2") && said.stdout.contains("/sandbox-configure"), "{said:#?}");
    ensure!(fs::read_to_string(&prompt)?.contains("/sandbox-configure"), "texts are left to the user");
    Ok(())
}

fn an_old_extension_is_named_before_pi_stops(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    first_extension(&scene)?;
    scene.install_pi(version)?;
    let launch = Launch::guarded(&scene, version, &script([say("done")]))?;
    let stopped = launch.print("go")?;
    ensure!(
        stopped.stderr.contains("`rm -r ") && stopped.stderr.contains("zackify-pi-sandbox"),
        "{stopped:#?}"
    );
    migrate(&scene, &["--apply"])?.ended_with(0)?;
    let launch = Launch::guarded(&scene, version, &script([say("done")]))?;
    let done = launch.print("go")?.ended_unattended()?;
    ensure!(!done.stderr.contains("zackify"), "{done:#?}");
    Ok(())
}
