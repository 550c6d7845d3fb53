//! Symbolic links in questions of commands: the question shows the target, and the answer permits nothing more.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    a_yes_to_a_link_opens_nothing_else,
    a_kept_answer_is_not_led_elsewhere,
    an_allowed_name_that_is_not_there_becomes_no_link,
    an_allowed_name_is_not_used_as_a_link,
    the_host_does_not_answer_for_the_user,
    rules_below_a_name_hold,
    hooks_lie_where_they_are_named,
);

/// "wants to write" this path, and the path is a link to the user's whole home. The control makes the link by hand.
fn a_yes_to_a_link_opens_nothing_else(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (notes, home) = (scene.outside().join("notes.md"), scene.home().join("private"));
    scene.write(&home.join("key"), "before")?;
    scene.write(&scene.outside().join("there"), "")?;
    for deed in [
        format!("ln -s '{}' '{}'", home.display(), notes.display()),
        format!("cd '{}'; ln there notes.md", scene.outside().display()),
        format!("cd '{}'; mv there notes.md", scene.outside().display()),
    ] {
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        let id = host.begin(&deed, &json!({ "PATH": "/usr/bin:/bin" }))?;
        let question = host.question()?;
        let shown = question.to_string();
        ensure!(shown.contains("notes.md"), "{shown}");
        if deed.starts_with("ln -s") {
            ensure!(shown.contains("symbolic link"), "{shown}");
            ensure!(shown.contains(&format!("notes.md -> {}", home.display())), "{shown}");
        }
        host.answer(&question, &json!(0))?;
        host.finish(id)?;
        ensure!(notes.symlink_metadata().is_ok(), "{deed}");
        ensure!(host.close()?.success());
        // The next session has no permission.
        let mut next = Serve::greeted(&scene, &[], Interface::Absent)?;
        let written = notes.display();
        let (_, output) = next.run(&format!("echo evil > '{written}/key'; echo evil > '{written}'"))?;
        ensure!(fs::read_to_string(&notes).map_or(true, |text| text.is_empty()), "{deed}: {output}");
        ensure!(fs::read_to_string(home.join("key"))? == "before", "{deed}");
        fs::remove_file(&notes)?;
        scene.write(&scene.outside().join("there"), "")?;
    }
    Ok(())
}

/// A file when the user approved, and a link to something else in the next session.
fn a_kept_answer_is_not_led_elsewhere(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (notes, home) = (scene.outside().join("notes.md"), scene.home().join("private"));
    scene.write(&home.join("key"), "before")?;
    scene.write(&notes, "")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let write = format!("echo mine > '{}'", notes.display());
    let id = host.begin(&write, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let question = host.question()?;
    let options = question.pointer("/params/options").and_then(Value::as_array).cloned().unwrap_or_default();
    let in_project = |option: &Value| option.get("scope") == Some(&json!("project"));
    let choice = options.iter().position(in_project);
    ensure!(choice.is_some(), "{question}");
    host.answer(&question, &json!(choice))?;
    host.finish(id)?;
    ensure!(fs::read_to_string(&notes)? == "mine\n");
    ensure!(host.close()?.success());
    fs::remove_file(&notes)?;
    std::os::unix::fs::symlink(&home, &notes)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let evil = format!("echo evil > '{}/key'", notes.display());
    host.run(&evil)?;
    ensure!(fs::read_to_string(home.join("key"))? == "before");
    Ok(())
}

/// Writes settings that allow writing one path outside that does not exist when a session starts.
fn allowing(scene: &Scene) -> Result<PathBuf> {
    let place = scene.outside().join("cache");
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": [".", place], "denyWrite": [] },
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    scene.write(&scene.home().join("private/key"), "before")?;
    Ok(place)
}

/// A file or directory with that name may be written, but not the target of a link there. The control makes the same
/// links without the sandbox.
fn an_allowed_name_that_is_not_there_becomes_no_link(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let place = allowing(&scene)?;
    let (aim, name) = (scene.home().join("private"), place.display());
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    for link in [
        format!("ln -s '{}' '{name}'", aim.display()),
        format!("ln -s '{}/key' '{name}'", aim.display()),
        format!("rm -f l; ln -s '{}' l; mv l '{name}'", aim.display()),
        format!("rm -f l; ln -s '{}' l; cp -P l '{name}'", aim.display()),
    ] {
        let (_, output) = host.run(&format!("{link}; rm -f l; echo evil > '{name}/key'; true"))?;
        ensure!(place.symlink_metadata().is_err(), "{link}: {output}");
        ensure!(fs::read_to_string(aim.join("key"))? == "before", "{link}: {output}");
        let mut control = user.command("/bin/sh".as_ref());
        scene.enter(&mut control);
        Finished::run(control.args(["-c", &link]))?.ended_with(0)?;
        ensure!(place.is_symlink(), "the control made no link: {link}");
        fs::remove_file(&place)?;
    }
    // It is allowed, without a question, to commands and tools.
    let (_, output) =
        host.run(&format!("mkdir '{name}' && echo fine > '{name}/file' && cat '{name}/file'"))?;
    ensure!(output == "fine\n", "{output}");
    host.succeed("file/write", &json!({ "callId": "w", "path": place.join("tool"), "content": "x" }))?;
    Ok(())
}

/// Another program of the user keeps creating a link while a command and a tool write to that name. The control is the
/// same command without the sandbox.
fn an_allowed_name_is_not_used_as_a_link(user: User) -> Result<()> {
    const TRIES: usize = 300;
    let scene = Scene::new(user)?;
    let place = allowing(&scene)?;
    let key = scene.home().join("private/key");
    let script =
        format!("for i in $(seq {TRIES}); do echo evil > '{}'; done 2>/dev/null; true", place.display());
    let raced = |act: &mut dyn FnMut() -> Result<()>| -> Result<()> {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let swapping = scope.spawn(|| {
                let new = place.with_extension("new");
                while !is_over.load(Ordering::Relaxed) {
                    std::os::unix::fs::symlink(&key, &new)?;
                    fs::rename(&new, &place)?;
                    std::thread::sleep(Duration::from_micros(200));
                    fs::remove_file(&place)?;
                    std::thread::sleep(Duration::from_micros(200));
                }
                std::io::Result::Ok(())
            });
            let done = act();
            is_over.store(true, Ordering::Relaxed);
            let swapped = swapping.join();
            ensure!(matches!(swapped, Ok(Ok(()))), "{swapped:?}");
            done
        })
    };
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    raced(&mut || {
        host.run(&script)?;
        let write = json!({ "callId": "w", "path": place, "content": "evil" });
        (0..TRIES).try_for_each(|_| host.call("file/write", &write).map(drop))
    })?;
    ensure!(fs::read_to_string(&key)? == "before", "it was written through a link");
    raced(&mut || {
        let mut control = user.command("/bin/sh".as_ref());
        scene.enter(&mut control);
        Finished::run(control.args(["-c", &script])).map(drop)
    })?;
    ensure!(fs::read_to_string(&key)? == "evil\n", "the control never met the link");
    Ok(())
}

/// If the broker asks about the effect of a call on a name, the host does not apply an answer to another call.
fn the_host_does_not_answer_for_the_user(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let git = scene.project().join(".git");
    for name in ["HEAD", "objects/x", "refs/x", "logs/HEAD"] {
        scene.write(&git.join(name), "")?;
    }
    scene.write(&scene.project().join("elsewhere/x"), "")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    for name in [
        ".git/info",
        ".git/modules",
        ".git/worktrees",
        ".git/rebase-merge",
        ".git/COMMIT_EDITMSG",
        ".hg",
        ".jj",
        ".config",
        ".vscode",
    ] {
        let (_, output) = host.run(&format!("ln -s '{}/elsewhere' {name}", scene.project().display()))?;
        ensure!(scene.project().join(name).symlink_metadata().is_err(), "{name}: {output}");
    }
    let (_, output) = host.run("ln -s elsewhere fine && cat fine/x && echo linked")?;
    ensure!(output.contains("linked"), "{output}");
    Ok(())
}

/// The user's rules apply to names that do not exist yet, in existing directories.
fn rules_below_a_name_hold(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = r#"{ "enabled": true, "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home", "conf/later.key"], "allowRead": [".", "~/.pi"], "allowWrite": ["."],
            "denyWrite": ["conf/prod.yml", "**/ci/deploy.sh"] } }"#;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), settings)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    for (directory, file) in
        [("conf", "prod.yml"), ("conf", "later.key"), ("ci", "deploy.sh"), ("a/ci", "deploy.sh")]
    {
        let aside = scene.project().join("aside");
        scene.write(&scene.project().join(directory).join("x"), "")?;
        let (_, output) = host.run(&format!(
            "rm -rf aside; mv {directory} aside; echo evil > aside/{file}; ln -s \"$PWD/aside\" {directory}; true"
        ))?;
        let named = scene.project().join(directory).join(file);
        ensure!(!named.exists(), "{directory}/{file}: {output}");
        ensure!(aside.join(file).exists(), "the attack is carried out: {output}");
        std::os::unix::fs::symlink(&aside, scene.project().join(directory))?;
        ensure!(fs::read_to_string(&named)? == "evil\n", "control");
        fs::remove_file(scene.project().join(directory))?;
    }
    Ok(())
}

/// A hooks directory that does not exist when the session starts, and a hook that is a link to the project's script.
fn hooks_lie_where_they_are_named(user: User) -> Result<()> {
    let attack = "mkdir -p tools/hooks; for hook in tools/hooks/pre-commit scripts/hook; do \
        printf '#!/bin/sh\necho ran >> ran\n' > $hook; chmod +x $hook; done 2>/dev/null; true";
    let commit = |scene: &Scene, more: &[&str]| -> Result<bool> {
        let mut command = scene.user().command("/usr/bin/git".as_ref());
        scene.enter(&mut command);
        command.args(more).args(["commit", "-q", "--allow-empty", "-m", "x"]);
        Finished::run(command.current_dir(scene.project()))?;
        let ran = scene.project().join("ran");
        let is_run = ran.exists();
        if is_run {
            fs::remove_file(ran)?;
        }
        Ok(is_run)
    };
    let prepared = || -> Result<Scene> {
        let scene = Scene::new(user)?;
        let settings = "[user]\n\tname = A\n\temail = a@b.test\n[core]\n\thooksPath = tools/hooks\n";
        scene.write(&scene.home().join(".gitconfig"), settings)?;
        let script = scene.project().join("scripts/hook");
        scene.write(&script, "#!/bin/sh\n")?;
        let mut command = scene.user().command("/usr/bin/git".as_ref());
        scene.enter(&mut command);
        Finished::run(command.current_dir(scene.project()).args(["init", "-q"]))?.ended_with(0)?;
        let hook = scene.project().join(".git/hooks/pre-commit");
        scene.write(&hook, "")?;
        fs::remove_file(&hook)?;
        std::os::unix::fs::symlink("../../scripts/hook", &hook)?;
        let mut command = scene.user().command("/bin/chmod".as_ref());
        scene.enter(&mut command);
        Finished::run(command.arg("+x").arg(&script))?.ended_with(0)?;
        Ok(scene)
    };
    let own = &["-c", "core.hooksPath=.git/hooks"][..];
    let control = prepared()?;
    let mut command = control.user().command("/bin/sh".as_ref());
    control.enter(&mut command);
    Finished::run(command.current_dir(control.project()).args(["-c", attack]))?.ended_with(0)?;
    ensure!(commit(&control, &[])? && commit(&control, own)?, "control: the hooks are run");

    let scene = prepared()?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let (_, output) = host.run(attack)?;
    ensure!(!commit(&scene, &[])? && !commit(&scene, own)?, "{output}");
    ensure!(fs::read_to_string(scene.project().join("scripts/hook"))? == "#!/bin/sh\n");
    let (_, output) = host.run(
        "mkdir -p t/hooks; echo x > t/hooks/pre-commit; mv t tools 2>/dev/null || ln -s t tools; true",
    )?;
    ensure!(!scene.project().join("tools/hooks/pre-commit").exists(), "{output}");
    Ok(())
}
