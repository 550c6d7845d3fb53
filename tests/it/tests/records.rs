//! Files that Portcullis keeps outside the project: the log, the settings, and no others.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User, processes};
use serde_json::{Value, json};

as_each_user!(
    audit_lines_stand_around_the_act,
    what_decides_cannot_be_changed_from_inside,
    what_is_not_there_yet_is_protected,
    nothing_is_left_behind,
);

/// The exit code of `check` for a denial.
const DENY: i32 = 20;

/// The default settings.
const SETTINGS: &str = r#"{ "enabled": true, "network": { "allowedDomains": [], "deniedDomains": [] },
  "filesystem": { "denyRead": ["/home"], "allowRead": [".", "~/.pi"], "allowWrite": ["."], "denyWrite": [] } }"#;

fn audit_lines_stand_around_the_act(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let sleep = processes::long_sleep();
    let mut command = scene.portcullis_command(&["run", "--", "sh", "-c", &format!("{sleep} & wait")])?;
    let mut running = command.spawn()?;
    let process = processes::wait_running(&sleep)?;
    let before = audit_lines(&scene)?;
    ensure!(count(&before, "verdict") == 1 && count(&before, "outcome") == 0, "{before:#?}");
    let id =
        i32::try_from(process.id).ok().and_then(rustix::process::Pid::from_raw).context("a process id")?;
    rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
    running.wait()?;
    let after = audit_lines(&scene)?;
    ensure!(count(&after, "verdict") == 1 && count(&after, "outcome") == 1, "{after:#?}");
    Ok(())
}

/// If the project is the home directory itself, commands can write next to all the files that decide about them.
fn what_decides_cannot_be_changed_from_inside(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = scene.home().join(".pi/agent/sandbox/default.json");
    let extension = scene.home().join(".pi/agent/extensions/own.ts");
    scene.write(&settings, SETTINGS)?;
    scene.write(&extension, "own")?;
    scene.portcullis(&["run", "--", "true"])?.ended_with(0)?;
    let logs = audit_files(&scene)?;
    let log = logs.first().context("no log was written")?;
    let before = fs::read_to_string(log)?;
    let attack = "for f; do echo evil > \"$f\"; echo evil >> \"$f\"; rm -f \"$f\"; ln -sf /dev/null \"$f\"; \
        echo evil > \"$f.new\"; mv \"$f.new\" \"$f\"; echo evil > \"${f%/*}/evil.ts\"; done; \
        mv .local .moved; mv .pi .moved; mv .pi/agent .pi/moved; rm -rf .pi .local; echo end";
    let home = scene.home().display().to_string();
    let files = [log, &settings, &extension].map(|file| file.display().to_string());
    let mut arguments = vec!["run", "--project", &home, "--", "sh", "-c", attack, "sh"];
    arguments.extend(files.iter().map(String::as_str));
    let mut command = scene.portcullis_command(&arguments)?;
    let finished = Finished::run(command.current_dir(scene.home()))?;
    ensure!(finished.stdout.contains("end"), "{finished:#?}");
    ensure!(fs::read_to_string(log)? == before, "the log was changed: {finished:#?}");
    ensure!(fs::read_to_string(&settings)? == SETTINGS, "the settings were changed: {finished:#?}");
    ensure!(fs::read_to_string(&extension)? == "own", "the extension was changed: {finished:#?}");
    let evil = files_below(&scene.home())?.into_iter().find(|file| file.ends_with("evil.ts"));
    ensure!(evil.is_none(), "{evil:?} was made: {finished:#?}");
    Ok(())
}

/// There is nothing to mount over a protected path that does not exist yet, so the name is judged when it is created.
fn what_is_not_there_yet_is_protected(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.portcullis(&["check", "write", ".pi/extensions/new.ts"])?.ended_with(DENY)?;
    let script = "mkdir -p .pi/extensions && echo new > .pi/extensions/new.ts";
    let finished = scene.portcullis(&["run", "--", "sh", "-c", script])?;
    ensure!(finished.code() != 0 && finished.stderr.contains("Permission denied"), "{finished:#?}");
    let script = "mkdir -p new/extensions && echo new > new/extensions/new.ts && mv -T new .pi";
    let finished = scene.portcullis(&["run", "--", "sh", "-c", script])?;
    ensure!(finished.code() != 0, "{finished:#?}");
    ensure!(!scene.project().join(".pi/extensions").exists());
    // The control: under another name the same write is allowed.
    let script = "mkdir -p pi/extensions && echo new > pi/extensions/new.ts";
    scene.portcullis(&["run", "--", "sh", "-c", script])?.ended_with(0)?;
    Ok(())
}

fn nothing_is_left_behind(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.portcullis(&["run", "--", "sh", "-c", "echo x > /tmp/file; mkdir /tmp/dir"])?.ended_with(0)?;
    let left = processes::of_scene(&scene)?;
    ensure!(left.is_empty(), "{left:?}");
    let entries: Vec<_> = fs::read_dir(scene.project())?.collect::<Result<_, _>>()?;
    ensure!(entries.is_empty(), "ghost files: {entries:?}");
    let of_a_session = |path: &&PathBuf| path.parent().is_some_and(|folder| folder.ends_with("tmp"));
    let files = files_below(&scene.home())?;
    let stray: Vec<_> = files.iter().filter(of_a_session).collect();
    ensure!(stray.is_empty(), "{stray:?}");
    Ok(())
}

fn audit_files(scene: &Scene) -> Result<Vec<PathBuf>> {
    let is_log = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "jsonl");
    Ok(files_below(&scene.home())?.into_iter().filter(is_log).collect())
}

fn audit_lines(scene: &Scene) -> Result<Vec<Value>> {
    let texts = audit_files(scene)?.into_iter().map(fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    texts.iter().flat_map(|text| text.lines()).map(|line| Ok(serde_json::from_str(line)?)).collect()
}

fn count(lines: &[Value], kind: &str) -> usize {
    lines.iter().filter(|line| line.get("kind") == Some(&json!(kind))).count()
}

fn files_below(folder: &std::path::Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            files.extend(files_below(&entry.path())?);
        } else {
            files.push(entry.path());
        }
    }
    Ok(files)
}
