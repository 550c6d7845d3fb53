//! What the review of a branch sees, and the final question of `portcullis pi --branch`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Scene, Terminal, User, guest};
use serde_json::json;

use crate::branches::{branch, review, run};

as_each_user!(
    a_long_file_is_not_judged_as_an_empty_one,
    secrets_are_found_in_long_and_binary_files,
    the_final_question_commits_what_it_has_shown,
    the_final_question_commits_nothing_that_came_later,
    the_final_question_says_what_a_policy_asks,
);

/// Git runs what the last lines say, however many lines come before.
fn a_long_file_is_not_judged_as_an_empty_one(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let git = scene.project().join(".git");
    for name in ["HEAD", "config", "objects/x", "refs/x"] {
        scene.write(&git.join(name), "")?;
    }
    scene.write(&git.join("HEAD"), "ref: refs/heads/main\n")?;
    let script = "cd .git && yes '# filler' | head -c 1200000 > config && \
                  printf '\\n[core]\\n\\tfsmonitor = ./evil\\n' >> config; echo x > ../plain";
    run(&scene, "one", script)?.ended_with(0)?;
    let all = branch(&scene, &["commit", "one", "--all", "--yes"])?.ended_with(1)?;
    ensure!(scene.project().join("plain").exists(), "control: {all:?}");
    let config = fs::read_to_string(git.join("config"))?;
    ensure!(config.is_empty(), "{} bytes were committed: {all:?}", config.len());
    // A short and harmless one is no question.
    run(&scene, "two", "printf '[user]\\n\\tname = n\\n' > .git/config")?.ended_with(0)?;
    branch(&scene, &["commit", "two", "--all", "--yes"])?.ended_with(0)?;
    ensure!(fs::read_to_string(git.join("config"))?.contains("name = n"), "control");
    Ok(())
}

fn secrets_are_found_in_long_and_binary_files(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let script = format!(
        "yes filler | head -c 3000000 > long; echo 'token = \"{token}\"' >> long; \
         printf 'a\\000\\377\\n' > binary; echo 'token = \"{token}\"' >> binary; \
         head -c 9000000 /dev/zero > huge; echo harmless > plain"
    );
    run(&scene, "one", &script)?.ended_with(0)?;
    let changes = review(&scene, "one")?;
    let of = |path: &str, key: &str| changes.get(path).and_then(|change| change.get(key)).cloned();
    for (path, count) in [("long", 1), ("binary", 1), ("plain", 0)] {
        ensure!(of(path, "secrets") == Some(json!(count)), "{path}: {changes:?}");
    }
    let note = of("huge", "notes").context("notes")?.to_string();
    ensure!(note.contains("too long to be searched"), "{note}");
    Ok(())
}

/// A scene in which `pi` is a shell script.
fn with_pi(scene: &Scene, script: &str) -> Result<()> {
    let path = scene.bin().join("pi");
    scene.write(&path, &format!("#!/bin/bash\n{script}\n"))?;
    Ok(fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?)
}

fn the_final_question_commits_what_it_has_shown(user: User) -> Result<()> {
    for (answer, is_committed) in [("n\r", false), ("\r", false), ("y\r", true)] {
        let scene = Scene::new(user)?;
        with_pi(&scene, "echo pi ran")?;
        run(&scene, "fix", "echo x > made; echo x > .envrc")?.ended_with(0)?;
        let mut terminal = Terminal::start(&scene, &["pi", "--branch=fix"])?;
        terminal.wait_for("[y/N]")?;
        let shown = terminal.shown().to_owned();
        for line in ["pi ran", "made", "protected", "review: ", "Commit the rest of it?"] {
            ensure!(shown.contains(line), "{line}: {shown}");
        }
        terminal.press(answer)?;
        let (code, shown) = terminal.end()?;
        ensure!(code == 0, "{code}: {shown}");
        ensure!(scene.project().join("made").exists() == is_committed, "{answer:?}: {shown}");
        ensure!(!scene.project().join(".envrc").exists(), "{answer:?}: {shown}");
    }
    Ok(())
}

/// Another program changes the project, or the branch, while the question is open.
fn the_final_question_commits_nothing_that_came_later(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("file"), "first\n")?;
    with_pi(&scene, "true")?;
    run(&scene, "fix", "echo agent > file; echo x > made")?.ended_with(0)?;
    let mut terminal = Terminal::start(&scene, &["pi", "--branch=fix"])?;
    terminal.wait_for("Commit all of it?")?;
    let other = run(&scene, "fix", "echo evil > made")?;
    ensure!(other.code() == 125 && other.stderr.contains("is in use"), "{other:?}");
    scene.write(&scene.project().join("file"), "mine.\n")?;
    terminal.press("y\r")?;
    let (_, shown) = terminal.end()?;
    ensure!(fs::read_to_string(scene.project().join("file"))? == "mine.\n", "{shown}");
    ensure!(!scene.project().join("made").exists(), "a part of it was committed: {shown}");
    ensure!(shown.contains("has changed in the project"), "{shown}");
    // Control: without a change it is committed.
    branch(&scene, &["commit", "fix", "made", "--yes"])?.ended_with(0)?;
    Ok(())
}

fn the_final_question_says_what_a_policy_asks(user: User) -> Result<()> {
    for (script, said, is_committed) in [
        ("touch a b c d", "more than 3 names", true),
        ("touch a forbidden", "forbidden files", false),
        ("touch a", "Commit all of it?", true),
    ] {
        let scene = Scene::new(user)?;
        with_whole_change(&scene, user)?;
        with_pi(&scene, "true")?;
        run(&scene, "fix", script)?.ended_with(0)?;
        let mut terminal = Terminal::start(&scene, &["pi", "--branch=fix"])?;
        terminal.wait_for(said)?;
        if is_committed {
            terminal.wait_for("[y/N]")?;
            terminal.press("y\r")?;
        }
        let (_, shown) = terminal.end()?;
        ensure!(scene.project().join("a").exists() == is_committed, "{script}: {shown}");
    }
    Ok(())
}

/// Adds the policy `whole-change` to the scene's settings.
pub(crate) fn with_whole_change(scene: &Scene, user: User) -> Result<()> {
    let policy = guest("whole-change", user)?;
    scene.trust(&policy)?;
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": [], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        "policies": [{ "use": "workspace" }, { "use": policy }],
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())
}
