//! Closed directories beside visible ones: their names exist inside, so programs get a refusal instead of "No such
//! file", but their content is not visible.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User};
use serde_json::json;

use super::places::with_siblings;

as_each_user!(
    programs_are_refused_where_something_is,
    what_programs_look_for_by_themselves_stays_missing,
    what_a_rule_hides_is_not_named,
    nothing_is_changed_through_a_name,
    a_later_answer_opens_it,
    one_that_is_gone_is_gone_inside,
);

fn run(scene: &Scene, script: &str) -> Result<Finished> {
    let mut command = scene.portcullis_command(&["run", "--ask", "deny", "--", "sh", "-c", script])?;
    Finished::run(command.current_dir(scene.home().join("work/project")))
}

/// Runs a script outside of any sandbox.
fn outside(scene: &Scene, script: &str) -> Result<Finished> {
    let mut command = scene.program("/bin/sh".as_ref());
    scene.enter(&mut command);
    let script = format!("test \"$HOME\" = '{}' || exit 9; {script}", scene.home().display());
    Finished::run(command.args(["-c", &script]).current_dir(scene.home().join("work/project")))
}

fn scene(user: User) -> Result<Scene> {
    let scene = with_siblings(user)?;
    scene.write(&scene.home().join("Documents/private"), "private\n")?;
    scene.write(&scene.home().join("work/project/file"), "")?;
    Ok(scene)
}

fn programs_are_refused_where_something_is(user: User) -> Result<()> {
    let scene = scene(user)?;
    // Each takes its path from somewhere else than its words, so no question is possible before it starts.
    for script in ["d=~/Documents; cat $d/private", "d=~/Documents; ls $d", "d=..; cat $d/other/a/b"] {
        outside(&scene, script)?.ended_with(0)?;
        let ran = run(&scene, script)?;
        ensure!(ran.stdout.is_empty() && ran.stderr.contains("Permission denied"), "{script}: {ran:?}");
    }
    let missing = run(&scene, "d=~/Missing; cat $d/private")?;
    ensure!(missing.stderr.contains("No such file"), "control: {missing:?}");
    Ok(())
}

fn what_programs_look_for_by_themselves_stays_missing(user: User) -> Result<()> {
    let scene = scene(user)?;
    for name in ["package.json", "work/package.json", ".hidden/file", "work/.hidden/file"] {
        scene.write(&scene.home().join(name), "{}\n")?;
    }
    symlink(scene.home().join("Documents"), scene.home().join("link"))?;
    let script = "ls -A ~ ~/work; for f in ../package.json ~/package.json ~/.hidden ../.hidden ~/link; do \
                  d=$f; cat $d/file 2>&1; done";
    let seen = run(&scene, script)?.ended_with(1)?.stdout;
    for name in ["Documents", "other", "project"] {
        ensure!(seen.lines().any(|line| line == name), "{name}: {seen}");
    }
    for name in ["package.json", ".hidden", "link"] {
        ensure!(!seen.lines().any(|line| line == name), "{name}: {seen}");
    }
    ensure!(seen.matches("No such file").count() == 5, "{seen}");
    Ok(())
}

fn what_a_rule_hides_is_not_named(user: User) -> Result<()> {
    let scene = scene(user)?;
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": {
            "denyRead": ["/home", scene.home(), scene.home().join("Documents")],
            "allowWrite": ["."], "denyWrite": [],
        },
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let seen = run(&scene, "ls ~/work; d=~/Documents; ls $d")?;
    ensure!(seen.stdout.contains("other"), "control: {seen:?}");
    ensure!(seen.stderr.contains("No such file"), "{seen:?}");
    Ok(())
}

fn nothing_is_changed_through_a_name(user: User) -> Result<()> {
    let scene = scene(user)?;
    let changes = [
        "echo evil > $d/private",
        "echo evil > $d/new",
        "mkdir $d/new",
        "rm -r $d",
        "rmdir $d",
        "mv $d ~/.moved",
        "chmod 777 $d; cat $d/private",
        "chmod 777 $d; echo evil > $d/new",
        "chmod 777 $d; mkdir $d/new",
        "cd $d",
        "ln -s / $d/link",
    ];
    for change in changes {
        let ran = run(&scene, &format!("d=~/Documents; {change}"))?;
        ensure!(ran.code() != 0, "{change}: {ran:?}");
    }
    let names: Vec<_> = fs::read_dir(scene.home().join("Documents"))?.collect();
    ensure!(names.len() == 1, "{names:?}");
    ensure!(fs::read_to_string(scene.home().join("Documents/private"))? == "private\n", "it was written");
    outside(&scene, "d=~/Documents; echo evil > $d/new && mv $d ~/.moved")?.ended_with(0)?;
    ensure!(scene.home().join(".moved/new").exists(), "control");
    Ok(())
}

fn a_later_answer_opens_it(user: User) -> Result<()> {
    let scene = scene(user)?;
    let before = run(&scene, "d=~/Documents; cat $d/private")?;
    ensure!(before.stdout.is_empty(), "control: {before:?}");
    let path = scene.home().join("Documents");
    let path = path.to_str().context("UTF-8")?;
    let mut allow = scene.portcullis_command(&["allow", path, "--read"])?;
    Finished::run(allow.current_dir(scene.home().join("work/project")))?.ended_with(0)?;
    let ran = run(&scene, "d=~/Documents; cat $d/private")?.ended_with(0)?;
    ensure!(ran.stdout == "private\n", "{ran:?}");
    Ok(())
}

fn one_that_is_gone_is_gone_inside(user: User) -> Result<()> {
    let scene = scene(user)?;
    let look = "d=~/Documents; ls $d";
    ensure!(run(&scene, look)?.stderr.contains("Permission denied"), "control");
    fs::remove_dir_all(scene.home().join("Documents"))?;
    let ran = run(&scene, look)?;
    ensure!(ran.stderr.contains("No such file"), "{ran:?}");
    Ok(())
}
