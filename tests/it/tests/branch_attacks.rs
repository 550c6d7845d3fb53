//! Attacks on branches: on the directory of changes, on the review, and by a commit on what lies outside.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Finished, Scene, User};
use serde_json::Value;

use crate::branches::{branch, review, run};
use crate::undo::tree;

as_each_user!(
    no_command_reaches_the_directory_of_changes,
    a_command_cannot_mark_names_as_the_overlay_does,
    a_commit_writes_nothing_outside,
    what_changes_after_the_review_is_not_committed,
    set_id_bits_and_special_files_are_not_committed,
    a_commit_on_a_full_disk_changes_nothing,
    a_directory_that_becomes_a_repository_is_protected,
    a_killed_commit_is_taken_back_by_the_next_session,
);

/// Returns the directory of changes of a branch.
fn upper(scene: &Scene, name: &str) -> Result<PathBuf> {
    let all = scene.home().join(".local/state/portcullis/branches");
    let project = fs::read_dir(&all)?.next().context("a project")??.path();
    Ok(project.join(name).join("upper"))
}

fn no_command_reaches_the_directory_of_changes(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    run(&scene, "one", "echo first > a")?.ended_with(0)?;
    let upper = upper(&scene, "one")?;
    ensure!(fs::read_to_string(upper.join("a"))? == "first\n", "control");
    let path = upper.display();
    let attack = format!(
        "cat '{path}/a' && echo READ; echo evil > '{path}/planted' && echo WROTE; rm -rf '{path}' && echo REMOVED; \
         ls '{path}/..' && echo LISTED; ln -s '{path}' there; cat there/a && echo READ; \
         for fd in /proc/*/fd/*; do test -e $fd/planted && echo FOUND; done; \
         grep -l upperdir=/home /proc/*/mountinfo && echo NAMED; true"
    );
    for name in ["one", "two"] {
        let ran = run(&scene, name, &attack)?;
        for done in ["READ", "WROTE", "LISTED", "FOUND", "NAMED"] {
            ensure!(!ran.stdout.contains(done), "{name}: {ran:?}");
        }
    }
    ensure!(
        fs::read_to_string(upper.join("a"))? == "first\n" && !upper.join("planted").exists(),
        "it was changed"
    );
    Ok(())
}

fn a_command_cannot_mark_names_as_the_overlay_does(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    for name in ["d/one", "d/two", "file"] {
        scene.write(&scene.project().join(name), name)?;
    }
    let attack = "import os\n\
        def attempt(what, act):\n\
        \x20   try: act(); print('did', what)\n\
        \x20   except OSError as error: print('no', what, error.errno)\n\
        for name, value in [('opaque', b'y'), ('opaque', b'x'), ('redirect', b'/etc'), ('metacopy', b''), ('origin', b''), ('whiteout', b'y')]:\n\
        \x20   for space in ['user', 'trusted']:\n\
        \x20       for path in ['d', 'file']:\n\
        \x20           attempt(space + name + path, lambda: os.setxattr(path, space + '.overlay.' + name, value))\n\
        import stat\n\
        attempt('whiteout', lambda: os.mknod('d/one2', stat.S_IFCHR, os.makedev(0, 0)))\n\
        attempt('rename', lambda: os.rename('d', 'e'))\n\
        os.setxattr('file', 'user.tag', b'1'); print('control')\n";
    let mut command =
        scene.portcullis_command(&["run", "--ask", "deny", "--branch=one", "--", "python3", "-c", attack])?;
    let ran = Finished::run(command.current_dir(scene.project()))?.ended_with(0)?;
    ensure!(ran.stdout.ends_with("control\n"), "control: {ran:?}");
    let changes = review(&scene, "one")?;
    ensure!(changes.keys().collect::<Vec<_>>() == ["file"], "{changes:?}: {ran:?}");
    Ok(())
}

fn a_commit_writes_nothing_outside(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (project, outside) = (scene.project(), scene.outside());
    for name in ["d/x", "e/x"] {
        scene.write(&project.join(name), name)?;
    }
    scene.write(&outside.join("x"), "outside")?;
    let before = tree(&outside)?;
    let target = outside.display();
    let script = format!(
        "rm -r d; ln -s '{target}' d; echo evil > d/x; mkdir -p e; echo planted > e/x; echo new > e/new"
    );
    run(&scene, "one", &script)?;
    // Another program of the user's, as an agent could have it run, puts a link in the way of the commit.
    fs::rename(project.join("e"), scene.at("away"))?;
    symlink(&outside, project.join("e"))?;
    user.own(&project.join("e"))?;
    // And somebody plants links in the directory of changes itself.
    let upper = upper(&scene, "one")?;
    symlink(&outside, upper.join("planted"))?;
    branch(&scene, &["commit", "one", "--all", "--protected", "--overwrite", "--yes"])?;
    ensure!(tree(&outside)? == before, "a commit wrote outside");
    ensure!(project.join("planted").is_symlink(), "control: a link is committed as a link");
    Ok(())
}

fn what_changes_after_the_review_is_not_committed(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("a"), "first")?;
    run(&scene, "one", "echo harmless > a")?.ended_with(0)?;
    let shown: Value =
        serde_json::from_str(&branch(&scene, &["show", "one", "--json"])?.ended_with(0)?.stdout)?;
    let id = shown.get("review").and_then(Value::as_str).context("an id")?.to_owned();
    // The same length, and the time set back.
    run(&scene, "one", "touch -r a t; printf 'evil now\\n' > a; touch -r t a; rm t")?.ended_with(0)?;
    let told = branch(&scene, &["commit", "one", "--all", "--review", &id, "--yes"])?.ended_with(1)?;
    ensure!(told.stderr.contains("changed since review"), "{told:?}");
    ensure!(fs::read_to_string(scene.project().join("a"))? == "first", "it was committed");
    let shown: Value =
        serde_json::from_str(&branch(&scene, &["show", "one", "--json"])?.ended_with(0)?.stdout)?;
    let id = shown.get("review").and_then(Value::as_str).context("an id")?.to_owned();
    branch(&scene, &["commit", "one", "--all", "--review", &id, "--yes"])?.ended_with(0)?;
    ensure!(fs::read_to_string(scene.project().join("a"))?.starts_with("evil"), "control");
    Ok(())
}

fn set_id_bits_and_special_files_are_not_committed(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    run(&scene, "one", "mkfifo pipe; cp /bin/true program; chmod 755 program; echo x > plain")?
        .ended_with(0)?;
    // The sandbox refuses the bits, so they are set from outside.
    let program = upper(&scene, "one")?.join("program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o6755))?;
    let shown = branch(&scene, &["show", "one"])?.ended_with(0)?;
    ensure!(shown.stdout.contains("set-id bits are left off"), "{shown:?}");
    branch(&scene, &["commit", "one", "--all", "--yes"])?.ended_with(1)?;
    let mode = scene.project().join("program").metadata()?.permissions().mode();
    ensure!(mode & 0o7777 == 0o755, "{mode:o}");
    ensure!(!scene.project().join("pipe").exists() && scene.project().join("plain").exists(), "control");
    Ok(())
}

/// The state directory on a small file system, which the record of the commit fills.
const FULL: &str = r#"
    state="$HOME/.local/state" && mkdir -p "$state" && mount -t tmpfs -o size=6m none "$state" || exit 99
    head -c 3000000 /dev/zero | tr '\0' a > large && echo old > few && echo old > removed
    "$PORTCULLIS" run --ask deny --branch=one -- sh -c "echo new > few; echo changed > large; rm removed" || exit 98
    head -c 9000000 /dev/zero > "$state/fill"; truncate -s -500000 "$state/fill"; sha256sum few large removed
    "$PORTCULLIS" branch commit one --all --yes && exit 97
    sha256sum few large removed; rm "$state/fill"; ls -A | tr '\n' ' '; echo
    "$PORTCULLIS" branch commit one --all --yes && ls -A && cat few large
"#;

fn a_commit_on_a_full_disk_changes_nothing(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut command = scene.user().command("unshare".as_ref());
    command.args(["--mount", "--user", "--map-current-user", "--keep-caps", "--", "bash", "-c", FULL]);
    scene.enter(&mut command);
    command.env("PORTCULLIS", portcullis_it::portcullis(user)?).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    let ran = Finished::run(&mut command)?;
    ensure!(ran.code() == 0, "{ran:#?}");
    let is_sum = |line: &&str| line.bytes().take(64).filter(u8::is_ascii_hexdigit).count() == 64;
    let sums: Vec<&str> = ran.stdout.lines().filter(is_sum).collect();
    let (before, after) = sums.split_at_checked(3).context("six sums")?;
    ensure!(before == after && ran.stdout.contains("\nfew large removed \n"), "{ran:#?}");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    ensure!(said.matches("No space left").count() >= 2, "{ran:#?}");
    ensure!(ran.stdout.ends_with("few\nlarge\nnew\nchanged\n"), "control: {ran:#?}");
    Ok(())
}

/// Git reads settings from every directory that has the shape of a repository, whatever it is called.
fn a_directory_that_becomes_a_repository_is_protected(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("half/objects/x"), "")?;
    let script = "mkdir -p lib/objects lib/refs && echo ref: refs/heads/main > lib/HEAD && \
                  printf '[core]\\n\\tfsmonitor = ./evil\\n' > lib/config; \
                  mkdir half/refs; cp lib/HEAD lib/config half; echo x > plain";
    run(&scene, "one", script)?;
    let told = branch(&scene, &["commit", "one", "--all", "--yes"])?;
    ensure!(scene.project().join("plain").exists(), "control: {told:?}");
    for name in ["lib/config", "half/config"] {
        ensure!(!scene.project().join(name).exists(), "{name}: {told:?}");
    }
    Ok(())
}

fn a_killed_commit_is_taken_back_by_the_next_session(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    for number in 0..200 {
        scene.write(&scene.project().join(format!("file-{number}")), "first")?;
    }
    let before = tree(&scene.project())?;
    run(&scene, "one", "for name in file-*; do echo changed > $name; done")?.ended_with(0)?;
    let mut command = scene.portcullis_command(&["branch", "commit", "one", "--all", "--yes"])?;
    let mut child = command
        .current_dir(scene.project())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()?;
    // The first one in the order of a commit.
    let first = scene.project().join("file-0");
    let deadline = Deadline::start();
    while fs::read_to_string(&first)? == "first" {
        ensure!(!deadline.left().is_zero(), "the commit does not begin");
    }
    child.kill()?;
    child.wait()?;
    let between = tree(&scene.project())?;
    let changed = between.iter().filter(|(name, state)| before.get(*name) != Some(*state)).count();
    ensure!(changed > 0 && changed < 200, "control: {changed} files were committed");
    // An ordinary session, without a branch.
    let mut next = scene.portcullis_command(&["run", "--ask", "deny", "--", "true"])?;
    let next = Finished::run(next.current_dir(scene.project()))?.ended_with(0)?;
    ensure!(next.stderr.contains("is taken back"), "{next:?}");
    ensure!(tree(&scene.project())? == before, "{next:?}");
    // Taking it back was no change of the user's.
    branch(&scene, &["commit", "one", "--all", "--yes"])?.ended_with(0)?;
    ensure!(fs::read_to_string(&first)? == "changed\n", "control");
    Ok(())
}
