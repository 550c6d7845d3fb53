//! Files that an older version wrote into a user's directories: settings, answers, a lock and a log.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Scene, User};
use serde_json::{Value, json};

as_each_user!(settings_and_answers_count_as_before, a_lock_is_read_and_written, a_log_is_read_and_intact);

const ALLOW: i32 = 0;
const ASK: i32 = 10;
const DENY: i32 = 20;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/files").join(name)
}

/// Writes an old file into the scene, with the names of this machine in it.
fn place(scene: &Scene, name: &str, at: &Path, more: &[(&str, &str)]) -> Result<String> {
    let mut text = std::fs::read_to_string(golden(name)).with_context(|| format!("reading `{name}`"))?;
    let (home, project) = (scene.home().display().to_string(), scene.project().display().to_string());
    for (mark, value) in [("@HOME@", home.as_str()), ("@PROJECT@", &project)].iter().chain(more) {
        text = text.replace(mark, value);
    }
    scene.write(at, &text)?;
    Ok(text)
}

fn sandbox(scene: &Scene) -> PathBuf {
    scene.home().join(".pi/agent/sandbox")
}

fn settings_and_answers_count_as_before(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    for name in ["default.json", "projects.json"] {
        place(&scene, name, &sandbox(&scene).join(name), &[])?;
    }
    for name in ["notes.txt", "drafts/one", "books/one", "other"] {
        scene.write(&scene.home().join(name), "x")?;
    }
    scene.portcullis(&["config", "validate"])?.ended_with(0)?;
    let at = |name: &str| scene.home().join(name).display().to_string();
    let (notes, draft, book, other) = (at("notes.txt"), at("drafts/one"), at("books/one"), at("other"));
    let checks: [(&[&str], i32); 13] = [
        (&["connect", "github.com:443"], ALLOW),
        (&["connect", "static.crates.io:443"], ALLOW),
        (&["connect", "github.com:22"], DENY),
        (&["connect", "gone.test:443"], ASK),
        (&["read", &book], ALLOW),
        (&["read", &notes], ALLOW),
        (&["write", &notes], ASK),
        (&["write", &draft], ALLOW),
        (&["read", &other], ASK),
        (&["write", ".env"], DENY),
        (&["write", "[draft].md"], DENY),
        (&["tool", "mcp__shop__deploy", "{}"], ALLOW),
        (&["tool", "mcp__shop__other", "{}"], ASK),
    ];
    for (words, expected) in checks {
        let judged = scene.portcullis(&[&["check"], words].concat())?;
        ensure!(judged.code() == expected, "{words:?}: {judged:#?}");
    }
    // Each answer has an id, by which it can be taken back; the others stay.
    let listed = || -> Result<Vec<Value>> {
        let listed = scene.portcullis(&["grants", "list", "--json"])?.ended_with(0)?;
        let listed: Value = serde_json::from_str(&listed.stdout)?;
        Ok(listed.get("kept").and_then(Value::as_array).cloned().unwrap_or_default())
    };
    let before = listed()?;
    let notes_id = before.iter().find(|grant| grant.to_string().contains("notes.txt"));
    let notes_id = notes_id.and_then(|grant| grant.get("id")?.as_str()).context("an id")?.to_owned();
    scene.portcullis(&["grants", "revoke", &notes_id])?.ended_with(0)?;
    ensure!(listed()?.len() + 1 == before.len(), "{before:#?}");
    ensure!(scene.portcullis(&["check", "read", &notes])?.code() == ASK);
    ensure!(scene.portcullis(&["check", "write", &draft])?.code() == ALLOW);
    // A new answer goes into the same files.
    scene.portcullis(&["allow", &other])?.ended_with(0)?;
    ensure!(scene.portcullis(&["check", "read", &other])?.code() == ALLOW);
    Ok(())
}

fn a_lock_is_read_and_written(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let lock = sandbox(&scene).join("policy.lock");
    let digest = format!("sha256:{}", "0".repeat(64));
    let marks = [("sha256:@DIGEST@", digest.as_str()), ("@SIZE@", "1024")];
    let text = place(&scene, "policy.lock", &lock, &marks)?;
    let listed = scene.portcullis(&["policy", "list", "--json"])?.ended_with(0)?;
    let listed: Value = serde_json::from_str(&listed.stdout)?;
    let pack = listed.pointer("/policies/0").context("a pack")?;
    for (name, expected) in [
        ("id", json!("acme:no-push")),
        ("version", json!("1.2.0")),
        ("digest", json!(digest)),
        ("size", json!(1024)),
    ] {
        ensure!(pack.get(name) == Some(&expected), "{name}: {pack:#}");
    }
    ensure!(std::fs::read_to_string(&lock)? == text, "a look changes nothing");
    // After a change the lock still lists the earlier version and the removed pack.
    scene.portcullis(&["policy", "remove", "acme:no-push"])?.ended_with(0)?;
    let written = std::fs::read_to_string(&lock)?;
    ensure!(written.contains("acme:old") && written.contains("0.9.1"), "{written}");
    ensure!(!written.contains("[[policy]]") && written.contains("acme:no-push"), "{written}");
    Ok(())
}

fn a_log_is_read_and_intact(user: User) -> Result<()> {
    const LOG: &str = "0123456789abcdef.jsonl";
    let scene = Scene::new(user)?;
    let file = scene.home().join(".local/state/portcullis/audit").join(LOG);
    let text = place(&scene, LOG, &file, &[])?;
    scene.portcullis(&["audit", "verify"])?.ended_with(0)?;
    let told = scene.portcullis(&["audit", "tail"])?.ended_with(0)?;
    ensure!(told.stdout.lines().count() == 4 && told.stdout.contains("make test"), "{told:#?}");
    let denied = scene.portcullis(&["audit", "tail", "--denied"])?.ended_with(0)?;
    ensure!(denied.stdout.contains("notes.txt") && denied.stdout.contains("example.com"), "{denied:#?}");
    let explained = scene.portcullis(&["explain", "01234567:3"])?.ended_with(0)?;
    for part in ["deny", "read /home/ann/notes.txt", "base.outside", "portcullis allow /home/ann/notes.txt"] {
        ensure!(explained.stdout.contains(part), "no `{part}` in {explained:#?}");
    }
    let explained = scene.portcullis(&["explain", "01234567:4"])?.ended_with(0)?;
    ensure!(explained.stdout.contains("portcullis allow example.com:443"), "{explained:#?}");
    let stats = scene.portcullis(&["audit", "stats", "--json"])?.ended_with(0)?;
    let stats: Value = serde_json::from_str(&stats.stdout)?;
    ensure!(stats.pointer("/effects/deny") == Some(&json!(2)), "{stats:#}");
    // The control: a changed line is found.
    scene.write(&file, &text.replace("make test", "make tset"))?;
    scene.portcullis(&["audit", "verify"])?.ended_with(1)?;
    // And a new session writes a log of its own beside it.
    scene.write(&file, &text)?;
    scene.portcullis(&["run", "--", "true"])?.ended_with(0)?;
    scene.portcullis(&["audit", "verify"])?.ended_with(0)?;
    Ok(())
}
