//! Files that an agent leaves in repositories so that the user's own git runs programs: rows 31 to 38 of the attacks
//! and similar ones, through the write tool and through commands. The control writes the same files without Portcullis,
//! and the real git runs them.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::json;

as_each_user!(
    nothing_that_tools_leave_behind_is_run,
    nothing_that_commands_leave_behind_is_run,
    no_index_leads_elsewhere,
    a_directory_that_cannot_be_looked_into_is_a_repository,
    everyday_settings_are_written
);

/// An attack on git: files that are written in this order, and the git command that runs a program because of them.
struct Trap {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// A script that the user runs before the attack.
    before: &'static str,
    /// The script that the user runs after it.
    then: &'static str,
}

/// `MARK` stands for the file that a successful attack creates.
const EVIL: &str = "[core]\n\tbare = false\n\tfsmonitor = \"touch MARK;:\"\n";

const TRAPS: [Trap; 12] = [
    Trap { name: "31 fsmonitor", files: &[(".git/config", EVIL)], before: "", then: "git status" },
    Trap {
        name: "31 alias",
        files: &[(".git/config", "[alias]\n\tst = !touch MARK\n")],
        before: "",
        then: "git st",
    },
    Trap {
        name: "31 include",
        files: &[("evil", EVIL), (".git/config", "[include]\n\tpath = ../evil\n")],
        before: "",
        then: "git status",
    },
    Trap {
        name: "33 commondir",
        files: &[
            ("evil/config", EVIL),
            ("evil/objects/x", ""),
            ("evil/refs/x", ""),
            (".git/commondir", "../evil\n"),
        ],
        before: "",
        then: "git status",
    },
    Trap {
        name: "33 a common directory without a HEAD of its own",
        files: &[
            (".git/modules/a/config", EVIL),
            (".git/modules/a/objects/x", ""),
            (".git/modules/a/refs/x", ""),
            (".git/modules/a/worktrees/x/HEAD", "ref: refs/heads/main\n"),
            (".git/modules/a/worktrees/x/commondir", "../..\n"),
            ("sub/.git", "gitdir: ../.git/modules/a/worktrees/x\n"),
        ],
        before: "",
        then: "git -C sub status",
    },
    Trap {
        name: "34 a new repository",
        files: &[
            ("sub/.git/config", EVIL),
            ("sub/.git/HEAD", "ref: refs/heads/main\n"),
            ("sub/.git/objects/x", ""),
            ("sub/.git/refs/x", ""),
        ],
        before: "",
        then: "git -C sub status",
    },
    Trap {
        name: "34 a directory that becomes a repository",
        files: &[
            (
                "sub/config",
                "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = \"touch MARK;:\"\n",
            ),
            ("sub/HEAD", "ref: refs/heads/main\n"),
            ("sub/refs/x", ""),
            ("sub/objects/x", ""),
        ],
        before: "",
        then: "git -C sub status",
    },
    Trap {
        name: "36 config.worktree",
        files: &[
            (".git/config", "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n"),
            (".git/config.worktree", EVIL),
        ],
        before: "",
        then: "git status",
    },
    Trap {
        name: "37 a .git file",
        files: &[
            ("evil/config", EVIL),
            ("evil/HEAD", "ref: refs/heads/main\n"),
            ("evil/objects/x", ""),
            ("evil/refs/x", ""),
            ("sub/.git", "gitdir: ../evil\n"),
        ],
        before: "",
        then: "git -C sub status",
    },
    Trap {
        name: "a rebase that goes on",
        files: &[(".git/rebase-merge/git-rebase-todo", "exec touch MARK\n")],
        before: "GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -q -i --root",
        then: "git -c core.editor=true rebase --continue",
    },
    Trap {
        name: "a strategy for a rebase that goes on",
        files: &[(".git/rebase-merge/strategy", "../x\n")],
        before: CONFLICT,
        then: "git add f; git -c core.editor=true rebase --continue",
    },
    Trap {
        name: "a strategy for picks that go on",
        files: &[(".git/sequencer/opts", "[options]\n\tstrategy = ../x\n")],
        before: CONFLICTING_PICKS,
        then: "git add f; git -c core.editor=true cherry-pick --continue",
    },
];

/// A rebase that stops with one commit left, and a program in the working tree.
const CONFLICT: &str = "mkdir git-merge-.. && printf '#!/bin/sh\ntouch %s\n' \"MARK\" > git-merge-../x && chmod +x git-merge-../x
    echo 2 > f; git commit -qam two; echo 3 > g; git add g; git commit -qm three
    git checkout -q -b other HEAD~2; echo x > f; git commit -qam x; git checkout -q main
    git rebase -q other && exit 1; true";

/// The same as [`CONFLICT`], with cherry-picks.
const CONFLICTING_PICKS: &str = "mkdir git-merge-.. && printf '#!/bin/sh\ntouch %s\n' \"MARK\" > git-merge-../x && chmod +x git-merge-../x
    echo 2 > f; git commit -qam two; echo 3 > g; git add g; git commit -qm three
    git checkout -q -b other HEAD~2; echo x > f; git commit -qam x
    git cherry-pick main~1 main && exit 1; true";

fn nothing_that_tools_leave_behind_is_run(user: User) -> Result<()> {
    let control = scene(user)?;
    for trap in &TRAPS {
        let place = repository(&control, trap)?;
        for (name, text) in trap.files {
            control.write(&place.join(name), &marked(&place, text))?;
        }
        ensure!(is_sprung(&control, trap, &place)?, "control: {} does nothing", trap.name);
    }
    let scene = scene(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    for trap in &TRAPS {
        let place = repository(&scene, trap)?;
        for (name, text) in trap.files {
            let call = json!({ "callId": "w", "path": place.join(name), "content": marked(&place, text) });
            host.call("file/write", &call)?;
        }
        ensure!(!is_sprung(&scene, trap, &place)?, "{}: the user's git ran what was left", trap.name);
    }
    Ok(())
}

fn nothing_that_commands_leave_behind_is_run(user: User) -> Result<()> {
    let script = |place: &Path, trap: &Trap| {
        let write = |(name, text): &(&str, &str)| {
            let text = marked(place, text).replace('\'', r"'\''");
            format!(
                "mkdir -p \"$(dirname {name})\"; rm -f new; printf %s '{text}' > new; mv new {name}; rm -f new"
            )
        };
        let steps: Vec<String> = trap.files.iter().map(write).collect();
        format!("cd '{}'; {}; true", place.display(), steps.join("; "))
    };
    let control = scene(user)?;
    for trap in &TRAPS {
        let place = repository(&control, trap)?;
        shell(&control, &place, &script(&place, trap))?.ended_with(0)?;
        ensure!(is_sprung(&control, trap, &place)?, "control: {} does nothing", trap.name);
    }
    let scene = scene(user)?;
    let places: Vec<PathBuf> = TRAPS.iter().map(|trap| repository(&scene, trap)).collect::<Result<_>>()?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    for (trap, place) in TRAPS.iter().zip(&places) {
        host.run(&script(place, trap))?;
        host.run(&format!(
            "cd '{}'; git config core.fsmonitor 'touch {};:'",
            place.display(),
            mark(place).display()
        ))?;
        ensure!(!is_sprung(&scene, trap, place)?, "{}: the user's git ran what was left", trap.name);
    }
    Ok(())
}

/// Makes an index that names a hook and a file outside.
const FORGE: &str = r#"
import hashlib, os
index = bytearray(open(".git/index", "rb").read())
index = index.replace(b"xgit/hooks/post-checkout", b".git/hooks/post-checkout").replace(b"aa/bb", b"../bb")
index[-20:] = hashlib.sha1(index[:-20]).digest()
open(".git/new", "wb").write(index)
for put in (lambda: os.rename(".git/new", ".git/index"), lambda: open(".git/index", "wb").write(index)):
    try: put()
    except OSError: pass
"#;

fn no_index_leads_elsewhere(user: User) -> Result<()> {
    let prepare = "mkdir -p xgit/hooks aa && echo evil > xgit/hooks/post-checkout && echo evil > aa/bb
        git add xgit aa && git commit -q -m two && rm .git/hooks/post-checkout 2>/dev/null; true";
    let is_out = |place: &Path| -> Result<(bool, bool)> {
        Ok((place.join(".git/hooks/post-checkout").exists(), place.with_file_name("bb").exists()))
    };
    let forge = |place: &Path| format!("cd '{}' && python3 -c '{FORGE}'", place.display());
    let control = scene(user)?;
    let place = repository(&control, &TRAPS[0])?;
    shell(&control, &place, prepare)?.ended_with(0)?;
    shell(&control, &place, &forge(&place))?.ended_with(0)?;
    shell(&control, &place, "git checkout -q -- .")?;
    ensure!(is_out(&place)? == (true, true), "control: git writes what its index names");

    let scene = scene(user)?;
    let place = repository(&scene, &TRAPS[0])?;
    shell(&scene, &place, prepare)?.ended_with(0)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    host.run(&forge(&place))?;
    shell(&scene, &place, "git checkout -q -- .")?;
    ensure!(is_out(&place)? == (false, false), "the index leads elsewhere");
    let committed = "echo 4 > g && git add g && git mv f h && git commit -q -m four && git status --short";
    let committed = host.run(&format!("cd '{}' && rm -f .git/new && {committed}", place.display()))?;
    ensure!(
        committed.0.get("exitCode") == Some(&json!(0)) && committed.1.trim().is_empty(),
        "{committed:#?}"
    );
    Ok(())
}

fn a_directory_that_cannot_be_looked_into_is_a_repository(user: User) -> Result<()> {
    let attack = |place: &Path| {
        let place = place.display();
        format!(
            r#"cd '{place}' && python3 -c '
import os
m = os.open(".git/modules/m", os.O_RDONLY)
h = os.open(".git/modules/m/hooks", os.O_RDONLY)
open("warm", "w")
os.chmod(".git/modules", 0)
for name, at in (("config", m), ("pre-push", h)):
    try: os.write(os.open(name, os.O_WRONLY | os.O_TRUNC | os.O_CREAT, 0o755, dir_fd=at), b"evil")
    except OSError as error: print(name, error.errno)
os.chmod(".git/modules", 0o755)
'"#
        )
    };
    let changed = |place: &Path| -> Result<(bool, bool)> {
        let module = place.join(".git/modules/m");
        Ok((std::fs::read(module.join("config"))? == b"evil", module.join("hooks/pre-push").exists()))
    };
    let module = "git init -q --bare .git/modules/m && mkdir -p .git/modules/m/hooks";
    let control = scene(user)?;
    let place = repository(&control, &TRAPS[0])?;
    shell(&control, &place, module)?.ended_with(0)?;
    shell(&control, &place, &attack(&place))?.ended_with(0)?;
    ensure!(changed(&place)? == (true, true), "control");

    let scene = scene(user)?;
    let place = repository(&scene, &TRAPS[0])?;
    shell(&scene, &place, module)?.ended_with(0)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let done = host.run(&attack(&place))?;
    ensure!(changed(&place)? == (false, false), "{done:#?}");
    Ok(())
}

/// A scene whose user has set a name in git.
fn scene(user: User) -> Result<Scene> {
    let scene = Scene::new(user)?;
    let settings = "[user]\n\tname = A\n\temail = a@b.test\n[init]\n\tdefaultBranch = main\n";
    scene.write(&scene.home().join(".gitconfig"), settings)?;
    Ok(scene)
}

/// Makes a repository of the user in the project, with a commit.
fn repository(scene: &Scene, trap: &Trap) -> Result<PathBuf> {
    let place = scene.project().join(trap.name);
    scene.write(&place.join("f"), "1\n")?;
    shell(scene, &place, "git init -q && git add f && git commit -q -m one")?.ended_with(0)?;
    if !trap.before.is_empty() {
        shell(scene, &place, &marked(&place, trap.before))?.ended_with(0)?;
    }
    Ok(place)
}

fn mark(place: &Path) -> PathBuf {
    place.with_extension("ran")
}

fn marked(place: &Path, text: &str) -> String {
    // The path contains spaces.
    text.replace("MARK", &format!("'{}'", mark(place).display()))
}

/// Runs the user's script, and returns whether it ran the planted program.
fn is_sprung(scene: &Scene, trap: &Trap, place: &Path) -> Result<bool> {
    let finished = shell(scene, place, trap.then)?;
    let ran = mark(place).exists();
    ensure!(ran || finished.code() != 127, "{finished:#?}");
    Ok(ran)
}

fn shell(scene: &Scene, place: &Path, script: &str) -> Result<Finished> {
    let mut command = scene.user().command("/bin/sh".as_ref());
    command.args(["-c", script]);
    scene.enter(&mut command);
    Finished::run(command.current_dir(place).env("GIT_CONFIG_NOSYSTEM", "1"))
}

/// The opposite control: settings that run no program can be written.
fn everyday_settings_are_written(user: User) -> Result<()> {
    let scene = scene(user)?;
    let place = repository(&scene, &TRAPS[0])?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let config = place.join(".git/config");
    let text = std::fs::read_to_string(&config)?
        + "[remote \"origin\"]\n\turl = https://host.test/a.git\n[branch \"main\"]\n\tremote = origin\n";
    host.succeed("file/write", &json!({ "callId": "w", "path": config, "content": text }))?;
    ensure!(shell(&scene, &place, "git remote -v")?.stdout.contains("https://host.test/a.git"));
    let asks = |name: &str| scene.portcullis(&["check", "write", name])?.ended_with(10).map(drop);
    for name in [".vscode/tasks.json", "sub/.bashrc", ".git/config"] {
        asks(name)?;
    }
    scene.portcullis(&["check", "write", ".git/hooks/pre-commit"])?.ended_with(20)?;
    Ok(())
}
