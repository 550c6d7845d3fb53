//! Undo where something is wrong: with the record, the disk, the permissions, or the project. Nothing is lost, and what
//! is wrong is said.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User, portcullis};

use crate::undo::{run, tree, undo};

as_each_user!(
    a_torn_record_costs_only_the_torn_part,
    a_file_that_became_a_directory_stays_one,
    without_permission_it_is_said_and_can_be_repeated,
    what_a_command_closes_is_undone_at_once,
    a_damaged_record_is_said,
    where_a_record_is_is_said,
    a_project_that_is_gone_is_said,
    a_project_that_was_made_anew_gets_its_files,
    a_full_disk_refuses_the_change,
    a_full_disk_loses_nothing_in_undo,
    another_file_system_is_undone_as_well,
);

/// Returns the only journal.
fn journal(scene: &Scene) -> Result<PathBuf> {
    let state = scene.home().join(".local/state/portcullis/changes");
    let session = fs::read_dir(&state)?.next().context("no record")??;
    Ok(session.path().join("store/journal"))
}

fn a_torn_record_costs_only_the_torn_part(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    for name in ["a", "b", "c"] {
        scene.write(&scene.project().join(name), "first")?;
    }
    run(&scene, "echo changed > a; echo changed > b; echo changed > c")?.ended_with(0)?;
    let journal = journal(&scene)?;
    let text = fs::read_to_string(&journal)?;
    let recorded = text.lines().position(|line| line.contains("project/b\"")).context("no record of b")?;
    let torn: Vec<&str> = text
        .lines()
        .enumerate()
        .map(|(number, line)| if number == recorded { line.get(..30).unwrap_or(line) } else { line })
        .collect();
    fs::write(&journal, torn.join("\n"))?;
    OpenOptions::new().append(true).open(&journal)?.write_all(b"\n\xff\0{ \"record\": ")?;
    let shown = scene.portcullis(&["changes"])?.ended_with(0)?;
    ensure!(shown.stdout.contains("2 lines of its record are damaged"), "{shown:?}");
    let undone = undo(&scene, &[])?;
    let read = |name: &str| fs::read_to_string(scene.project().join(name));
    ensure!(read("a")? == "first" && read("c")? == "first", "{undone:?}");
    // Nothing is known of it, so it stays.
    ensure!(read("b")? == "changed\n", "{undone:?}");
    Ok(())
}

fn a_file_that_became_a_directory_stays_one(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let at = |name: &str| scene.project().join(name);
    scene.write(&at("file"), "first")?;
    scene.write(&at("d/x"), "first")?;
    run(&scene, "echo changed > file; rm -r d")?.ended_with(0)?;
    fs::remove_file(at("file"))?;
    scene.write(&at("file/own"), "the user's")?;
    scene.write(&at("d"), "the user's")?;
    let undone = undo(&scene, &[])?.ended_with(1)?;
    ensure!(fs::read_to_string(at("file/own"))? == "the user's", "{undone:?}");
    ensure!(fs::read_to_string(at("d"))? == "the user's", "{undone:?}");
    ensure!(fs::read_to_string(at("file.portcullis-old"))? == "first", "{undone:?}");
    ensure!(fs::read_to_string(at("d.portcullis-old/x"))? == "first", "{undone:?}");
    ensure!(undone.stdout.contains("holds files that the session did not make"), "{undone:?}");
    Ok(())
}

fn without_permission_it_is_said_and_can_be_repeated(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let at = |name: &str| scene.project().join(name);
    for name in ["d/gone", "d/changed", "other"] {
        scene.write(&at(name), "first")?;
    }
    let before = tree(&scene.project())?;
    run(&scene, "rm d/gone; echo changed > d/changed; echo changed > other; echo new > d/new")?
        .ended_with(0)?;
    let mode = |mode| fs::set_permissions(at("d"), fs::Permissions::from_mode(mode));
    mode(0o555)?;
    let undone = undo(&scene, &[])?;
    ensure!(fs::read_to_string(at("other"))? == "first", "{undone:?}");
    // Permissions do not bind root.
    let is_bound = user.is_stranger() || !rustix::process::geteuid().is_root();
    if is_bound {
        let is_said = undone.stdout.contains("Permission denied");
        ensure!(is_said && undone.code() == 1 && at("d/new").exists(), "{undone:?}");
    }
    mode(0o755)?;
    let again = undo(&scene, &["--all"])?;
    ensure!(tree(&scene.project())? == before, "{again:?}");
    Ok(())
}

fn what_a_command_closes_is_undone_at_once(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let at = |name: &str| scene.project().join(name);
    scene.write(&at("d/changed"), "first")?;
    for name in ["z", "removed", "kept"] {
        scene.write(&at(name), "first")?;
    }
    let before = tree(&scene.project())?;
    let script = "echo changed > z; echo changed > d/changed; chmod 000 d; mkdir -p t/in; echo x > t/in/k; \
                  chmod 555 t/in; chmod 000 t; echo precious > closed; chmod 000 closed removed kept; rm -f removed; \
                  { echo changed > kept; } 2> /dev/null || true";
    run(&scene, script)?.ended_with(0)?;
    ensure!(fs::read_to_string(at("z"))? == "changed\n", "control");
    let planned = undo(&scene, &["--dry-run"])?.ended_with(0)?;
    ensure!(!planned.stdout.contains("leave"), "{planned:?}");
    let undone = undo(&scene, &[])?.ended_with(0)?;
    ensure!(tree(&scene.project())? == before, "{undone:?}");
    let mut redo = scene.portcullis_command(&["redo", "--yes"])?;
    let redone = Finished::run(redo.current_dir(scene.project()))?.ended_with(0)?;
    let mode = at("t").metadata()?.permissions().mode() & 0o777;
    ensure!(mode == 0 && at("closed").exists(), "{redone:?}");
    undo(&scene, &[])?.ended_with(0)?;
    ensure!(tree(&scene.project())? == before, "{redone:?}");
    Ok(())
}

fn a_damaged_record_is_said(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("a"), "first")?;
    run(&scene, "echo changed > a")?.ended_with(0)?;
    fs::write(journal(&scene)?, "garbage\n")?;
    let undone = undo(&scene, &[])?.ended_with(1)?;
    ensure!(undone.stderr.contains("1 line of its record is damaged"), "{undone:?}");
    ensure!(fs::read_to_string(scene.project().join("a"))? == "changed\n", "{undone:?}");
    Ok(())
}

fn where_a_record_is_is_said(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let project = scene.project();
    scene.write(&project.join("sub/a"), "first")?;
    run(&scene, "echo changed > sub/a")?.ended_with(0)?;
    let mut below = scene.portcullis_command(&["undo", "--yes"])?;
    let below = Finished::run(below.current_dir(project.join("sub")))?.ended_with(0)?;
    let said = below.stdout.replace("\n", " ");
    ensure!(said.contains("--project") && said.contains(project.to_str().context("a path")?), "{below:?}");
    undo(&scene, &["--project", "/nonexistent"])?.ended_with(1)?;
    // Another session has a record, too.
    run(&scene, "echo again > sub/a")?.ended_with(0)?;
    undo(&scene, &[])?.ended_with(0)?;
    let nothing = undo(&scene, &[])?.ended_with(0)?;
    ensure!(nothing.stdout.contains("changes --list") && nothing.stdout.contains("--session"), "{nothing:?}");
    Ok(())
}

fn a_project_that_is_gone_is_said(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let project = scene.project();
    scene.write(&project.join("d/file"), "first")?;
    run(&scene, "echo changed > d/file; rm -r d")?.ended_with(0)?;
    let away = scene.at("away");
    fs::rename(&project, &away)?;
    let named = project.to_str().context("a path")?;
    let undone = Finished::run(
        scene.portcullis_command(&["undo", "--yes", "--project", named])?.current_dir(scene.home()),
    )?;
    ensure!(undone.code() != 0 && !undone.code().to_string().is_empty(), "{undone:?}");
    let said = format!("{}{}", undone.stdout, undone.stderr);
    ensure!(said.contains("No such file or directory") || said.contains("removed or moved"), "{undone:?}");
    ensure!(!project.exists() && fs::read_dir(&away)?.count() == 0, "{undone:?}");
    // Control: when it is there again, the same gives the file back.
    fs::rename(&away, &project)?;
    let undone = undo(&scene, &["--all"])?;
    ensure!(fs::read_to_string(project.join("d/file"))? == "first", "{undone:?}");
    Ok(())
}

fn a_project_that_was_made_anew_gets_its_files(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let project = scene.project();
    scene.write(&project.join("d/file"), "first")?;
    run(&scene, "rm -r d; echo x > made")?.ended_with(0)?;
    fs::remove_dir_all(&project)?;
    fs::create_dir(&project)?;
    user.own(&project)?;
    scene.write(&project.join("own"), "the user's")?;
    let undone = undo(&scene, &[])?;
    ensure!(fs::read_to_string(project.join("d/file"))? == "first", "{undone:?}");
    ensure!(fs::read_to_string(project.join("own"))? == "the user's", "{undone:?}");
    Ok(())
}

/// Runs a script that has the variable `PORTCULLIS` in a mount namespace of its own.
pub(crate) fn in_own_mounts(scene: &Scene, script: &str) -> Result<Finished> {
    let mut words = vec!["--mount"];
    if scene.user().is_stranger() || !rustix::process::geteuid().is_root() {
        words.extend(["--user", "--map-current-user", "--keep-caps"]);
    }
    let mut command = scene.user().command("unshare".as_ref());
    command.args(words).args(["--", "bash", "-c", script]);
    scene.enter(&mut command);
    command.env("PORTCULLIS", portcullis(scene.user())?).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    let ran = Finished::run(&mut command)?;
    ensure!(ran.code() != 99, "a disk cannot be mounted, also not in a user namespace: {ran:#?}");
    Ok(ran)
}

/// The record is on a small disk. What cannot be recorded is not changed.
const SMALL_RECORD: &str = r#"
    head -c 2000000 /dev/urandom > large; cp large copy; echo first > small
    mkdir -p "$HOME/.local/state" && mount -t tmpfs -o size=1m none "$HOME/.local/state" && cd "$PWD" || exit 99
    "$PORTCULLIS" run --ask deny -- sh -c 'head -c 9000 /dev/zero > small; echo x >> large; echo "status $?"; mv copy large; echo "status $?"'
    cmp large copy && echo whole
    cat /dev/zero > "$HOME/.local/state/filler" 2> /dev/null
    "$PORTCULLIS" undo --yes >&2; echo "undo $?"
    mount -o remount,size=9m "$HOME/.local/state" || exit 99
    "$PORTCULLIS" undo --all --yes > /dev/null; echo "again $?"; cat small; cmp large copy && echo whole
"#;

fn a_full_disk_refuses_the_change(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let ran = in_own_mounts(&scene, SMALL_RECORD)?;
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let is_refused =
        |line: Option<&&str>| line.is_some_and(|line| line.starts_with("status ") && *line != "status 0");
    ensure!(is_refused(lines.first()) && is_refused(lines.get(1)), "{ran:#?}");
    // Undo has nowhere to record either, until there is room.
    ensure!(lines.get(2..) == Some(&["whole", "undo 1", "again 0", "first", "whole"][..]), "{ran:#?}");
    ensure!(ran.stderr.contains("No space left on device"), "{ran:#?}");
    ensure!(ran.stderr.contains("portcullis changes prune"), "{ran:#?}");
    Ok(())
}

/// The project is on a small disk, and full when its files are to be given back.
const SMALL_PROJECT: &str = r#"
    mkdir disk && mount -t tmpfs -o size=4m none disk && cd disk || exit 99
    head -c 1500000 /dev/urandom > one; cp one two; sha256sum one two > sums
    "$PORTCULLIS" run --ask deny -- sh -c 'rm one; echo changed > two'
    head -c 3900000 /dev/zero > filler; echo the users > own
    "$PORTCULLIS" undo --yes; echo "undo $?"
    cat own; ls -A | grep -c portcullis-undo
    rm filler
    "$PORTCULLIS" undo --all --yes > /dev/null; echo "again $?"
    sha256sum -c --quiet sums && echo equal
"#;

fn a_full_disk_loses_nothing_in_undo(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let ran = in_own_mounts(&scene, SMALL_PROJECT)?;
    ensure!(ran.stdout.contains("No space left on device"), "{ran:#?}");
    ensure!(ran.stdout.contains("undo 1\nthe users\n0\n"), "{ran:#?}");
    ensure!(ran.stdout.contains("equal"), "{ran:#?}");
    Ok(())
}

/// The project is on another file system than the record.
const OTHER_DISK: &str = r#"
    mkdir disk && mount -t tmpfs -o size=9m none disk && cd disk || exit 99
    mkdir -p d/e; echo first > a; ln a d/hard; echo first > d/e/x; ln -s a link; chmod 640 a
    listed() { find . -printf '%p %m %l %n\n' | sort; find . -type f -exec sha256sum {} + | sort; }
    listed > ../before
    "$PORTCULLIS" run --ask deny -- sh -c 'rm -r d; echo changed > a; mv a b; rm link; mkdir a; chmod 600 b'
    listed > ../changed; cmp -s ../before ../changed && echo control
    "$PORTCULLIS" undo --yes; echo "undo $?"
    listed | diff ../before - && echo equal
"#;

fn another_file_system_is_undone_as_well(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let ran = in_own_mounts(&scene, OTHER_DISK)?;
    ensure!(ran.stdout.contains("undo 0\nequal") && !ran.stdout.contains("control"), "{ran:#?}");
    Ok(())
}
