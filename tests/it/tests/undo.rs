//! Undo of what commands and tools changed: real programs, and attacks on the record.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::json;

as_each_user!(
    programs_are_undone,
    edits_of_the_user_stay,
    tools_are_undone,
    the_record_is_out_of_reach,
    what_is_too_large_is_said,
    nothing_is_kept_of_nothing,
);

/// Changes of real programs, in a project with files, directories, links, hard links and a repository.
const PROGRAMS: [&str; 44] = [
    "echo other > a",
    "echo more >> a",
    ": > a",
    "rm a",
    "rm -r d",
    "rm -rf * .hidden",
    "mv a z",
    "mv a b",
    "mv d e",
    "mv d e && echo x > e/new && rm e/x && mv e/sub f",
    "mkdir n && echo 1 > n/1 && mkdir -p n/o/p && touch n/o/p/q",
    "mkdir n && touch n/1 && rm -r n && echo file > n",
    "rm -r d && echo file > d",
    "rm a && mkdir a && echo 1 > a/1",
    "rm -r d && ln -s /etc d",
    "ln -sfn b link",
    "rm link && echo file > link",
    "ln a linked",
    "ln a linked && echo by-link > linked",
    "rm hard",
    "rm hard d/same",
    "echo in-place > hard",
    "cp hard tmp && echo x >> tmp && mv tmp hard",
    "cp -a d copied && rm -r d && mv copied d && echo 1 > d/x",
    "mv a tmp && mv b a && mv tmp b",
    "mv d tmp && mkdir d && mv tmp d/inside",
    "for i in 1 2 3 4 5 6 7 8; do echo $i > many$i; done; rm many3; mv many4 many5",
    "sed -i s/first/second/ a b d/x",
    "sed -i.bak s/first/second/ a",
    "perl -pi -e 's/first/second/' a d/x",
    "perl -e 'open F, \"+<\", \"a\"; seek F, 2, 0; print F \"XX\"; close F; truncate \"b\", 1'",
    "dd if=/dev/zero of=a bs=1 count=3 conv=notrunc 2>/dev/null",
    "truncate -s 0 a; truncate -s 100000 b",
    "tar cf t.tar d a && rm -r d a && tar xf t.tar && rm t.tar && echo 1 > d/x",
    "install -m 755 a d/x",
    "cp -p a script.sh && chmod 600 script.sh",
    "python3 -c 'import os,shutil; shutil.move(\"d\", \"e\"); shutil.copytree(\"e\", \"d\"); open(\"d/x\",\"w\").write(\"p\"); os.replace(\"a\", \"b\")'",
    "python3 -c 'import sqlite3; c=sqlite3.connect(\"data.db\"); c.execute(\"create table t(x)\"); c.executemany(\"insert into t values(?)\", [(i,) for i in range(999)]); c.commit(); c.execute(\"delete from t where x%2\"); c.commit()'",
    "find . -name x -delete; find d -type f -exec sh -c 'echo f > \"$1\"' _ {} \\;",
    "printf '\\377\\000' > \"$(printf 'n\\377me')\"; mkdir \"two words\"; touch \"two words/a\nb\"",
    "git init -q new && cd new && git -c user.name=n -c user.email=e commit -q --allow-empty -m one && git checkout -q -b other",
    "cd repo && echo changed > tracked && git add -A && git -c user.name=n -c user.email=e commit -q -m two",
    "cd repo && git checkout -q -b side && git rm -q tracked && git -c user.name=n -c user.email=e commit -q -m gone",
    "cd repo && echo junk > untracked && git clean -qfdx && git reset -q --hard && git branch -q b1 && git pack-refs --all && git gc -q",
];

/// Each name with its kind, mode and content, and which names are the same file.
fn tree(top: &Path) -> Result<BTreeMap<PathBuf, String>> {
    fn walk(
        top: &Path,
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
                format!("directory {mode:o}")
            } else {
                let same = first.entry(status.ino()).or_insert_with(|| name.clone()).clone();
                format!("file {mode:o} {} as {} {:?}", status.uid(), same.display(), fs::read(&path)?)
            };
            found.insert(name, what);
            if status.is_dir() {
                walk(top, &path, found, first)?;
            }
        }
        Ok(())
    }
    let mut found = BTreeMap::new();
    walk(top, top, &mut found, &mut BTreeMap::new())?;
    Ok(found)
}

/// Returns the names that differ.
fn difference(one: &BTreeMap<PathBuf, String>, other: &BTreeMap<PathBuf, String>) -> Vec<PathBuf> {
    let names = one.keys().chain(other.keys());
    let mut names: Vec<PathBuf> = names.filter(|name| one.get(*name) != other.get(*name)).cloned().collect();
    names.dedup();
    names
}

fn run(scene: &Scene, script: &str) -> Result<Finished> {
    let mut command = scene.portcullis_command(&["run", "--ask", "deny", "--", "sh", "-c", script])?;
    Finished::run(command.current_dir(scene.project()))
}

fn undo(scene: &Scene, arguments: &[&str]) -> Result<Finished> {
    let arguments = [&["undo", "--yes"], arguments].concat();
    let mut command = scene.portcullis_command(&arguments)?;
    Finished::run(command.current_dir(scene.project()))
}

/// Makes the files that the programs change, as the user.
fn prepare(scene: &Scene) -> Result<()> {
    let script = "echo first a > a; echo first b > b; echo first hidden > .hidden; mkdir -p d/sub; \
                  echo first x > d/x; echo first y > d/sub/y; ln a hard; ln a d/same; ln -s a link; \
                  printf '#!/bin/sh\\necho first\\n' > script.sh; chmod 750 script.sh; mkdir empty; \
                  git init -q repo && cd repo && echo first > tracked && echo kept > ignored && \
                  echo ignored > .gitignore && git add -A && \
                  git -c user.name=n -c user.email=e commit -q -m one";
    let mut command = scene.program("/bin/sh".as_ref());
    scene.enter(&mut command);
    Finished::run(command.args(["-c", script]).current_dir(scene.project()))?.ended_with(0)?;
    Ok(())
}

fn programs_are_undone(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    prepare(&scene)?;
    let before = tree(&scene.project())?;
    let mut failures = Vec::new();
    for program in PROGRAMS {
        let ran = run(&scene, program)?;
        let changed = tree(&scene.project())?;
        if ran.code() != 0 || changed == before {
            failures.push(format!("control: `{program}` changed nothing or failed: {ran:?}"));
        }
        let undone = undo(&scene, &[])?;
        let after = tree(&scene.project())?;
        if undone.code() != 0 || after != before {
            failures.push(format!("`{program}`: {:?}: {undone:?}", difference(&before, &after)));
            // The next one begins with the same files.
            fs::remove_dir_all(scene.project())?;
            fs::create_dir(scene.project())?;
            user.own(&scene.project())?;
            prepare(&scene)?;
            ensure!(failures.len() < 12, "{failures:#?}");
        }
    }
    ensure!(failures.is_empty(), "{failures:#?}");
    Ok(())
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

fn the_record_is_out_of_reach(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let state = scene.home().join(".local/state/portcullis/changes");
    let outside = scene.at("outside");
    scene.write(&outside.join("x"), "the user's")?;
    scene.write(&scene.project().join("d/x"), "first")?;
    let place = state.display();
    let script = format!(
        "echo changed > d/x; ls {place} && echo seen; echo x > {place}/x; rm -rf {place}; \
         for link in /proc/*/fd/*; do readlink $link; done | grep changes; true"
    );
    let ran = run(&scene, &script)?;
    ensure!(ran.stdout.is_empty(), "{ran:?}");
    // Control: the record is there for the user.
    ensure!(fs::read_dir(&state)?.count() == 1, "no record in {place}");
    // A directory that leads out of the project by now.
    fs::rename(scene.project().join("d"), scene.project().join("away"))?;
    symlink(&outside, scene.project().join("d"))?;
    undo(&scene, &[])?;
    ensure!(fs::read_to_string(outside.join("x"))? == "the user's");
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
