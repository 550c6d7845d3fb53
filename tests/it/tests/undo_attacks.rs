//! Attacks on the record of changes and on undo, each with a control that the attack works without them.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User};
use serde_json::json;

use crate::undo::{run, undo};

as_each_user!(
    the_record_is_out_of_reach,
    a_command_cannot_keep_more_than_the_settings_let_it,
    links_in_place_of_directories_are_not_followed,
    renamed_parents_are_not_followed,
    nobody_gets_rights_by_undo,
    files_of_others_come_back,
    what_changes_after_the_look_stays,
    what_changes_during_undo_stays,
);

/// Runs a script as the user, without Portcullis.
fn without(scene: &Scene, script: &str) -> Result<Finished> {
    let mut command = scene.program("/bin/sh".as_ref());
    scene.enter(&mut command);
    Finished::run(command.args(["-c", script]))
}

fn the_record_is_out_of_reach(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let state = scene.home().join(".local/state/portcullis/changes");
    let project = scene.project();
    scene.write(&project.join("d/x"), "first")?;
    let attack = format!(
        "find '{0}' -type f 2>/dev/null; find '{0}' -name journal -exec cat {{}} + 2>/dev/null; \
         for link in /proc/[0-9]*/fd/*; do readlink \"$link\"; done 2>/dev/null | grep portcullis/changes; \
         for root in /proc/[0-9]*/root; do ls \"$root{0}\" 2>/dev/null; done; \
         find '{0}' -name journal -exec sh -c 'echo damaged > \"$1\"' _ {{}} \\; 2>/dev/null; true",
        state.display()
    );
    let ran = run(&scene, &format!("echo changed > d/x; {attack}"))?;
    ensure!(ran.stdout.is_empty(), "{ran:?}");
    undo(&scene, &[])?.ended_with(0)?;
    ensure!(fs::read_to_string(project.join("d/x"))? == "first");
    // Control: outside the same script reads the record, and damages it.
    run(&scene, "echo changed > d/x")?.ended_with(0)?;
    let control = without(&scene, &attack)?;
    ensure!(control.stdout.contains("/journal") && control.stdout.contains("\"record\""), "{control:?}");
    undo(&scene, &[])?;
    ensure!(fs::read_to_string(project.join("d/x"))? == "changed\n", "the control damaged nothing");
    Ok(())
}

fn a_command_cannot_keep_more_than_the_settings_let_it(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = json!({
        "filesystem": { "allowRead": ["."], "allowWrite": ["."] },
        "undo": { "maxSessionMib": 2 },
    });
    let project = scene.project();
    scene.write(&project.join("first"), "first")?;
    let attack = "echo changed > first; i=0; while [ $i -lt 20 ]; do head -c 500000 /dev/zero > big$i; \
                  i=$((i+1)); done; \
                  i=0; while [ $i -lt 20 ]; do echo x > big$i; i=$((i+1)); done";
    // The files must be there before the command that overwrites them, or nothing of them is kept.
    let kept = |scene: &Scene| -> Result<u64> {
        let found = without(
            scene,
            "du -sk .local/state/portcullis/changes 2>/dev/null || du -sk \"$HOME/.local/state/portcullis/changes\"",
        )?;
        Ok(found.stdout.split_whitespace().next().context("a size")?.parse()?)
    };
    let (make, fill) = attack.split_once("i=$((i+1)); done; ").context("two parts")?;
    without(&scene, &format!("{} i=$((i+1)); done", make.replacen("echo changed > first; ", "", 1)))?
        .ended_with(0)?;
    let fill = format!("echo changed > first; {fill}");
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let ran = run(&scene, &fill)?.ended_with(0)?;
    ensure!(ran.stderr.contains("cannot be undone"), "{ran:?}");
    let bounded = kept(&scene)?;
    ensure!(bounded < 3 << 10, "{bounded} KiB are kept");
    let undone = undo(&scene, &[])?.ended_with(1)?;
    ensure!(undone.stdout.contains("undo.maxSessionMib"), "{undone:?}");
    ensure!(fs::read_to_string(project.join("first"))? == "first", "{undone:?}");
    // Control: with the usual bound the same command has more kept.
    without(
        &scene,
        "for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do \
                     head -c 500000 /dev/zero > big$i; done",
    )?
    .ended_with(0)?;
    fs::remove_file(scene.home().join(".pi/agent/sandbox/default.json"))?;
    let ran = run(&scene, &fill)?.ended_with(0)?;
    ensure!(!ran.stderr.contains("cannot be undone") && kept(&scene)? > 8 << 10, "{ran:?}");
    Ok(())
}

/// Changes something, lets `attack` bend the names, and undoes. `outside/x` must stay. The control is a restore that
/// takes the paths as they are.
fn bent(user: User, change: &str, attack: impl Fn(&Scene) -> Result<()>) -> Result<()> {
    let scene = Scene::new(user)?;
    let victim = scene.outside().join("x");
    scene.write(&victim, "the user's")?;
    scene.write(&scene.project().join("p/d/x"), "first")?;
    run(&scene, change)?.ended_with(0)?;
    attack(&scene)?;
    let undone = undo(&scene, &[])?;
    ensure!(fs::read_to_string(&victim)? == "the user's", "{undone:?}");
    ensure!(fs::read_dir(scene.outside())?.count() == 1, "{undone:?}");
    ensure!(victim.symlink_metadata()?.permissions().mode() & 0o777 == 0o644, "{undone:?}");
    fs::write(scene.project().join("p/d/x"), "first")?;
    ensure!(fs::read_to_string(&victim)? == "first", "control: the names lead nowhere else");
    Ok(())
}

fn links_in_place_of_directories_are_not_followed(user: User) -> Result<()> {
    let in_place = |scene: &Scene| {
        let directory = scene.project().join("p/d");
        fs::rename(&directory, scene.project().join("p/away"))?;
        Ok(symlink(scene.outside(), directory)?)
    };
    for change in
        ["echo changed > p/d/x", "rm p/d/x", "chmod 600 p/d/x", "echo more >> p/d/x; echo new > p/d/y"]
    {
        bent(user, change, in_place)?;
    }
    let in_place_of_the_file = |scene: &Scene| {
        let file = scene.project().join("p/d/x");
        if file.exists() {
            fs::remove_file(&file)?;
        }
        Ok(symlink(scene.outside().join("x"), file)?)
    };
    for change in ["echo changed > p/d/x", "rm p/d/x", "chmod 600 p/d/x"] {
        bent(user, change, in_place_of_the_file)?;
    }
    Ok(())
}

fn renamed_parents_are_not_followed(user: User) -> Result<()> {
    let parent = |scene: &Scene| {
        let parent = scene.project().join("p");
        fs::rename(&parent, scene.project().join("q"))?;
        fs::create_dir(scene.project().join("elsewhere"))?;
        symlink(scene.outside(), scene.project().join("elsewhere/d"))?;
        Ok(symlink("d/../elsewhere", &parent).and_then(|()| {
            // `d` makes the target a real path with `..` in it.
            fs::create_dir(scene.project().join("d"))
        })?)
    };
    for change in ["echo changed > p/d/x", "rm -r p/d", "mv p/d/x p/y", "mv p/d p/e; echo changed > p/e/x"] {
        bent(user, change, parent)?;
    }
    Ok(())
}

fn nobody_gets_rights_by_undo(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let files = ["set-user", "set-group", "sticky"];
    for (name, mode) in files.into_iter().zip([0o4755, 0o2755, 0o1755]) {
        let path = scene.project().join(name);
        scene.write(&path, "#!/bin/sh\n")?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    }
    let mode = |name: &str| -> Result<u32> {
        Ok(scene.project().join(name).symlink_metadata()?.permissions().mode() & 0o7777)
    };
    // Control: a restore with all bits gives them to whatever content there is.
    without(&scene, "cp -p set-user copy")?.ended_with(0)?;
    ensure!(mode("copy")? == 0o4755, "{:o}", mode("copy")?);
    run(&scene, "rm set-user set-group sticky copy")?.ended_with(0)?;
    undo(&scene, &[])?.ended_with(0)?;
    ensure!(mode("set-user")? == 0o755 && mode("set-group")? == 0o755 && mode("copy")? == 0o755);
    ensure!(mode("sticky")? == 0o1755);
    Ok(())
}

fn files_of_others_come_back(user: User) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    const OTHER: u32 = 12_345;
    let scene = Scene::new(user)?;
    let path = scene.project().join("theirs");
    fs::write(&path, "theirs")?;
    lchown(&path, Some(OTHER), Some(OTHER))?;
    run(&scene, "rm -f theirs")?.ended_with(0)?;
    ensure!(!path.exists(), "control: the command has not removed it");
    let undone = undo(&scene, &[])?.ended_with(0)?;
    ensure!(fs::read_to_string(&path)? == "theirs", "{undone:?}");
    // The sandbox does not know them, so it comes back as a file of the project's owner.
    let owner = path.symlink_metadata()?.uid();
    ensure!(owner == scene.project().symlink_metadata()?.uid(), "{owner}: {undone:?}");
    Ok(())
}

fn what_changes_after_the_look_stays(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    for name in ["edited", "replaced", "gone", "kept"] {
        scene.write(&scene.project().join(name), "first")?;
    }
    run(&scene, "for name in edited replaced gone kept; do echo changed > $name; done; echo new > made")?
        .ended_with(0)?;
    let looked = undo(&scene, &["--dry-run"])?.ended_with(0)?;
    ensure!(!looked.stdout.contains("leave"), "{looked:?}");
    std::thread::sleep(std::time::Duration::from_millis(50));
    let at = |name: &str| scene.project().join(name);
    fs::write(at("edited"), "the user's")?;
    fs::write(at("tmp"), "the user's")?;
    fs::rename(at("tmp"), at("replaced"))?;
    fs::remove_file(at("gone"))?;
    fs::write(at("made"), "the user's")?;
    let undone = undo(&scene, &[])?.ended_with(1)?;
    for name in ["edited", "replaced", "made"] {
        ensure!(fs::read_to_string(at(name))? == "the user's", "{name}: {undone:?}");
    }
    ensure!(!at("gone").exists() && fs::read_to_string(at("kept"))? == "first", "{undone:?}");
    ensure!(fs::read_to_string(at("edited.portcullis-old"))? == "first", "{undone:?}");
    Ok(())
}

/// An editor saves while undo runs. Whatever it saved last in a file is there afterwards.
fn what_changes_during_undo_stays(user: User) -> Result<()> {
    const FILES: usize = 150;
    let scene = Scene::new(user)?;
    let name = |number: usize| format!("f{number}");
    for number in 0..FILES {
        scene.write(&scene.project().join(name(number)), "first")?;
    }
    run(&scene, "for i in f*; do echo changed > $i; done; for i in f*5; do rm $i; done")?.ended_with(0)?;
    let ends = AtomicBool::new(false);
    let project = scene.project();
    let save = |round: usize| -> Result<(usize, String)> {
        let number = round * 7 % FILES;
        let text = format!("save {round}");
        let saved = project.join("saved");
        fs::write(&saved, &text)?;
        fs::rename(&saved, project.join(name(number)))?;
        Ok((number, text))
    };
    let (undone, saved) = std::thread::scope(|scope| {
        let editor = scope.spawn(|| {
            let mut saved = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                saved.push(save(saved.len())?);
            }
            anyhow::Ok(saved)
        });
        let undone = undo(&scene, &[]);
        ends.store(true, Ordering::Relaxed);
        (undone, editor.join())
    });
    let (undone, saved) = (undone?, saved.map_err(|_| anyhow::anyhow!("the editor panicked"))??);
    ensure!(saved.len() > FILES / 10, "control: only {} saves", saved.len());
    let mut last = vec![None; FILES];
    for (number, text) in saved {
        if let Some(last) = last.get_mut(number) {
            *last = Some(text);
        }
    }
    for (number, text) in last.into_iter().enumerate() {
        let Some(text) = text else { continue };
        let path = project.join(name(number));
        ensure!(is_in(&path, &text)?, "`{text}` is not in {}: {undone:?}", path.display());
    }
    Ok(())
}

fn is_in(path: &Path, text: &str) -> Result<bool> {
    Ok(fs::read_to_string(path).with_context(|| path.display().to_string())? == text)
}
