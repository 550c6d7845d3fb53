//! The bound of the record, an undo while a command runs, and the processes of a command.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Scene, User};
use serde_json::json;

use crate::undo::{run, undo};

as_each_user!(
    a_command_makes_the_record_no_longer_than_its_bound,
    what_an_open_file_gets_after_an_undo_is_not_listed_and_stays,
    processes_whose_parents_end_belong_to_their_command,
);

/// The record of names may take an eighth of what a session keeps.
fn a_command_makes_the_record_no_longer_than_its_bound(user: User) -> Result<()> {
    const FILES: usize = 1_200;
    // An eighth of a MiB, and one more record.
    const LONGEST: u64 = (1 << 17) + (2 << 10);
    for (mib, is_bounded) in [(1, true), (2048, false)] {
        let scene = Scene::new(user)?;
        let settings = json!({
            "filesystem": { "allowRead": ["."], "allowWrite": ["."] },
            "undo": { "maxSessionMib": mib },
        });
        scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
        let script = format!(
            "i=0; while [ $i -lt {FILES} ]; do echo x > a-name-that-is-not-short-$i; i=$((i+1)); done; \
             find ~/.local/state -name journal 2>/dev/null; true"
        );
        let ran = run(&scene, &script)?.ended_with(0)?;
        ensure!(ran.stderr.contains("cannot be undone") == is_bounded, "{mib}: {ran:?}");
        let records = scene.home().join(".local/state/portcullis/changes");
        let record = fs::read_dir(&records)?.next().context("a record")??.path();
        // What the call has left is written at its end, whatever its length.
        let journal = fs::read_to_string(record.join("store/journal"))?;
        let before: usize = journal
            .lines()
            .filter(|line| line.contains("\"record\":\"before\""))
            .map(|line| line.len() + 2)
            .sum();
        ensure!((u64::try_from(before)? <= LONGEST) == is_bounded, "{mib}: {before} bytes of former states");
        // All names are there: the bound stops the record, not the command.
        ensure!(fs::read_dir(scene.project())?.count() == FILES, "{mib}");
        let undone = undo(&scene, &[])?;
        ensure!(undone.code() == i32::from(is_bounded), "{mib}: {undone:?}");
        ensure!(undone.stdout.contains("undo.maxSessionMib") == is_bounded, "{mib}: {undone:?}");
        let left = fs::read_dir(scene.project())?.count();
        ensure!(if is_bounded { left > 0 && left < FILES } else { left == 0 }, "{mib}: {left} are left");
    }
    Ok(())
}

/// The sandbox sees when a file is opened, not when it is written.
fn what_an_open_file_gets_after_an_undo_is_not_listed_and_stays(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let project = scene.project();
    let text = |name: &str| fs::read_to_string(project.join(name)).unwrap_or_default();
    for name in ["open", "again"] {
        scene.write(&project.join(name), "first\n")?;
    }
    let script = "exec 3>>open; echo one >&3; echo one >> again; touch ready; \
                  until test -e go; do sleep 0.02; done; echo two >&3; echo two >> again";
    let mut command = scene.portcullis_command(&["run", "--ask", "deny", "--", "sh", "-c", script])?;
    let mut running = command
        .current_dir(&project)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()?;
    Deadline::start().until("the command", || Ok(project.join("ready").exists().then_some(())))?;
    ensure!(text("open") == "first\none\n", "control");
    undo(&scene, &["--all"])?.ended_with(0)?;
    ensure!(text("open") == "first\n" && text("again") == "first\n", "{} {}", text("open"), text("again"));
    scene.write(&project.join("go"), "")?;
    ensure!(running.wait()?.success());
    ensure!(text("open") == "first\ntwo\n" && text("again") == "first\ntwo\n", "{}", text("open"));
    let mut changes = scene.portcullis_command(&["changes", "--json"])?;
    let changes = String::from_utf8(changes.current_dir(&project).output()?.stdout)?;
    let changes: serde_json::Value = serde_json::from_str(&changes)?;
    let calls = changes.get("points").context("points")?.as_array().context("a list")?;
    let in_force: Vec<String> = calls
        .iter()
        .filter(|call| call.get("undone") == Some(&json!(false)))
        .map(ToString::to_string)
        .collect();
    let lists = |name: &str| in_force.iter().any(|call| call.contains(&format!("/{name}\"")));
    ensure!(lists("again"), "control: a file that is opened again is listed: {changes}");
    ensure!(!lists("open"), "{changes}");
    // Undo takes it for an edit of the user's: it stays.
    let undone = undo(&scene, &[])?;
    ensure!(text("again") == "first\n", "control: {undone:?}");
    ensure!(text("open") == "first\ntwo\n", "{undone:?}");
    Ok(())
}

/// The broker finds the command of a process by its parents, and each of these processes changes a name just when its
/// parent ends. If one did not count as the command's, undo would take back only what came after it.
fn processes_whose_parents_end_belong_to_their_command(user: User) -> Result<()> {
    const PROCESSES: usize = 600;
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("first"), "first")?;
    let script = format!(
        "echo changed > first; i=0; n=0; \
         while [ $i -lt {PROCESSES} ]; do sh -c '(: > \"$0\") &' orphan-$i; i=$((i+1)); done; \
         until [ $(ls | grep -c orphan) -eq {PROCESSES} ]; do \
           sleep 0.05; n=$((n+1)); [ $n -lt 600 ] || {{ ls | sort -V; exit 9; }}; \
         done"
    );
    run(&scene, &script)?.ended_with(0)?;
    let shown = scene.portcullis_command(&["changes", "--json"])?.current_dir(scene.project()).output()?;
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout)?;
    let points = shown.get("points").context("points")?.as_array().context("a list")?;
    ensure!(points.len() == 1, "{} calls", points.len());
    let undone = undo(&scene, &[])?.ended_with(0)?;
    ensure!(fs::read_dir(scene.project())?.count() == 1, "{undone:?}");
    ensure!(fs::read_to_string(scene.project().join("first"))? == "first", "{undone:?}");
    Ok(())
}
