//! Changes of real programs, and undo gives everything back: names, contents, modes, times, links and attributes.
//!
//! Each line of `undo/programs.txt` is a script. It runs in a directory of its own with the same files, many of them in
//! one session. A line that uses a program which is not installed is skipped.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Scene, User};

use crate::undo::{difference, run, tree, undo};

as_each_user!(programs_are_undone);

const PROGRAMS: &str = include_str!("undo/programs.txt");
/// Programs that are not installed everywhere.
const OPTIONAL: [&str; 24] = [
    "ar",
    "bzip2",
    "ed",
    "ex",
    "flock",
    "gcc",
    "git",
    "jq",
    "make",
    "node",
    "npm",
    "patch",
    "perl",
    "python3",
    "rsync",
    "sqlite3",
    "strip",
    "unzip",
    "vim",
    "xz",
    "zip",
    "zsh",
    "zstd",
    "fallocate",
];
/// The variable that makes every line run, and not only one of several.
const EVERY: &str = "PORTCULLIS_EVERY_PROGRAM";
const ONE_OF: usize = 5;
/// The fewest lines that can run.
const FEWEST: usize = 250;
/// The lines that run in one session.
const TOGETHER: usize = 40;

/// Makes the files that the programs change.
const FILES: &str = r#"
set -e
export HOME=/nonexistent
umask 022
echo first a > a; echo first b > b; echo first hidden > .hidden
mkdir -p d/sub empty mod pkg dep
echo first x > d/x; echo first y > d/sub/y
ln a hard; ln a d/same; ln -s a link
printf '#!/bin/sh\necho first\n' > script.sh; chmod 750 script.sh
printf 'one\ntwo\nthree\nfour\nfive\nsix\nseven\n' > words
printf 'a\nb\n' > names
truncate -s 200000 sparse; echo end >> sparse
echo tagged > tagged; python3 -c 'import os; os.setxattr("tagged", "user.tag", b"1")' || true
echo 'x = 1' > mod/m.py
echo '{ "name": "pkg", "version": "1.0.0" }' > pkg/package.json
echo '{ "name": "dep", "version": "1.0.0" }' > dep/package.json
printf '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n' > prog.c
printf 'all: prog\nprog: prog.c\n\tcc -o prog prog.c\nclean:\n\trm -f prog b\ninstall: all\n\tinstall -D prog $(DESTDIR)/bin/prog\n' > Makefile
printf -- '--- words\n+++ words\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n' > change.patch
if command -v zip > /dev/null; then zip -q arch.zip a d/x; fi
if command -v sqlite3 > /dev/null; then sqlite3 have.db 'create table t(x); create table u(y); insert into t values(1);'; fi
for name in repo repo2; do
    git init -q -b main $name
    (cd $name && echo first > tracked && echo kept > ignored && echo ignored > .gitignore && git add -A &&
        git -c user.name=n -c user.email=e commit -q -m one)
done
"#;

/// What each script finds around it.
const AROUND: &str = "export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e \
                      GIT_CONFIG_GLOBAL=/dev/null LC_ALL=C.UTF-8; umask 022\n";

fn is_runnable(line: &str, missing: &[&str]) -> bool {
    let mut words = line.split(|character: char| !character.is_ascii_alphanumeric());
    !words.any(|word| missing.contains(&word))
}

fn programs_are_undone(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let shell = |script: &str| {
        let mut command = scene.program("/bin/sh".as_ref());
        scene.enter(&mut command);
        Finished::run(command.args(["-c", script]))
    };
    let missing: Vec<&str> = OPTIONAL
        .into_iter()
        .filter(|name| shell(&format!("command -v {name}")).map_or(true, |found| found.code() != 0))
        .collect();
    let lines: Vec<&str> = PROGRAMS.lines().filter(|line| is_runnable(line, &missing)).collect();
    ensure!(lines.len() >= FEWEST, "only {} lines run, without {missing:?}", lines.len());
    let one_of = if std::env::var_os(EVERY).is_some() { 1 } else { ONE_OF };
    // Neighbours are alike, and each user gets others.
    let lines: Vec<&str> =
        lines.into_iter().skip(usize::from(user == User::Caller) % one_of).step_by(one_of).collect();
    shell(&format!("mkdir ../template && cd ../template && {FILES}"))?.ended_with(0)?;
    let mut failures = Vec::new();
    for (group, lines) in lines.chunks(TOGETHER).enumerate() {
        let failed = undone_together(&scene, &shell, lines)?;
        failures.extend(failed.into_iter().map(|failure| format!("group {group}: {failure}")));
        ensure!(failures.len() < 40, "{failures:#?}");
    }
    ensure!(failures.is_empty(), "{failures:#?}");
    Ok(())
}

/// Runs lines in one session, undoes it, and returns what was not right.
fn undone_together(
    scene: &Scene,
    shell: &impl Fn(&str) -> Result<Finished>,
    lines: &[&str],
) -> Result<Vec<String>> {
    let project = scene.project();
    shell(&format!(
        "rm -rf ./* && for i in $(seq 0 {}); do cp -a ../template p$i; done",
        lines.len().saturating_sub(1)
    ))?
    .ended_with(0)?;
    for (number, line) in lines.iter().enumerate() {
        scene.write(&project.join(format!("script{number}")), &format!("{AROUND}cd p{number}\n{line}\n"))?;
    }
    let before = tree(&project)?;
    let mut script = String::new();
    for number in 0..lines.len() {
        script +=
            &format!("timeout 30 sh script{number} > said{number} 2>&1 < /dev/null || echo p{number}\n");
    }
    script += "exit 0";
    let ran = run(scene, &script)?.ended_with(0)?;
    let changed = tree(&project)?;
    let mut failures = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let name = format!("p{number}");
        if ran.stdout.lines().any(|failed| failed == name) {
            let said = fs::read_to_string(project.join(format!("said{number}")))?;
            failures.push(format!("control: `{line}` failed: {said}"));
        } else if below(&before, &name) == below(&changed, &name) {
            failures.push(format!("control: `{line}` changed nothing"));
        }
    }
    let undone = undo(scene, &[])?;
    let after = tree(&project)?;
    let different = difference(&before, &after);
    for (number, line) in lines.iter().enumerate() {
        let top = PathBuf::from(format!("p{number}"));
        let names: Vec<_> = different.iter().filter(|name| name.starts_with(&top)).collect();
        if let Some(first) = names.first() {
            let (was, is) = (before.get(*first), after.get(*first));
            failures.push(format!("`{line}`: {names:?}: {was:?} became {is:?}"));
        }
    }
    if undone.code() != 0 || before != after {
        failures.push(format!("undo says {undone:?}"));
    }
    Ok(failures)
}

/// Returns what is in a directory.
fn below(all: &BTreeMap<PathBuf, String>, top: &str) -> BTreeMap<PathBuf, String> {
    let inside = all.iter().filter(|(path, _)| path.starts_with(Path::new(top)));
    inside.map(|(path, what)| (path.clone(), what.clone())).collect()
}
