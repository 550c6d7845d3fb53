//! Attacks through the private home: on the user's shell, on other projects, and on the disk. Each has a control without it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Finished, Scene, User, portcullis};
use serde_json::json;

as_each_user!(
    what_is_planted_in_it_is_run_by_nobody,
    it_is_not_read_by_its_path,
    it_has_a_limit_that_cannot_be_hidden_from,
    a_full_disk_stops_everything_until_it_is_cleared,
);

fn run_in(scene: &Scene, project: &Path, script: &str) -> Result<Finished> {
    let mut command = scene.portcullis_command(&["run", "--ask", "deny", "--", "bash", "-c", script])?;
    Finished::run(command.current_dir(project))
}

fn run(scene: &Scene, script: &str) -> Result<Finished> {
    run_in(scene, &scene.project(), script)
}

/// Runs a program outside of any sandbox.
fn outside(scene: &Scene, words: &[&str]) -> Result<Finished> {
    let mut command = scene.program("/usr/bin/env".as_ref());
    scene.enter(&mut command);
    Finished::run(command.args(words))
}

fn homes(scene: &Scene) -> PathBuf {
    scene.home().join(".local/state/portcullis/homes")
}

/// Returns the only private home in the scene.
fn place(scene: &Scene) -> Result<PathBuf> {
    let mut homes = fs::read_dir(homes(scene))?;
    Ok(homes.next().context("a private home")??.path())
}

/// Start-up files of shells, of git and of Perl, and programs in a directory of PATH.
const PLANT: &str = "
    for name in .bashrc .bash_profile .profile .bash_login .bash_logout .zshrc .config/bash/x .xsessionrc .inputrc; do
        mkdir -p ~/$(dirname $name) && echo 'echo PLANTED' > ~/$name
    done 2> /dev/null
    git config --file ~/.gitconfig alias.hi '!echo PLANTED' 2> /dev/null
    mkdir -p ~/.config/git && printf '[alias]\\nhi = !echo PLANTED\\n' > ~/.config/git/config
    mkdir -p ~/.local/bin && printf '#!/bin/sh\\necho PLANTED\\n' > ~/.local/bin/planted && chmod +x ~/.local/bin/planted
    true";

fn what_is_planted_in_it_is_run_by_nobody(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let control = Scene::new(user)?;
    run(&scene, PLANT)?;
    outside(&control, &["bash", "-c", PLANT])?;
    let path = |scene: &Scene| format!("PATH={}:/usr/bin:/bin", scene.home().join(".local/bin").display());
    let starts: [&[&str]; 5] = [
        &["bash", "-lc", "true"],
        &["bash", "-ic", "true"],
        &["sh", "-lc", "true"],
        &["git", "hi"],
        &["planted"],
    ];
    for start in starts {
        let started = |scene: &Scene| outside(scene, &[&[path(scene).as_str()], start].concat());
        ensure!(started(&control)?.stdout.contains("PLANTED"), "the control: {start:?}");
        let seen = started(&scene)?;
        ensure!(!seen.stdout.contains("PLANTED"), "{start:?}: {seen:?}");
    }
    // The shells of commands do not run these files either.
    for shell in ["bash -lc true", "bash -ic true", "sh -lc true"] {
        let ran = run(&scene, shell)?;
        ensure!(!ran.stdout.contains("PLANTED"), "{shell}: {ran:?}");
    }
    Ok(())
}

fn it_is_not_read_by_its_path(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    run(&scene, "mkdir ~/.tool && echo SECRET > ~/.tool/x")?.ended_with(0)?;
    let other = scene.at("other");
    fs::create_dir(&other)?;
    user.own(&other)?;
    let of_the_first = place(&scene)?;
    let own = "mkdir -p ~/.mine && ln -s HOMES ~/.mine/homes && ln -s HOME/home/.tool ~/.tool; \
               cat HOME/home/.tool/x ~/.mine/homes/*/home/.tool/x ~/.tool/x; ls HOMES; \
               cat /proc/*/root/HOME/home/.tool/x; echo y > HOME/home/.tool/y; mv HOME/home ~/.mine/stolen";
    let script = own
        .replace("HOMES", &homes(&scene).display().to_string())
        .replace("HOME", &of_the_first.display().to_string());
    let ran = run_in(&scene, &other, &script)?;
    ensure!(!ran.stdout.contains("SECRET") && ran.stdout.is_empty(), "{ran:?}");
    ensure!(fs::read_dir(of_the_first.join("home/.tool"))?.count() == 1, "{ran:?}");
    ensure!(outside(&scene, &["sh", "-c", &script])?.stdout.contains("SECRET"), "the control");
    Ok(())
}

/// What a session notes is for the next one. A directory that is closed, or too deep to have a path, is not looked into.
fn it_has_a_limit_that_cannot_be_hidden_from(user: User) -> Result<()> {
    let fill = "head -c 3000000 /dev/zero >";
    let closed = format!("mkdir -p ~/.tool/in && {fill} ~/.tool/in/x && chmod 000 ~/.tool/in");
    let deep = format!(
        "mkdir -p ~/.tool && cd ~/.tool && for n in $(seq 50); do mkdir -p $(printf '%0100d' 1) && \
         cd -P ./$(printf '%0100d' 1) || break; done; {fill} x"
    );
    for fill in [format!("mkdir ~/.tool && {fill} ~/.tool/x"), closed, deep] {
        let scene = Scene::new(user)?;
        let settings = |most: u32| {
            let settings = json!({ "home": { "maxMib": most } });
            scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())
        };
        settings(1)?;
        run(&scene, &fill)?;
        // Not for the next five minutes, unless it is forgotten.
        let noted = place(&scene)?.join("size");
        fs::remove_file(&noted)?;
        let wait = Deadline::start();
        let ran = run(&scene, "mkdir -p ~/.tool && sleep 1")?;
        ensure!(!ran.stderr.contains("closed to commands"), "{ran:?}");
        wait.until("its size", || Ok(noted.exists().then_some(())))?;
        let full = run(&scene, "echo went on; mkdir ~/.other")?;
        ensure!(full.stdout == "went on\n" && full.stderr.contains("closed to commands"), "{fill}: {full:?}");
        ensure!(full.stderr.contains("portcullis home clear"), "{fill}: {full:?}");
        let shown = scene.portcullis(&["home", "show"])?.ended_with(0)?;
        ensure!(shown.stdout.contains(" MiB"), "{shown:?}");
        settings(100)?;
        if fill.contains("mkdir ~/.tool &&") {
            let control = run(&scene, "mkdir ~/.other")?.ended_with(0)?;
            ensure!(control.stderr.is_empty(), "the control, with a larger limit: {control:?}");
        }
        settings(1)?;
        scene.portcullis(&["home", "clear"])?.ended_with(0)?;
        let ran = run(&scene, "mkdir ~/.other && echo did")?;
        ensure!(ran.stdout == "did\n" && ran.stderr.is_empty(), "{fill}: {ran:?}");
    }
    Ok(())
}

/// A small disk at the state directory, in a mount namespace of its own.
const DISK: &str = r#"
    mkdir -p "$HOME/.local/state" && mount -t tmpfs -o size=3m none "$HOME/.local/state" && cd "$PWD" || exit 99
    sandboxed() { "$PORTCULLIS" run --ask deny -- sh -c "$1"; echo "exit $?"; }
    sandboxed 'mkdir ~/.tool; head -c 100000000 /dev/zero > ~/.tool/x; echo filled'
    sandboxed 'echo UNLOGGED; touch unlogged'
    "$PORTCULLIS" home clear
    sandboxed 'mkdir ~/.tool && echo again'
    "$PORTCULLIS" audit verify > /dev/null && echo verified
"#;

fn a_full_disk_stops_everything_until_it_is_cleared(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut words = vec!["--mount"];
    if user.is_stranger() || !rustix::process::geteuid().is_root() {
        words.extend(["--user", "--map-current-user", "--keep-caps"]);
    }
    let mut command = scene.user().command("unshare".as_ref());
    command.args(words).args(["--", "bash", "-c", DISK]);
    scene.enter(&mut command);
    command.env("PORTCULLIS", portcullis(user)?).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    let ran = Finished::run(&mut command)?;
    ensure!(ran.code() != 99, "a disk cannot be mounted, also not in a user namespace: {ran:#?}");
    let lines: Vec<&str> = ran.stdout.lines().filter(|line| !line.contains("removed")).collect();
    ensure!(lines == ["filled", "exit 0", "exit 125", "again", "exit 0", "verified"], "{ran:#?}");
    let is_said = |line: &str| line.starts_with("portcullis: ") && line.contains("No space left on device");
    ensure!(ran.stderr.lines().any(is_said), "{ran:#?}");
    ensure!(!scene.project().join("unlogged").exists(), "something was done that is in no log: {ran:#?}");
    Ok(())
}
