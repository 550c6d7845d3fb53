//! Real git: the agent changes a repository, the user changes it as well, and undo takes back the agent's changes. The user's
//! commits and staged files must still be readable.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Scene, User};

use crate::undo::{difference, run, tree_without_times, undo};

as_each_user!(what_the_users_commits_need_stays);

/// What happens in a project, and what must hold after the undo.
struct Case {
    name: &'static str,
    /// The user's part before the session.
    before: &'static str,
    agent: &'static str,
    user: &'static str,
    /// A script that fails if git cannot read what the user has committed or staged.
    after: &'static str,
}

/// Before each script. No other configuration counts, and git removes nothing unasked.
const PRELUDE: &str = r#"
set -e
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
git() { command git -c user.name=n -c user.email=e -c init.defaultBranch=main -c gc.auto=0 -c maintenance.auto=false \
    -c protocol.file.allow=always "$@"; }
commit() { echo "$1" > "$1"; git add "$1"; git commit -q -m "$1"; }
whole() { git -C "$1" fsck --full --no-dangling; }
"#;

const CASES: [Case; 7] = [
    Case {
        name: "the agent's pack is the only copy of the user's objects",
        before: "git init -q; commit mine",
        agent: "git repack -a -q",
        user: "git repack -d -q",
        after: "whole .; git show HEAD:mine",
    },
    Case {
        name: "the user commits on top of the agent in a submodule",
        before: "git init -q up; (cd up; commit one); git init -q .; git submodule --quiet add ./up sub; git commit -q -m s",
        agent: "(cd sub; commit agent); git commit -q -a -m bump",
        user: "cd sub; commit mine",
        after: "whole sub; git -C sub show HEAD:mine; git -C sub log",
    },
    Case {
        name: "the user commits in a submodule that the agent has added",
        before: "git init -q up; (cd up; commit one); git init -q .; commit two",
        agent: "git submodule --quiet add ./up sub; git commit -q -m s",
        user: "cd sub; commit mine",
        after: "git --git-dir .git/modules/sub show main:mine",
    },
    Case {
        name: "the user commits on top of a shallow fetch",
        before: "git init -q up; (cd up; commit one; commit two); git init -q .; commit three",
        agent: r#"git fetch -q --depth=1 "file://$PWD/up" HEAD"#,
        user: "git checkout -q -b own FETCH_HEAD; commit mine",
        after: "whole .; git show own:mine; git log own",
    },
    Case {
        name: "the user stages something in a repository of the agent",
        before: "true",
        agent: "git init -q; commit agent",
        user: "echo precious > mine; git add mine; echo worse > mine",
        after: r#"[ "$(git show :mine)" = precious ]; whole ."#,
    },
    Case {
        name: "the user's git lists the agent's objects",
        before: "git init -q; commit mine",
        agent: "commit agent; git gc -q",
        user: "rm -f .git/objects/info/commit-graph; git multi-pack-index write; git commit-graph write --reachable",
        after: "whole .; git log",
    },
    Case {
        name: "the user packs references after the agent",
        before: "git init -q; commit one",
        agent: "git gc -q",
        user: "commit mine; git gc -q",
        after: "whole .; git show main:mine",
    },
];

fn what_the_users_commits_need_stays(user: User) -> Result<()> {
    for case in CASES {
        for is_used in [true, false] {
            let scene = Scene::new(user)?;
            by_user(&scene, case.before)?.ended_with(0)?;
            let was = tree_without_times(&scene.project())?;
            run(&scene, &[PRELUDE, case.agent].concat())?.ended_with(0)?;
            // What changes within one tick of the clock counts as the agent's.
            sleep(Duration::from_millis(50));
            if is_used {
                by_user(&scene, case.user)?.ended_with(0)?;
            }
            let undone = undo(&scene, &[])?;
            if is_used {
                let looked = by_user(&scene, case.after)?;
                ensure!(looked.status.success(), "{}: {looked:#?}, {undone:#?}", case.name);
            } else {
                // The control: undo would remove what the agent has made.
                let is = tree_without_times(&scene.project())?;
                ensure!(is == was, "{}: {:?}, {undone:#?}", case.name, difference(&is, &was));
            }
        }
    }
    Ok(())
}

/// Runs a script outside of the sandbox.
fn by_user(scene: &Scene, script: &str) -> Result<Finished> {
    let mut shell = scene.program("/bin/sh".as_ref());
    scene.enter(&mut shell);
    Finished::run(shell.args(["-c", &[PRELUDE, script].concat()]))
}
