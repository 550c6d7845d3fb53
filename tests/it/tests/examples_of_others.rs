//! The examples in the documentation of other sandboxes, as they stand: settings, rules with their answers, and lists.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{call, calls, expecting, say};
use portcullis_it::{Finished, Interface, Launch, PiVersion, Scene, Serve, User, script};
use serde_json::{Map, Value, json};

as_each_user!(
    the_first_by_its_own_words,
    the_second_by_its_own_example,
    the_third_by_its_own_file,
    the_scopes_of_the_first,
    the_targets_of_the_second,
);

const ALLOW: i32 = 0;
const ASK: i32 = 10;
const DENY: i32 = 20;

/// "Default policy" of @oddsjam/pi-sandbox.
const FIRST: &str = r#"{
  "enabled": true,
  "network": { "allowedDomains": [], "deniedDomains": [] },
  "filesystem": {
    "denyRead":  ["/Users", "/home"],
    "allowRead": [".", "~/.pi"],
    "allowWrite": ["."],
    "denyWrite": []
  }
}"#;

/// "Example .pi/sandbox.json" of @sysid/pi-sandbox.
const SECOND: &str = r#"{
  "enabled": true,
  "network": {
    "allowedDomains": ["github.com", "*.github.com", "registry.npmjs.org"],
    "deniedDomains": []
  },
  "filesystem": {
    "denyRead": ["~/.ssh", "~/.aws", "~/.gnupg"],
    "allowWrite": [".", "/tmp"],
    "denyWrite": [".env", ".env.*", "*.pem", "*.key"]
  }
}"#;

/// A `config.toml` with the lists that the page on Bubblewrap names, beside other tables.
const THIRD: &str = "[model]\nname = \"x\"\n\n[agents.reviewer]\nskills = [\"review\"]\n\n[sandbox]\n\
    deny_read = [\".ssh\", \".aws\", \".gnupg\", \".env\", \"*.pem\", \"*.key\"]\n\
    allow_write = [\"./workspace\", \"./.pi\"]\ndeny_write = [\"config.toml\"]\n";

fn answers(scene: &Scene, cases: &[(&str, &str, i32)]) -> Result<()> {
    for (action, what, code) in cases {
        let told = scene.portcullis(&["check", action, what])?;
        ensure!(told.code() == *code, "{action} {what} is no {code}: {told:#?}");
    }
    Ok(())
}

fn the_first_by_its_own_words(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let sandbox = scene.home().join(".pi/agent/sandbox");
    scene.write(&sandbox.join("default.json"), FIRST)?;
    scene.write(&scene.home().join(".pi/agent/skills/a.md"), "SKILL")?;
    scene.write(&scene.home().join(".pi/agent/auth.json"), "TOKEN")?;
    scene.portcullis(&["config", "validate"])?.ended_with(0)?;
    let outside = scene.outside().join("x").display().to_string();
    answers(
        &scene,
        &[
            ("read", "src/main.ts", ALLOW),
            ("write", "src/main.ts", ALLOW),
            ("read", "~/.pi/agent/skills/a.md", ALLOW),
            ("read", "~/.pi/agent/auth.json", DENY),
            ("write", "~/.pi/agent/auth.json", DENY),
            ("read", &outside, ASK),
            ("write", &outside, ASK),
            ("write", "~/.bashrc", DENY),
            ("connect", "x.com:443", ASK),
        ],
    )?;
    let read = scene.portcullis(&["run", "--", "cat", "/etc/passwd"])?.ended_with(0)?;
    ensure!(read.stdout.contains("root:"), "system paths stay readable: {read:#?}");
    let auth = scene.home().join(".pi/agent/auth.json").display().to_string();
    let stolen = scene.portcullis(&["run", "--", "cat", &auth])?;
    ensure!(!stolen.stdout.contains("TOKEN"), "{stolen:#?}");
    // "The stored shape is exactly SandboxRuntimeConfig, plus `enabled`": an entry for a project has the same.
    let mut entry: Map<String, Value> = serde_json::from_str(FIRST)?;
    let files = entry.get_mut("filesystem").and_then(Value::as_object_mut).context("a table of files")?;
    files.insert("denyWrite".to_owned(), json!(["vendor"]));
    for (name, value) in [
        ("network", json!({ "allowedDomains": ["x.com", "*.good.test"], "deniedDomains": ["evil.test"] })),
        ("allowPty", json!(true)),
        ("ripgrep", json!({ "command": "rg", "args": [] })),
        ("mandatoryDenySearchDepth", json!(3)),
    ] {
        entry.insert(name.to_owned(), value);
    }
    let project = scene.project().display().to_string();
    scene.write(&sandbox.join("projects.json"), &json!({ project: entry }).to_string())?;
    answers(
        &scene,
        &[
            ("connect", "x.com:443", ALLOW),
            ("connect", "a.good.test:443", ALLOW),
            ("connect", "evil.test:443", DENY),
            ("write", "vendor/a", DENY),
        ],
    )
}

fn the_second_by_its_own_example(user: User) -> Result<()> {
    let rules: [(&str, &str, i32); 11] = [
        // "Enforcement Rules", in their order.
        ("read", "~/.ssh/id_rsa", DENY),
        ("write", ".env.local", DENY),
        ("write", "src/main.ts", ALLOW),
        ("write", "/etc/passwd", ASK),
        // "Literal", "suffix glob", "prefix glob".
        ("write", ".env", DENY),
        ("write", "deep/server.pem", DENY),
        ("write", "deep/.env.production", DENY),
        ("write", "environment", ALLOW),
        // "Domains the agent can reach. Supports * wildcards."
        ("connect", "github.com:443", ALLOW),
        ("connect", "api.github.com:443", ALLOW),
        ("connect", "gitlab.com:443", ASK),
    ];
    // As layers, where the files are, and taken over.
    for takes_over in [false, true] {
        let scene = Scene::new(user)?;
        scene.write(&scene.home().join(".pi/agent/extensions/sandbox.json"), SECOND)?;
        if takes_over {
            scene.portcullis(&["config", "import", "--from", "sysid"])?.ended_with(0)?;
        } else {
            scene
                .write(&scene.home().join(".pi/agent/sandbox/default.json"), r#"{ "layout": "layered" }"#)?;
        }
        answers(&scene, &rules).with_context(|| format!("taken over: {takes_over}"))?;
        // The example as the project's own file adds its denials, and opens nothing.
        scene.write(&scene.project().join(".pi/sandbox.json"), SECOND)?;
        if takes_over {
            scene.portcullis(&["config", "import", "--from", "sysid", "--replace"])?.ended_with(0)?;
        }
        answers(&scene, &rules)
            .with_context(|| format!("with the project's file, taken over: {takes_over}"))?;
    }
    Ok(())
}

fn the_third_by_its_own_file(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let file = scene.project().join("config.toml");
    scene.write(&file, THIRD)?;
    scene.write(&scene.project().join(".env"), "SECRET")?;
    let settings = json!({ "filesystem": { "allowRead": ["."], "allowWrite": ["."] },
        "policies": [{ "use": "workspace" }, { "use": "bosun", "configFile": file }] });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let rules: [(&str, &str, i32); 7] = [
        ("read", "src/a", ALLOW),
        ("read", ".env", DENY),
        ("read", "deep/a.key", DENY),
        ("write", "workspace/a", ALLOW),
        ("write", "src/a", DENY),
        ("read", "config.toml", ALLOW),
        ("write", "config.toml", DENY),
    ];
    answers(&scene, &rules)?;
    let script = "cat config.toml > /dev/null && echo read; echo x >> config.toml; cat .env; mkdir -p workspace; \
                  echo made > workspace/a; cat workspace/a";
    let told = scene.portcullis(&["run", "--ask", "deny", "--", "bash", "-c", script])?;
    ensure!(told.stdout.contains("read\n") && !told.stdout.contains("SECRET"), "{told:#?}");
    ensure!(fs::read_to_string(&file)? == THIRD, "{told:#?}");
    // A mistake in its own table is told; the others are no business of the policy.
    scene.write(&file, &THIRD.replace("deny_read", "deny_raed"))?;
    let told = scene.portcullis(&["check", "read", "src/a"])?;
    ensure!(told.code() == 1 && told.stderr.contains("deny_raed"), "{told:#?}");
    Ok(())
}

/// "Scope options below the toggle: edit project config, create new project config (when in a subfolder of an existing
/// key), edit default config."
fn the_scopes_of_the_first(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let projects = scene.home().join(".pi/agent/sandbox/projects.json");
    let project = scene.project().display().to_string();
    let above = scene.project().parent().context("a scene")?.display().to_string();
    let create = format!("Create new project config ({project})");
    for (key, has_edit, has_create) in
        [(None, false, true), (Some(&project), true, false), (Some(&above), true, true)]
    {
        let entry: Value = serde_json::from_str(FIRST)?;
        let entries = key.map_or_else(|| json!({}), |key| json!({ key.as_str(): entry }));
        scene.write(&projects, &entries.to_string())?;
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        let screen = host.succeed("menu", &json!({ "event": { "kind": "open" } }))?;
        let items = screen.get("items").and_then(Value::as_array).context("items")?;
        let labels: Vec<&str> = items.iter().filter_map(|item| item.get("label")?.as_str()).collect();
        ensure!(labels.first() == Some(&"Disable sandbox"), "{key:?}: {labels:?}");
        ensure!(
            labels.iter().any(|label| label.starts_with("Edit project config")) == has_edit,
            "{key:?}: {labels:?}"
        );
        ensure!(labels.contains(&create.as_str()) == has_create, "{key:?}: {labels:?}");
        ensure!(labels.contains(&"Edit default config"), "{key:?}: {labels:?}");
    }
    Ok(())
}

/// "make use-sysid-sandbox" and "make use-official-sandbox" choose the build that pi uses. Here another build is
/// started by its path, and installed by its own verb.
fn the_targets_of_the_second(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let usual = portcullis_it::portcullis(user)?;
    let other = scene.at("other-build/portcullis");
    scene.write(&other, "")?;
    fs::copy(&usual, &other)?;
    let run = |program: &std::path::Path, words: &[&str]| {
        let mut command = scene.user().command(program);
        scene.enter(&mut command);
        Finished::run(command.args(words))?.ended_with(0)
    };
    // `/path/to/portcullis pi`: the other build starts pi, and decides about its tools.
    scene.write(&scene.project().join("notes"), "PROJECT TEXT")?;
    let read = calls([call("read", &json!({ "path": "notes" }))]);
    let script = script([read, expecting("PROJECT TEXT", say("read it"))]);
    let launch = Launch::plain(&scene, PiVersion::V1_5, &script)?;
    let told = launch.through([other.clone().into_os_string(), "pi".into()]).print("go")?.ended_with(0)?;
    ensure!(told.stdout.contains("read it"), "{told:#?}");
    let log = scene.portcullis(&["audit", "tail"])?.ended_with(0)?;
    ensure!(log.stdout.contains("notes"), "the read was decided: {log:#?}");
    let place = run(&usual, &["pi-extension", "path"])?.stdout.trim().to_owned();
    // The extension starts the build that installed it.
    let installed = || -> Result<bool> {
        let files = fs::read_dir(&place)?.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
        Ok(files.into_iter().any(|text| text.contains(&other.display().to_string())) || kept(&scene, &other)?)
    };
    run(&other, &["pi-extension", "install"])?;
    ensure!(installed()?, "use-sysid-sandbox");
    run(&usual, &["pi-extension", "install"])?;
    ensure!(!installed()?, "use-official-sandbox");
    let version = run(&other, &["version"])?;
    ensure!(version.stdout.contains("portcullis"), "{version:#?}");
    // `doctor` says in its exit status whether this machine gives everything.
    let mut doctor = scene.user().command(&other);
    scene.enter(&mut doctor);
    let doctor = Finished::run(doctor.arg("doctor"))?;
    ensure!(doctor.stdout.contains("tier"), "{doctor:#?}");
    Ok(())
}

/// Returns true if the state directory names this program as the host of the extension.
fn kept(scene: &Scene, program: &std::path::Path) -> Result<bool> {
    let state = scene.home().join(".local/state/portcullis");
    let Ok(entries) = fs::read_dir(state) else { return Ok(false) };
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    Ok(texts.into_iter().any(|text| text.contains(&program.display().to_string())))
}
