//! Undo of changes of modes, times and attributes alone.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User};

use crate::undo::{run, tree, undo};

as_each_user!(
    every_way_to_change_a_status_comes_back,
    a_status_that_changes_before_the_content_comes_back,
    a_status_is_recorded_without_a_copy,
    attributes_that_the_user_sets_later_stay,
);

/// Makes files and directories with times and attributes of their own.
const FILES: &str = r#"
import os
for name in ["a", "b", "d/x", "closed"]:
    os.makedirs("d", exist_ok=True)
    open(name, "w").write("first " + name)
    os.setxattr(name, "user.tag", b"first")
    os.utime(name, ns=(10**18, 10**18 + 123456789))
os.symlink("b", "link")
os.chmod("closed", 0o400)
os.setxattr("d", "user.tag", b"first")
os.utime("d", ns=(10**18, 10**18 + 987654321))
"#;

/// What a command does, as a script of Python.
const WAYS: [&str; 14] = [
    "os.utime('a', (1, 2))",
    "os.utime('closed', (1, 2))",
    "os.utime('link', (1, 2))",
    "os.utime('d', (1, 2)); os.utime('d/x')",
    "os.setxattr('a', 'user.tag', b'other'); os.setxattr('a', 'user.new', b'new')",
    "os.removexattr('a', 'user.tag')",
    "os.setxattr('link', 'user.tag', b'by another name')",
    "os.setxattr('d', 'user.tag', b'other'); os.removexattr('d/x', 'user.tag')",
    "os.chmod('a', 0o600); os.utime('a', (1, 2)); os.setxattr('a', 'user.tag', b'')",
    "os.chmod('d', 0o700); os.utime('d', (1, 2))",
    "os.utime('a', (1, 2)); os.rename('a', 'moved'); os.chmod('moved', 0o777)",
    "os.utime('b', (1, 2)); os.link('b', 'c'); os.setxattr('c', 'user.tag', b'other')",
    "os.setxattr('a', 'user.tag', b'other'); os.remove('a')",
    // utime(2) and lsetxattr(2), which Python does not use.
    "c = ctypes.CDLL(None); assert c.utime(b'a', None) == 0; \
     assert c.lsetxattr(b'b', b'user.tag', b'other', 5, 0) == 0 and c.lremovexattr(b'd/x', b'user.tag') == 0",
];

fn python(scene: &Scene, script: &str) -> Result<()> {
    let mut command = scene.program("python3".as_ref());
    scene.enter(&mut command);
    Finished::run(command.args(["-c", script]))?.ended_with(0)?;
    Ok(())
}

fn command(scene: &Scene, script: &str) -> Result<()> {
    run(scene, &format!("python3 -c \"import ctypes, os; {script}\""))?.ended_with(0)?;
    Ok(())
}

/// The tree, with the times of directories that no name was made in.
fn look(scene: &Scene) -> Result<(BTreeMap<PathBuf, String>, i64)> {
    let directory = scene.project().join("d").metadata()?;
    Ok((tree(&scene.project())?, directory.mtime_nsec()))
}

fn every_way_to_change_a_status_comes_back(user: User) -> Result<()> {
    for way in WAYS {
        let scene = Scene::new(user)?;
        python(&scene, FILES)?;
        let before = look(&scene)?;
        command(&scene, way)?;
        let changed = look(&scene)?;
        ensure!(changed != before, "control: `{way}` changed nothing");
        let undone = undo(&scene, &[])?.ended_with(0)?;
        ensure!(look(&scene)? == before, "`{way}`: {undone:?}\n{:#?}\n{before:#?}", look(&scene)?);
        let mut redo = scene.portcullis_command(&["redo", "--yes"])?;
        let redone = Finished::run(redo.current_dir(scene.project()))?.ended_with(0)?;
        ensure!(look(&scene)? == changed, "`{way}`: {redone:?}\n{:#?}\n{changed:#?}", look(&scene)?);
        undo(&scene, &[])?.ended_with(0)?;
        ensure!(look(&scene)? == before, "`{way}` again");
    }
    Ok(())
}

/// The content is recorded later than time and attributes, by the same call or the next one.
fn a_status_that_changes_before_the_content_comes_back(user: User) -> Result<()> {
    const STATUS: &str =
        "os.utime('a', (1, 2)); os.setxattr('b', 'user.tag', b'other'); os.utime('d/x', (3, 4))";
    const CONTENT: &str = "open('a', 'w').write('other'); os.remove('b'); os.rename('d/x', 'x')";
    for calls in [vec![format!("{STATUS}; {CONTENT}")], vec![STATUS.to_owned(), CONTENT.to_owned()]] {
        let scene = Scene::new(user)?;
        python(&scene, FILES)?;
        let before = look(&scene)?.0;
        // One session, so that one undo takes back both.
        let script: Vec<String> =
            calls.iter().map(|call| format!("python3 -c \"import os; {call}\"")).collect();
        run(&scene, &script.join("; "))?.ended_with(0)?;
        ensure!(!scene.project().join("b").exists(), "control");
        let undone = undo(&scene, &["--all"])?.ended_with(0)?;
        ensure!(look(&scene)?.0 == before, "{undone:?}\n{:#?}\n{before:#?}", look(&scene)?);
    }
    Ok(())
}

fn a_status_is_recorded_without_a_copy(user: User) -> Result<()> {
    for (script, is_copied) in
        [("os.utime('a', (1, 2)); os.setxattr('b', 'user.tag', b'')", false), ("open('a', 'a')", true)]
    {
        let scene = Scene::new(user)?;
        python(&scene, FILES)?;
        // A shorter content would be in the record itself.
        python(&scene, "open('a', 'w').write('a' * 1000); open('b', 'w').write('b' * 1000)")?;
        command(&scene, script)?;
        let records = scene.home().join(".local/state/portcullis/changes");
        let record = fs::read_dir(&records)?.next().context("a record")??.path();
        let copies = fs::read_dir(record.join("store/content"))?.count();
        ensure!((copies > 0) == is_copied, "`{script}`: {copies} copies");
    }
    Ok(())
}

/// In a text into which the user's edits are merged, in a file that only got another mode, in one that only got another
/// attribute, and in one that cannot be merged. The control has no later attributes.
fn attributes_that_the_user_sets_later_stay(user: User) -> Result<()> {
    for is_later in [true, false] {
        let scene = Scene::new(user)?;
        python(&scene, FILES)?;
        python(&scene, "open('binary', 'wb').write(b'\\0first')")?;
        command(
            &scene,
            "open('a', 'w').write('agent'); os.setxattr('a', 'user.tag', b'agent'); os.chmod('b', 0o600); \
             os.setxattr('d/x', 'user.tag', b'agent'); open('binary', 'wb').write(b'\\0agent')",
        )?;
        // Times of files have steps.
        std::thread::sleep(Duration::from_millis(50));
        if is_later {
            python(
                &scene,
                "import os\nfor name in ['a', 'b', 'd/x', 'binary']: os.setxattr(name, 'user.own', b'own')\nos.chmod('a', 0o640)",
            )?;
        }
        let undone = undo(&scene, &[])?.ended_with(i32::from(is_later))?;
        let found = tree(&scene.project())?;
        let has =
            |name: &str, what: &str| found.get(&PathBuf::from(name)).is_some_and(|text| text.contains(what));
        for name in ["a", "b", "d/x", "binary"] {
            ensure!(has(name, "user.own=") == is_later, "{name}: {undone:?}\n{found:#?}");
        }
        let tag = format!("user.tag={:?}", b"first");
        // The text is merged, with its mode and each attribute.
        ensure!(has("a", &format!("{:?}", b"first a")) && has("a", &tag), "{undone:?}\n{found:#?}");
        ensure!(has("a", "100640") == is_later, "{undone:?}\n{found:#?}");
        ensure!(has("d/x", &tag), "{undone:?}\n{found:#?}");
        ensure!(has("binary", &format!("{:?}", b"\0first")) != is_later, "{undone:?}\n{found:#?}");
    }
    Ok(())
}
