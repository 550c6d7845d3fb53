//! Ways in which a command, or an interruption, could make undo lose what it promises to give back, each with a control
//! in which it comes back.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Scene, User};

use crate::undo::{run, undo};
use crate::undo_faults::in_own_mounts;

as_each_user!(
    attributes_do_not_hide_what_is_removed,
    access_lists_do_not_hide_what_is_removed,
    many_long_names_are_given_back,
    a_mode_set_after_the_removal_hides_nothing,
    what_lay_in_a_directory_without_permissions_comes_back,
    a_closed_directory_stops_nothing_else,
    a_look_after_an_interrupted_undo_keeps_edits,
);

/// A project on a file system with large attributes, and a command that sets `COUNT` of them and removes the file.
const ATTRIBUTES: &str = r#"
    mkdir -p disk && mount -t tmpfs none disk && cd disk || exit 99
    echo precious > file
    "$PORTCULLIS" run --ask deny -- python3 -c '
import os
for number in range(COUNT):
    os.setxattr("file", "user.a%d" % number, b"\xff" * 65000)
os.unlink("file")'
    echo "run $?"; "$PORTCULLIS" undo --yes; cat file
"#;

/// What is not given back must have been announced, or refused.
fn attributes_do_not_hide_what_is_removed(user: User) -> Result<()> {
    for count in ["0", "8"] {
        let scene = Scene::new(user)?;
        let ran = in_own_mounts(&scene, &ATTRIBUTES.replace("COUNT", count))?;
        let is_back = ran.stdout.ends_with("precious\n");
        let is_said = ran.stderr.contains("cannot be undone") || !ran.stdout.starts_with("run 0\n");
        ensure!(is_back || count != "0" && is_said, "{count} attributes: {ran:#?}");
    }
    Ok(())
}

/// Gives `file` an access list with an entry for the user `WHO`.
const LIST: &str = r#"
import os, struct
ids = [(1, 6, -1), (2, 6, WHO), (4, 4, -1), (16, 6, -1), (32, 0, -1)]
entries = b"".join(struct.pack("<HHI", tag, rights, identity & 0xffffffff) for tag, rights, identity in ids)
os.setxattr("file", "system.posix_acl_access", struct.pack("<I", 2) + entries)
"#;

/// Without an access list, with one for the own user, and with one for another user.
fn access_lists_do_not_hide_what_is_removed(user: User) -> Result<()> {
    for who in [None, Some("os.getuid()"), Some("1234")] {
        let scene = Scene::new(user)?;
        let file = scene.project().join("file");
        scene.write(&file, "precious")?;
        if let Some(who) = who {
            let mut listing = scene.program("python3".as_ref());
            scene.enter(&mut listing);
            portcullis_it::Finished::run(listing.args(["-c", &LIST.replace("WHO", who)]))?.ended_with(0)?;
        }
        run(&scene, "rm -f file")?.ended_with(0)?;
        ensure!(!file.exists(), "control: the command has not removed it");
        let undone = undo(&scene, &[])?;
        let text = fs::read_to_string(&file);
        ensure!(text.is_ok_and(|text| text == "precious"), "an entry for {who:?}: {undone:#?}");
    }
    Ok(())
}

/// The record of one call must be readable, however long its names are.
fn many_long_names_are_given_back(user: User) -> Result<()> {
    for depth in [2, 12] {
        let scene = Scene::new(user)?;
        let mut directory = scene.project();
        for number in 0..depth {
            directory.push(format!("{number:02}{}", "x".repeat(240)));
        }
        // The whole path is longer than a path may be, unless the directory is entered step by step.
        let deep: String =
            (0..depth).map(|number| format!("cd {number:02}{} && ", "x".repeat(240))).collect();
        let make: String = (0..depth)
            .map(|number| format!("mkdir {number:02}{0} && cd {number:02}{0} && ", "x".repeat(240)))
            .collect();
        let each = "for i in $(seq 500); do";
        let mut making = scene.program("/bin/sh".as_ref());
        scene.enter(&mut making);
        portcullis_it::Finished::run(making.args(["-c", &format!("{make} {each} echo first > f$i; done")]))?
            .ended_with(0)?;
        run(&scene, &format!("{deep} {each} echo changed > f$i; done"))?.ended_with(0)?;
        let undone = undo(&scene, &[])?;
        let text = fs::read_to_string(directory.join("f250"))?;
        ensure!(text == "first\n", "{depth}: {text}, {}", undone.stdout.len());
    }
    Ok(())
}

fn a_mode_set_after_the_removal_hides_nothing(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    for name in ["control", "file"] {
        scene.write(&scene.project().join(name), "precious")?;
    }
    run(
        &scene,
        "exec 7< control; rm control; exec 8< file; rm file; python3 -c 'import os; os.fchmod(8, 0)'",
    )?
    .ended_with(0)?;
    let undone = undo(&scene, &[])?;
    for name in ["control", "file"] {
        let text = fs::read_to_string(scene.project().join(name));
        ensure!(text.is_ok_and(|text| text == "precious"), "{name}: {undone:#?}");
    }
    Ok(())
}

fn what_lay_in_a_directory_without_permissions_comes_back(user: User) -> Result<()> {
    for then in ["true", "chmod 500 d/e d"] {
        let scene = Scene::new(user)?;
        for name in ["d/f", "d/e/g"] {
            scene.write(&scene.project().join(name), "first")?;
        }
        run(&scene, &format!("rm d/f d/e/g; {then}"))?.ended_with(0)?;
        let undone = undo(&scene, &[])?.ended_with(0)?;
        for name in ["d/f", "d/e/g"] {
            ensure!(scene.project().join(name).exists(), "{then}, {name}: {undone:#?}");
        }
    }
    Ok(())
}

/// A command closes a directory in which it has changed something. The rest is given back, and edits of the user stay.
fn a_closed_directory_stops_nothing_else(user: User) -> Result<()> {
    for then in ["true", "chmod 000 d"] {
        let scene = Scene::new(user)?;
        let at = |name: &str| scene.project().join(name);
        for name in ["d/f", "edited", "other"] {
            scene.write(&at(name), "first")?;
        }
        run(&scene, &format!("for i in d/f edited other; do echo changed > $i; done; {then}"))?
            .ended_with(0)?;
        fs::write(at("edited"), "the user's own")?;
        // As programs leave it that keep the times of files.
        let edited = fs::File::options().write(true).open(at("edited"))?;
        edited.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_600_000_000))?;
        let undone = undo(&scene, &[])?;
        ensure!(fs::read_to_string(at("other"))? == "first", "{then}: {undone:#?}");
        fs::set_permissions(at("d"), fs::Permissions::from_mode(0o755))?;
        let again = undo(&scene, &["--all"])?;
        ensure!(fs::read_to_string(at("d/f"))? == "first", "{then}: {undone:#?} {again:#?}");
        ensure!(fs::read_to_string(at("edited"))? == "the user's own", "{then}: {undone:#?} {again:#?}");
    }
    Ok(())
}

/// Undo is killed; the user edits a file that it has given back; `changes` shows what there is.
fn a_look_after_an_interrupted_undo_keeps_edits(user: User) -> Result<()> {
    const FILES: usize = 1500;
    for look in [false, true] {
        let scene = Scene::new(user)?;
        let path = |number: usize| scene.project().join(format!("f{number:04}"));
        for number in 0..FILES {
            scene.write(&path(number), "first\n")?;
        }
        run(&scene, "for i in f*; do echo changed > $i; done")?.ended_with(0)?;
        let mut undoing = scene.portcullis_command(&["undo", "--yes"])?;
        let mut undoing = undoing.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let is_back = |number: &usize| fs::read_to_string(path(*number)).is_ok_and(|text| text == "first\n");
        Deadline::start().until("a file that is given back", || {
            Ok((0..FILES).rev().take(200).any(|number| is_back(&number)).then_some(()))
        })?;
        undoing.kill()?;
        undoing.wait()?;
        ensure!(!(0..FILES).all(|number| is_back(&number)), "control: undo was not interrupted");
        let edited = (0..FILES).rev().find(is_back).context("one that was given back")?;
        // Times of files have steps.
        std::thread::sleep(Duration::from_millis(50));
        fs::write(path(edited), "the user's own")?;
        if look {
            scene.portcullis(&["changes"])?;
            let dry = undo(&scene, &["--dry-run"])?.ended_with(0)?;
            let is_told =
                dry.stdout.contains("was interrupted") && dry.stdout.contains("Putting back would do");
            ensure!(is_told && dry.stdout.contains(&format!("f{edited:04}")), "{dry:?}");
        }
        let text = fs::read_to_string(path(edited))?;
        ensure!(text == "the user's own", "f{edited:04} after `changes`: {text}");
        let undone = undo(&scene, &[])?;
        ensure!(undone.stdout.contains("was put back first"), "{undone:?}");
        let dry = undo(&scene, &["--all", "--dry-run"])?.ended_with(0)?;
        ensure!(!dry.stdout.contains("was interrupted"), "control: {dry:?}");
        let text = fs::read_to_string(path(edited))?;
        ensure!(text == "the user's own", "f{edited:04} after `undo`: {text}");
    }
    Ok(())
}
