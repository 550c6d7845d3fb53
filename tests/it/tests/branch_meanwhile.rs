//! What the user, or another branch, changes in the project while a branch is open.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User};
use serde_json::json;

use crate::branches::{branch, review, run};
use crate::undo::{tree, undo};

as_each_user!(
    a_directory_in_the_place_of_another_is_a_conflict,
    what_the_user_removes_is_a_conflict,
    of_two_commits_of_a_file_one_is_made,
    what_is_larger_than_the_bound_comes_back,
);

/// The files of the other directory are older than the branch, so their own times tell nothing.
fn a_directory_in_the_place_of_another_is_a_conflict(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let project = scene.project();
    for directory in ["changed", "removed", "anew", "other/1", "other/2", "other/3", "control"] {
        for name in ["x", "deep/y"] {
            scene.write(&project.join(directory).join(name), directory)?;
        }
    }
    // Longer than a tick of the clock for file times.
    std::thread::sleep(Duration::from_millis(30));
    let script = "echo agent > changed/x; echo agent > changed/deep/y; echo agent > changed/new; rm -r removed; \
                  rm -r anew; mkdir -p anew/deep; echo agent > anew/x; echo agent > control/x; rm -r control/deep";
    run(&scene, "one", script)?.ended_with(0)?;
    let before = review(&scene, "one")?;
    let conflicts = |changes: &std::collections::BTreeMap<String, serde_json::Value>| -> Vec<String> {
        let is_conflict = |change: &serde_json::Value| change.get("conflict") == Some(&json!(true));
        changes.iter().filter(|(_, change)| is_conflict(change)).map(|(path, _)| path.clone()).collect()
    };
    ensure!(conflicts(&before).is_empty(), "control: {before:?}");
    for (name, other) in [("changed", "other/1"), ("removed", "other/2"), ("anew", "other/3")] {
        fs::rename(project.join(name), scene.at(&format!("was-{name}")))?;
        fs::rename(project.join(other), project.join(name))?;
    }
    let was = ["changed", "removed", "anew"]
        .map(|name| tree(&project.join(name)))
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    let all = branch(&scene, &["commit", "one", "--all", "--yes"])?.ended_with(1)?;
    for (name, was) in ["changed", "removed", "anew"].into_iter().zip(was) {
        let mut is = tree(&project.join(name))?;
        is.retain(|path, _| path != "new".as_ref() as &std::path::Path);
        ensure!(is == was, "{name}: {all:?}");
    }
    ensure!(fs::read_to_string(project.join("control/x"))? == "agent\n", "control: {all:?}");
    ensure!(!project.join("control/deep").exists(), "control: {all:?}");
    Ok(())
}

/// The kernel does not say from which file one was copied up: what a command has moved is no conflict.
fn what_the_user_removes_is_a_conflict(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let project = scene.project();
    for name in ["appended", "emptied", "mode", "d/x", "moved", "edited", "stays"] {
        scene.write(&project.join(name), &format!("{name}\nfirst\nsecond\n"))?;
    }
    std::thread::sleep(Duration::from_millis(30));
    let script = "echo third >> appended; > emptied; chmod 700 mode; echo x >> d/x; mv moved renamed; \
                  mv edited other; echo x >> other; echo x >> stays";
    run(&scene, "one", script)?.ended_with(0)?;
    let conflicts = || -> Result<Vec<String>> {
        let is_conflict = |change: &serde_json::Value| change.get("conflict") == Some(&json!(true));
        let all = review(&scene, "one")?.into_iter();
        Ok(all.filter(|(_, change)| is_conflict(change)).map(|(path, _)| path).collect())
    };
    ensure!(conflicts()?.is_empty(), "control: {:?}", conflicts()?);
    for name in ["appended", "emptied", "mode"] {
        fs::remove_file(project.join(name))?;
    }
    fs::rename(project.join("d"), scene.at("away"))?;
    let found = conflicts()?;
    // What was moved and edited may be a file that the user has removed, and then its former name is left as well.
    ensure!(found == ["appended", "d", "d/x", "edited", "emptied", "mode", "other"], "{found:?}");
    let all = branch(&scene, &["commit", "one", "--all", "--yes"])?.ended_with(1)?;
    let mut names: Vec<_> =
        fs::read_dir(&project)?.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
    names.sort();
    ensure!(names == ["edited", "renamed", "stays"], "{names:?}: {all:?}");
    Ok(())
}

fn of_two_commits_of_a_file_one_is_made(user: User) -> Result<()> {
    for _ in 0..4 {
        let scene = Scene::new(user)?;
        let project = scene.project();
        for number in 0..40 {
            scene.write(&project.join(format!("file-{number:02}")), "first")?;
        }
        std::thread::sleep(Duration::from_millis(30));
        let names = ["one", "two"];
        for name in names {
            run(&scene, name, &format!("for file in file-*; do echo {name} > $file; done"))?.ended_with(0)?;
        }
        let start = |name: &str| -> Result<_> {
            let mut command = scene.portcullis_command(&["branch", "commit", name, "--all", "--yes"])?;
            command.current_dir(&project).stdout(std::process::Stdio::null());
            Ok(command.stderr(std::process::Stdio::null()).spawn()?)
        };
        let running = names.into_iter().map(start).collect::<Result<Vec<_>>>()?;
        let mut committed = 0;
        for mut child in running {
            committed += usize::from(child.wait()?.success());
        }
        ensure!(committed == 1, "{committed} were committed");
        let text = fs::read_to_string(project.join("file-00"))?;
        for number in 0..40 {
            let other = fs::read_to_string(project.join(format!("file-{number:02}")))?;
            ensure!(other == text, "{number}: {other} beside {text}");
        }
        let left = if text == "one\n" { "two" } else { "one" };
        let changes = review(&scene, left)?;
        let change = changes.get("file-00").context("the other branch has its change")?;
        ensure!(change.get("conflict") == Some(&json!(true)), "{change}");
    }
    Ok(())
}

/// A commit that could not be taken back would not be whole or nothing.
fn what_is_larger_than_the_bound_comes_back(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = json!({
        "filesystem": { "allowRead": ["."], "allowWrite": ["."] },
        "undo": { "maxFileMib": 1, "maxSessionMib": 1 },
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let large = "x".repeat(3 << 20);
    scene.write(&scene.project().join("replaced"), &large)?;
    scene.write(&scene.project().join("removed"), &large)?;
    run(&scene, "one", "echo small > replaced; rm removed")?.ended_with(0)?;
    branch(&scene, &["commit", "one", "--all", "--yes"])?.ended_with(0)?;
    ensure!(fs::read_to_string(scene.project().join("replaced"))? == "small\n", "control");
    let undone = undo(&scene, &[])?.ended_with(0)?;
    for name in ["replaced", "removed"] {
        ensure!(fs::read_to_string(scene.project().join(name))? == large, "{name}: {undone:?}");
    }
    // Control: a command that changes such a file is not undone.
    let mut command =
        scene.portcullis_command(&["run", "--ask", "deny", "--", "sh", "-c", "echo small > replaced"])?;
    let ran = Finished::run(command.current_dir(scene.project()))?.ended_with(0)?;
    ensure!(ran.stderr.contains("cannot be undone"), "{ran:?}");
    Ok(())
}
