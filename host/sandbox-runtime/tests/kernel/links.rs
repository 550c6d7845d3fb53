//! Symbolic links and special files at names where they would widen what a rule allows.

use std::fs;
use std::path::PathBuf;

use portcullis_sandbox::{CallDetails, NameAccess};
use portcullis_sandbox_runtime::Exit;

use crate::held::asked;
use crate::kit::{self, Session};
use crate::names::session;
use crate::{Test, cannot_run, exists};

pub(crate) const TESTS: &[Test] = &[
    ("links::in_repositories_they_are_asked_about", in_repositories_they_are_asked_about),
    ("links::a_directory_that_becomes_a_repository_has_none", a_directory_that_becomes_a_repository_has_none),
    ("links::git_makes_its_own", git_makes_its_own),
    ("links::rules_below_a_name_hold", rules_below_a_name_hold),
    ("links::a_question_says_where_it_leads", a_question_says_where_it_leads),
];

const SET_UP: &str = "set -e; exec 2>&1; export HOME=/tmp GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
    GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null;";

fn repository(lines: &str) -> Option<Session> {
    if !exists("/usr/bin/git") {
        cannot_run("git");
        return None;
    }
    let session = session(lines);
    assert!(session.control(&format!(
        "{SET_UP} git init -q -b main repo; cd repo; git commit -q --allow-empty -m 1; mkdir .hg; \
         git init -q --bare ../bare; mkdir ../half; cp -r .git/refs .git/HEAD ../half"
    )));
    Some(session)
}

/// Git writes through a link: a commit message becomes a file that the user's shell executes.
fn in_repositories_they_are_asked_about() {
    let Some(session) = repository("") else { return };
    let victim = session.path("home/open/zshenv");
    let plant = "rm -f .git/COMMIT_EDITMSG; ln -s \"$P/home/open/zshenv\" .git/COMMIT_EDITMSG";
    let commit = format!("{SET_UP} cd repo; git commit -q --allow-empty -m 'touch pwned'");
    assert!(session.control(&format!("cd repo; {plant}")) && session.control(&commit));
    assert_eq!(fs::read_to_string(&victim).expect("the attack works outside"), "touch pwned\n");
    fs::remove_file(&victim).expect("removed");
    assert!(session.control("rm repo/.git/COMMIT_EDITMSG"));
    for script in [
        plant,
        "ln -sf \"$P/home/open/zshenv\" .git/logs/HEAD",
        "rm -r .git/logs; ln -s /etc .git/logs",
        "ln -s x .git/FETCH_HEAD",
        "ln -s x .git/packed-refs",
        "rm -f .git/info/exclude; ln -s x .git/info/exclude",
        "rm -r .git/info; ln -s x .git/info",
        "ln -s x .git/refs/heads/x",
        "ln -s x .hg/last-message.txt",
        "ln -s x ../bare/ORIG_HEAD",
        "rm .git/HEAD; ln -s x .git/HEAD",
        "ln -s x link; mv link .git/COMMIT_EDITMSG",
        "ln -s x link; ln link .git/COMMIT_EDITMSG",
        "mkdir d; ln -s x d/HEAD; rm -r .git/logs; mv d .git/logs",
    ] {
        assert!(session.control("rm -rf keep; cp -a repo keep"));
        let (_, output, questions) = asked(&session, &format!("cd repo; {script}"), false);
        assert!(!questions.is_empty(), "{script}: {output}");
        let left = "cd repo; ! find .git .hg ../bare -type l | grep -q .";
        assert!(session.control(left), "{script}: {output}");
        assert!(session.control("rm -rf repo; mv keep repo"));
    }
    for script in ["mkfifo .git/FETCH_HEAD", "mkfifo p; mv p .git/gc.log", "mkfifo .hg/last-message.txt"] {
        let (exit, output, questions) = asked(&session, &format!("cd repo; {script}"), true);
        assert!(exit != Exit::Code(0) && questions.is_empty(), "{script}: {output}");
    }
    assert!(session.control(&commit) && !victim.exists());
}

/// Links from before the directory became a repository count as well.
fn a_directory_that_becomes_a_repository_has_none() {
    let Some(session) = repository("") else { return };
    for script in [
        "ln -s x ../half/COMMIT_EDITMSG && mkdir ../half/objects",
        "mkdir ../half/logs && ln -s x ../half/logs/HEAD && mkdir ../half/objects",
        "mkfifo ../half/FETCH_HEAD && mkdir ../half/objects",
        "ln -s /tmp ../half/objects",
        "mkdir d && ln -s x d/COMMIT_EDITMSG && mv d sub.git && cp -r .git/refs sub.git && mkdir sub.git/objects",
    ] {
        assert!(session.control("rm -rf d sub.git ../keep; cp -a half keep"));
        let (exit, output, _) = asked(&session, &format!("cd repo; {script}"), false);
        assert!(exit != Exit::Code(0), "{script}: {output}");
        assert!(session.control("test ! -e half/objects; rm -rf half; mv keep half"), "{script}: {output}");
    }
    links_of_a_project_are_left_alone(&session);
}

/// Links in a project that has such a shape by chance are left alone.
fn links_of_a_project_are_left_alone(session: &Session) {
    let script = "mkdir -p game/bin game/objects; ln -s x game/bin/y; mkdir game/refs";
    let (exit, output, questions) = asked(session, script, false);
    assert_eq!((exit, questions), (Exit::Code(0), vec![]), "{output}");
}

fn git_makes_its_own() {
    let Some(session) = repository("") else { return };
    let script = format!(
        "{SET_UP} git init -q new; git -C new config core.symlinks && exit 1; git init -q --bare b.git; \
         git -C b.git config core.symlinks && exit 1; cd repo; rm .git/HEAD; ln -s refs/heads/other .git/HEAD; \
         mkdir -p .hg/store; ln -s host:12 .hg/wlock; ln -s host:12 .hg/store/lock; git status"
    );
    let (exit, output, questions) = asked(&session, &script, false);
    assert_eq!((exit, questions), (Exit::Code(0), vec![]), "{output}");
}

/// A rule on a name that does not exist yet applies after the directory around it has become a link.
fn rules_below_a_name_hold() {
    let session = session("refuse-below conf prod.yml");
    let evil = "mkdir conf; mv conf c; echo evil > c/prod.yml; ln -s c conf; test -s conf/prod.yml";
    assert!(session.control(evil), "the attack works outside");
    assert!(session.control("rm -rf c conf"));
    for script in [
        evil,
        "mkdir c; echo evil > c/prod.yml; ln -s c l; mv l conf",
        "mkdir c; echo evil > c/prod.yml; ln -s c l; ln l conf",
        "mkdir c; echo evil > c/prod.yml; ln -s \"$PWD/c\" conf",
        "mkdir -p a/c; echo evil > a/c/prod.yml; ln -s a/x/../c conf",
        "mkdir d c; echo evil > c/prod.yml; ln -s ../c d/conf; mv d e",
    ] {
        let (_, output, questions) = asked(&session, script, false);
        assert!(!questions.is_empty(), "{script}: {output}");
        assert!(session.control("test ! -L conf; rm -rf a c conf d e l"), "{script}: {output}");
    }
    let (exit, output, questions) = asked(&session, "mkdir x; ln -s x y; echo fine > y/prod.yml", false);
    assert_eq!((exit, questions), (Exit::Code(0), vec![]), "{output}");
}

fn a_question_says_where_it_leads() {
    let session = session("ask open");
    let deeds = |script: &str| {
        let command = session.command(&["sh", "-c", &format!("cd \"$P/home/open\"; {script}")]);
        let streams = [kit::null(), kit::null(), kit::null()];
        let running = session.confinement.launch_asking(command, streams).expect("starts");
        let mut deeds = Vec::new();
        while let Some(held) = kit::next_held(&running) {
            deeds.push((held.attempt(), held.deed().clone()));
            held.allow();
        }
        running.wait();
        deeds
    };
    let path = |name: &str| -> PathBuf { session.path("home/open").join(name) };
    assert_eq!(deeds("ln -s /home notes"), [(NameAccess::Write, CallDetails::Symlink("/home".into()))]);
    assert_eq!(
        deeds("ln file hard"),
        [
            (NameAccess::Write, CallDetails::LinkTo(path("hard"))),
            (NameAccess::Write, CallDetails::LinkOf(path("file")))
        ]
    );
    assert_eq!(
        deeds("mv file other"),
        [
            (NameAccess::Remove, CallDetails::MoveTo(path("other"))),
            (NameAccess::Write, CallDetails::MoveOf(path("file")))
        ]
    );
    assert_eq!(deeds("echo x > new"), [(NameAccess::Write, CallDetails::Plain)]);
    assert_eq!(
        deeds("cd \"$P/work\"; ln -s / l; mv l open"),
        [(NameAccess::Write, CallDetails::Symlink("/".into()))]
    );
    assert_eq!(deeds("cd \"$P/work\"; mkfifo sub/open"), [(NameAccess::Write, CallDetails::Special)]);
}
