//! Undo of what commands and tools changed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::json;

as_each_user!(
    edits_of_the_user_stay,
    tools_are_undone,
    what_is_too_large_is_said,
    nothing_is_kept_of_nothing,
    a_name_with_a_line_break_stays_in_its_line,
    names_that_are_not_utf8_are_in_json,
);

/// Each name with its kind, mode and attributes, a file's time and content, and which names are the same file.
pub(crate) fn tree(top: &Path) -> Result<BTreeMap<PathBuf, String>> {
    tree_of(top, true)
}

/// The same without times.
pub(crate) fn tree_without_times(top: &Path) -> Result<BTreeMap<PathBuf, String>> {
    tree_of(top, false)
}

fn tree_of(top: &Path, has_times: bool) -> Result<BTreeMap<PathBuf, String>> {
    fn walk(
        (top, has_times): (&Path, bool),
        directory: &Path,
        found: &mut BTreeMap<PathBuf, String>,
        first: &mut BTreeMap<u64, PathBuf>,
    ) -> Result<()> {
        let mut paths =
            fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
        paths.sort();
        for path in paths {
            let status = path.symlink_metadata()?;
            let name = path.strip_prefix(top)?.to_owned();
            let mode = status.permissions().mode();
            let what = if status.is_symlink() {
                format!("link {}", fs::read_link(&path)?.display())
            } else if status.is_dir() {
                format!("directory {mode:o}{}", attributes(&path)?)
            } else if !status.is_file() {
                format!("special {mode:o}")
            } else {
                let same = first.entry(status.ino()).or_insert_with(|| name.clone()).clone();
                let time = has_times.then(|| format!(" of {}.{:09}", status.mtime(), status.mtime_nsec()));
                let time = time.unwrap_or_default();
                let (uid, same, content) = (status.uid(), same.display(), fs::read(&path)?);
                format!("file {mode:o}{} {uid}{time} as {same} {content:?}", attributes(&path)?)
            };
            found.insert(name, what);
            if status.is_dir() {
                walk((top, has_times), &path, found, first)?;
            }
        }
        Ok(())
    }
    let mut found = BTreeMap::new();
    walk((top, has_times), top, &mut found, &mut BTreeMap::new())?;
    Ok(found)
}

/// Returns the attributes that users set.
fn attributes(path: &Path) -> Result<String> {
    let mut names = vec![0; 4096];
    let count = rustix::fs::llistxattr(path, names.as_mut_slice())?;
    let names = String::from_utf8(names.get(..count).unwrap_or_default().to_vec())?;
    let mut found = String::new();
    for name in names.split('\0').filter(|name| name.starts_with("user.")) {
        let mut value = vec![0; 4096];
        let count = rustix::fs::lgetxattr(path, name, value.as_mut_slice())?;
        found += &format!(" {name}={:?}", value.get(..count).unwrap_or_default());
    }
    Ok(found)
}

/// Returns the names that differ.
pub(crate) fn difference(one: &BTreeMap<PathBuf, String>, other: &BTreeMap<PathBuf, String>) -> Vec<PathBuf> {
    let names = one.keys().chain(other.keys());
    let mut names: Vec<PathBuf> = names.filter(|name| one.get(*name) != other.get(*name)).cloned().collect();
    names.dedup();
    names
}

pub(crate) fn run(scene: &Scene, script: &str) -> Result<Finished> {
    let mut command = scene.portcullis_command(&["run", "--ask", "deny", "--", "sh", "-c", script])?;
    Finished::run(command.current_dir(scene.project()))
}

pub(crate) fn undo(scene: &Scene, arguments: &[&str]) -> Result<Finished> {
    let arguments = [&["undo", "--yes"], arguments].concat();
    let mut command = scene.portcullis_command(&arguments)?;
    Finished::run(command.current_dir(scene.project()))
}

fn edits_of_the_user_stay(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let lines: Vec<String> = (0..20).map(|number| format!("line {number}")).collect();
    let text = |changed: &[(usize, &str)]| {
        let mut lines = lines.clone();
        for (number, new) in changed {
            if let Some(line) = lines.get_mut(*number) {
                (*new).clone_into(line);
            }
        }
        lines.join("\n") + "\n"
    };
    for name in ["merged", "clash"] {
        scene.write(&scene.project().join(name), &text(&[]))?;
    }
    run(&scene, "sed -i 's/^line 2$/agent/' merged clash; mkdir n; echo x > n/x")?.ended_with(0)?;
    scene.write(&scene.project().join("merged"), &text(&[(2, "agent"), (15, "user")]))?;
    scene.write(&scene.project().join("clash"), &text(&[(2, "user")]))?;
    scene.write(&scene.project().join("n/own"), "the user's")?;
    let planned = undo(&scene, &["--dry-run"])?.ended_with(0)?;
    ensure!(planned.stdout.contains("your later edits stay"), "{planned:?}");
    let undone = undo(&scene, &[])?.ended_with(1)?;
    let read = |name: &str| fs::read_to_string(scene.project().join(name)).context(name.to_owned());
    ensure!(read("merged")? == text(&[(15, "user")]), "{undone:?}");
    ensure!(
        read("clash")? == text(&[(2, "user")]) && read("clash.portcullis-old")? == text(&[]),
        "{undone:?}"
    );
    ensure!(read("n/own")? == "the user's" && !scene.project().join("n/x").exists(), "{undone:?}");
    let redo =
        scene.portcullis_command(&["redo", "--yes", "--json"])?.current_dir(scene.project()).output()?;
    ensure!(read("merged")? == text(&[(2, "agent"), (15, "user")]), "{redo:?}");
    ensure!(!scene.project().join("clash.portcullis-old").exists(), "{redo:?}");
    Ok(())
}

fn tools_are_undone(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("file"), "first\n")?;
    let before = tree(&scene.project())?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    for (path, call) in [("file", "call-1"), ("new/deep/file", "call-2")] {
        let written = host.call(
            "file/write",
            &json!({ "path": scene.project().join(path), "content": "written\n", "callId": call }),
        )?;
        ensure!(written.get("error").is_none(), "{written}");
    }
    let shown = scene.portcullis_command(&["changes", "--json"])?.current_dir(scene.project()).output()?;
    let shown = String::from_utf8(shown.stdout)?;
    ensure!(shown.contains("\"call-1\"") && shown.contains("new/deep/file"), "{shown}");
    undo(&scene, &["call-2"])?.ended_with(0)?;
    ensure!(!scene.project().join("new").exists());
    undo(&scene, &["--all"])?.ended_with(0)?;
    ensure!(tree(&scene.project())? == before);
    drop(host);
    Ok(())
}

fn what_is_too_large_is_said(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = json!({
        "filesystem": { "allowRead": ["."], "allowWrite": ["."] },
        "undo": { "maxFileMib": 1 },
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    scene.write(&scene.project().join("large"), &"x".repeat(2 << 20))?;
    scene.write(&scene.project().join("small"), "first")?;
    let ran = run(&scene, "echo changed > large; echo changed > small")?;
    ensure!(ran.stderr.contains("cannot be undone"), "{ran:?}");
    let undone = undo(&scene, &[])?.ended_with(1)?;
    ensure!(undone.stdout.contains("undo.maxFileMib"), "{undone:?}");
    ensure!(fs::read_to_string(scene.project().join("small"))? == "first", "{undone:?}");
    Ok(())
}

fn nothing_is_kept_of_nothing(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("file"), "first")?;
    run(&scene, "cat file; ls; echo x > /tmp/own")?.ended_with(0)?;
    let state = scene.home().join(".local/state/portcullis/changes");
    ensure!(fs::read_dir(&state)?.count() == 0, "a record of nothing is in {}", state.display());
    let undone = undo(&scene, &[])?.ended_with(0)?;
    ensure!(undone.stdout.contains("nothing is left to undo"), "{undone:?}");
    Ok(())
}

fn a_name_with_a_line_break_stays_in_its_line(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let name = scene.project().join("a\nforged");
    scene.write(&name, "first\n")?;
    run(&scene, "echo changed > \"$(printf 'a\\012forged')\"\necho new > b")?.ended_with(0)?;
    ensure!(fs::read_to_string(&name)? == "changed\n", "control");
    let shown = scene.portcullis(&["changes", "--diff"])?.ended_with(0)?;
    // In the list, and above the difference.
    ensure!(shown.stdout.matches("a\\nforged").count() == 2, "{shown:?}");
    ensure!(shown.stdout.lines().all(|line| line.trim() != "forged"), "{shown:?}");
    // The command has a second line.
    ensure!(shown.stdout.contains('…'), "{shown:?}");
    let undone = undo(&scene, &[])?.ended_with(0)?;
    ensure!(undone.stdout.contains("2 names restored"), "{undone:?}");
    Ok(())
}

fn names_that_are_not_utf8_are_in_json(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    run(&scene, r"printf x > $(printf 'c\377d'); echo y > plain")?.ended_with(0)?;
    let verbs: [&[&str]; 4] = [
        &["changes", "--json"],
        &["undo", "--dry-run", "--json"],
        &["undo", "--yes", "--json"],
        &["redo", "--yes", "--json"],
    ];
    for verb in verbs {
        let mut command = scene.portcullis_command(verb)?;
        let ended = Finished::run(command.current_dir(scene.project()))?.ended_with(0)?;
        let shown: serde_json::Value = serde_json::from_str(&ended.stdout)?;
        ensure!(shown.to_string().contains(r"/c\\xFFd"), "{verb:?}: {shown}");
    }
    Ok(())
}
