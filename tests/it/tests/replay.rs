//! Replay of the decisions of a log: policies get the same input as in the session.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    what_was_told_is_told_again,
    what_the_log_lacks_is_told,
    what_was_said_becomes_cases,
    nothing_that_was_compared_is_no_agreement,
);

const LOOSER: i32 = 1;

/// Runs a session in which the user, asked once, allows reading a file until the session ends.
fn session(scene: &Scene) -> Result<PathBuf> {
    let notes = scene.outside().join("notes");
    scene.write(&notes, "alpha")?;
    let mut host = Serve::greeted(scene, &[], Interface::Present)?;
    let open = json!({ "callId": "r", "path": notes, "intent": { "kind": "read" } });
    let id = host.request("file/open", &open)?;
    let question = host.question()?;
    let options = question.pointer("/params/options").and_then(Value::as_array).context("options")?;
    let session = options.iter().position(|option| option.get("key") == Some(&"s".into()));
    host.answer(&question, &json!(session.context("for this session")?))?;
    ensure!(host.reply(id)?.get("result").is_some(), "the user said yes");
    host.succeed("file/open", &open)?;
    host.close()?;
    log_of(scene)
}

/// Returns the only log.
fn log_of(scene: &Scene) -> Result<PathBuf> {
    let logs = scene.logs()?;
    let [log] = logs.as_slice() else { anyhow::bail!("{logs:?}") };
    Ok(log.clone())
}

/// Rewrites each verdict of the log.
fn rewrite(scene: &Scene, log: &Path, change: impl Fn(&mut Value)) -> Result<()> {
    let mut lines = String::new();
    for line in fs::read_to_string(log)?.lines() {
        let mut line: Value = serde_json::from_str(line)?;
        change(&mut line);
        lines += &format!("{line}\n");
    }
    scene.write(log, &lines)
}

fn what_was_told_is_told_again(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let log = session(&scene)?;
    let text = log.to_str().context("a path is text")?;
    // The first decision led to a question and does so again; the grant that the log contains answers the second one.
    let same = scene.portcullis(&["policy", "replay", text, "--forbid-loosening"])?.ended_with(0)?;
    ensure!(same.stdout.contains("answered otherwise: 0 of 2 requests;"), "{same:?}");
    ensure!(same.stderr.is_empty(), "{same:?}");
    // The log contains facts that did not change between the two decisions only once.
    let lines = fs::read_to_string(&log)?;
    ensure!(
        lines.matches("\"facts\":{\"agent\":").count() == 1 && lines.matches("\"facts_at\":1").count() == 2,
        "{lines}"
    );
    // A toolchain at the place that the log names may be read.
    let outside = scene.outside();
    rewrite(&scene, &log, |line| {
        if let Some(toolchains) = line.pointer_mut("/facts/machine/toolchains") {
            *toolchains = json!([outside]);
        }
    })?;
    let other = scene.portcullis(&["policy", "replay", text, "--forbid-loosening"])?.ended_with(LOOSER)?;
    ensure!(other.stdout.contains("answered otherwise: 1 of 2 requests; 1 newly allowed"), "{other:?}");
    Ok(())
}

fn what_the_log_lacks_is_told(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let log = session(&scene)?;
    let text = log.to_str().context("a path is text")?;
    let elsewhere = scene.outside();
    let elsewhere = elsewhere.to_str().context("a path is text")?;
    let other = scene.portcullis(&["policy", "replay", text, "--project", elsewhere])?.ended_with(0)?;
    ensure!(other.stderr.contains("the log is of the project"), "{other:?}");
    // A log without the context of its requests is replayed in the context of the directory, and each difference says
    // so: the other directory is the project there.
    rewrite(&scene, &log, |line| {
        for part in ["facts", "facts_at", "grants", "now"] {
            line.as_object_mut().map(|members| members.remove(part));
        }
    })?;
    let arguments = ["policy", "replay", text, "--project", elsewhere, "--json"];
    let without = scene.portcullis(&arguments)?.ended_with(0)?;
    ensure!(
        without.stderr.contains(
            "in the log without their context, and taken in that of this directory: 2 of 2 decisions"
        ),
        "{without:?}"
    );
    let changes = without.stdout.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    ensure!(!changes.is_empty(), "{without:?}");
    ensure!(changes.iter().all(|change| change.get("lacks") == Some(&"context".into())), "{changes:?}");
    Ok(())
}

/// The verdicts of a policy in a session become its test cases; one request is sent to it by hand, and many random
/// ones.
fn what_was_said_becomes_cases(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        "policies": [{ "use": "workspace" }, { "use": "git-guard", "config": { "rewrite": "deny" } }],
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    for script in ["git status; echo \"it's\"", "git rebase main"] {
        let id = host.begin(script, &json!({ "PATH": "/usr/bin:/bin" }))?;
        host.reply(id)?;
    }
    host.close()?;
    let log = log_of(&scene)?;
    let log = log.to_str().context("a path is text")?;

    let component = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/git-guard/policy.wasm");
    fs::copy(component, scene.project().join("git-guard.wasm"))?;
    let config = r#"{"rewrite":"deny"}"#;
    let arguments = ["policy", "test", "git-guard.wasm", "--from-log", log, "--config", config];
    let cases = scene.portcullis(&arguments)?.ended_with(0)?.stdout;
    ensure!(cases.matches("[[case]]").count() == 2 && cases.contains("expect = \"deny\""), "{cases}");
    scene.write(&scene.project().join("seen.toml"), &cases)?;
    let test = ["policy", "test", "git-guard.wasm", "--cases", "seen.toml"];
    ensure!(scene.portcullis(&test)?.ended_with(0)?.stdout.contains("held: 2 of 2 cases"));
    // The control: a case with another expectation fails.
    scene.write(&scene.project().join("seen.toml"), &cases.replace("\"deny\"", "\"allow\""))?;
    scene.portcullis(&test)?.ended_with(1)?;

    let once = |script: &str, code: i32| -> Result<Value> {
        let words = ["policy", "run", "git-guard.wasm", "--config", config, "--json", "exec", script];
        Ok(serde_json::from_str(&scene.portcullis(&words)?.ended_with(code)?.stdout)?)
    };
    let denied = once("git rebase main", 20)?;
    ensure!(denied.get("verdict") == Some(&"deny".into()) && denied.get("rule").is_some(), "{denied}");
    ensure!(once("git status", 10)?.get("verdict") == Some(&"abstain".into()), "no opinion");
    let explained = scene.portcullis(&["check", "--explain", "exec", "git rebase main"])?.ended_with(20)?;
    for wanted in ["→  git-guard", "workspace  allow"] {
        ensure!(explained.stdout.contains(wanted), "no `{wanted}` in {}", explained.stdout);
    }
    // The verdict that the policy would give without its configuration: a question instead of a denial.
    let observe = ["policy", "observe", "git-guard.wasm", "-n", "1", "--json"];
    let observed: Value = serde_json::from_str(&scene.portcullis(&observe)?.ended_with(0)?.stdout)?;
    ensure!(observed.pointer("/decided/verdict") == Some(&"deny".into()), "{observed}");
    ensure!(observed.pointer("/said/verdict") == Some(&"ask".into()), "{observed}");
    ensure!(observed.get("lacks") == Some(&Value::Null), "the context stands in a line before: {observed}");
    let fuzz = ["policy", "fuzz", "git-guard.wasm", "--runs", "300", "--seed", "7", "--json"];
    let found: Value = serde_json::from_str(&scene.portcullis(&fuzz)?.ended_with(0)?.stdout)?;
    ensure!(found.get("run") == Some(&300.into()), "{found}");
    Ok(())
}

/// A build server that compared no request at all must not report that no verdict is looser.
fn nothing_that_was_compared_is_no_agreement(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let empty = scene.outside().join("empty.jsonl");
    scene.write(&empty, "")?;
    let empty = empty.to_str().context("text")?;
    let bare = portcullis_it::guest("deny-one", user)?;
    let bare = bare.to_str().context("text")?;
    let diff = ["policy", "diff", bare, bare, "--log", empty, "--forbid-loosening"];
    // Rules and random requests are compared without a log.
    let told = scene.portcullis(&diff)?.ended_with(0)?;
    ensure!(told.stdout.contains("0 newly allowed"), "{told:#?}");
    let told = scene.portcullis(&["policy", "replay", empty, "--forbid-loosening"])?.ended_with(1)?;
    ensure!(told.stderr.contains("holds no decision"), "{told:#?}");
    // The control: with one decision both comparisons have a result.
    let log = session(&scene)?;
    let log = log.to_str().context("text")?;
    scene.portcullis(&["policy", "diff", bare, bare, "--log", log, "--forbid-loosening"])?.ended_with(0)?;
    scene.portcullis(&["policy", "replay", log, "--forbid-loosening"])?.ended_with(0)?;
    Ok(())
}
