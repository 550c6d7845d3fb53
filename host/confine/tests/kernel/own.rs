//! Names that the user's tools execute are free in directories of a command's own, but not where the user may enter.

use std::fs;
use std::io::{Read, Write};
use std::process::Command;

use portcullis_confine::{Attempt, Exit, Running};

use crate::Test;
use crate::held::asked;
use crate::kit::{self, Session};
use crate::names::session;

pub(crate) const TESTS: &[Test] = &[
    ("own::what_comes_to_a_users_place_is_asked_about", what_comes_to_a_users_place_is_asked_about),
    ("own::a_yes_is_for_one_link", a_yes_is_for_one_link),
    ("own::other_directories_stay_free", other_directories_stay_free),
    ("own::a_users_place_is_one_for_all_commands", a_users_place_is_one_for_all_commands),
    ("own::a_background_command_loses_what_others_link", a_background_command_loses_what_others_link),
    ("own::links_and_files_at_once_leave_no_gap", links_and_files_at_once_leave_no_gap),
];

/// What the user has: directories, a link to one of them, and a link that is chained to it.
const SETUP: &str = "chmod -R u+rwx . 2>/dev/null; find . -mindepth 1 -delete; \
    mkdir -p s1/sub t1 u/s1 x1 .venv/bin; ln -s ../x1 t1/up; echo x > s1/main.c; echo x > s1/sub/x.c; ln -s t1 l1; ln -s l1 l2; \
    rm -rf \"$P/temp/n\"";

/// Commands for the scripts: `evil PATH` writes what the user's tools would run, `exchange A B` exchanges two names.
const TOOLS: &str = "T=\"${TMPDIR:-$P/temp}\"; evil() { echo evil > \"$1\"; }; \
    exchange() { perl -e 'exit syscall(316, -100, $n = shift, -100, $p = shift, 2) != 0' \"$1\" \"$2\"; }; ";

/// Where the user would find the file, and how a command puts it there.
const ATTACKS: &[(&str, &str)] = &[
    // A link to a directory of the command's own.
    ("s1/.envrc", "mv s1 old; mkdir n; evil n/.envrc; ln -s n s1"),
    ("s1/.envrc", "mv s1 old; mkdir n; evil n/.envrc; ln -s \"$PWD/n\" s1"),
    ("s1/.envrc", "mv s1 old; mkdir n; evil n/.envrc; ln -s ./t1/../n/. s1"),
    ("s1/.envrc", "rm -r s1; mkdir n; evil n/.envrc; ln -s n s1"),
    ("s1/.vscode/tasks.json", "mv s1 old; mkdir -p n/.vscode; evil n/.vscode/tasks.json; ln -s n s1"),
    ("s1/.cargo/config.toml", "mv s1 old; mkdir -p n/.cargo; evil n/.cargo/config.toml; ln -s n s1"),
    // Filled, or even made, only after the link.
    ("s1/.envrc", "mv s1 old; mkdir n; ln -s n s1; evil n/.envrc"),
    ("s1/.envrc", "mv s1 old; mkdir n; ln -s n s1; evil s1/.envrc"),
    ("s1/.envrc", "mv s1 old; ln -s n s1; mkdir n; evil n/.envrc"),
    ("s1/.envrc", "mv s1 old; ln -s n s1; mkdir m; evil m/.envrc; mv m n"),
    ("s1/.envrc", "mv s1 old; mkdir d; ln -s d/n/m s1; mkdir -p e/m; evil e/m/.envrc; mv e d/n"),
    ("s1/.envrc", "mv s1 old; echo x > n; ln -s n s1; rm n; mkdir n; evil n/.envrc"),
    // Chains of links, led elsewhere later.
    ("s1/.envrc", "mv s1 old; mkdir n; evil n/.envrc; ln -s n a; ln -s a s1"),
    ("s1/.envrc", "mv s1 old; ln -s a s1; ln -s b a; mkdir n; evil n/.envrc; ln -s n b"),
    ("s1/.envrc", "mv s1 old; mkdir n m; evil m/.envrc; ln -s n a; ln -s a s1; ln -sfn m a"),
    ("s1/.envrc", "mv s1 old; mkdir n m; evil m/.envrc; ln -s n a; ln -s a s1; rm a; mv m a"),
    ("s1/.envrc", "mv s1 old; mkdir -p d/n e/n; evil e/n/.envrc; ln -s d/n s1; mv d d2; mv e d"),
    (
        "s1/.envrc",
        "mv s1 old; mkdir -p x d/n e; evil e/.envrc; ln -s ../d/n x/l; ln -s x/l s1; mv d/n k; mv e d/n",
    ),
    ("s1/.envrc", "mv s1 old; mkdir n m; evil m/.envrc; ln -s n s1; mv n n2; mv m n"),
    // Below the place.
    ("s1/sub/.envrc", "mv s1 old; mkdir -p n/sub; evil n/sub/.envrc; ln -s n s1"),
    ("s1/sub/.envrc", "mv s1/sub old; mkdir n; evil n/.envrc; ln -s ../n s1/sub"),
    ("s1/sub/.envrc", "mv s1 old; mkdir k n; evil n/.envrc; ln -s ../n k/sub; mv k s1"),
    ("s1/sub/.envrc", "mv s1 old; mkdir k n; evil n/.envrc; ln -s ../n k/sub; ln -s k s1"),
    ("s1/sub/.envrc", "mv s1 old; mkdir k n; evil n/.envrc; ln -s k s1; ln -s ../n k/sub"),
    ("s1/sub/.envrc", "mv s1 old; mkdir -p n/sub; mv n s1; mv s1/sub k; evil k/.envrc; mv k s1/sub"),
    ("s1/sub/.envrc", "mkdir t1/sub; evil t1/sub/.envrc; mv s1 old; ln -s t1 s1"),
    ("s1/sub/.envrc", "mv s1 old; ln -s t1 s1; mkdir t1/sub; evil t1/sub/.envrc"),
    ("s1/sub/.envrc", "mkdir sub; evil sub/.envrc; mv s1 old; ln -s . s1"),
    ("s1/sub/.envrc", "mv s1 old; ln -s . s1; mkdir sub; evil sub/.envrc"),
    // Above it: tools look upwards.
    ("s1/../.envrc", "mv s1 old; mkdir -p n/deep; evil n/.envrc; ln -s n/deep s1"),
    ("s1/../.envrc", "mv s1 old; mkdir -p n/deep; ln -s n/deep s1; evil n/.envrc"),
    ("n/s1/../.envrc", "mkdir n; evil n/.envrc; mv s1 n/s1"),
    ("n/s1/../.envrc", "mkdir n; mv s1 n/s1; evil n/.envrc"),
    // Exchanges.
    ("s1/.envrc", "mkdir n; evil n/.envrc; exchange n s1"),
    ("s1/.envrc", "mkdir n; evil n/.envrc; exchange s1 n"),
    ("s1/.envrc", "mkdir n; exchange n s1; evil s1/.envrc"),
    ("s1/.envrc", "mkdir n; evil n/.envrc; ln -s n x; exchange x s1"),
    ("l1/.envrc", "mkdir n; evil n/.envrc; exchange n l1"),
    ("s1/sub/.envrc", "mkdir -p n/sub; evil n/sub/.envrc; exchange n s1"),
    // Renames.
    ("s1/.envrc", "mv s1 old; mkdir n; evil n/.envrc; mv n s1"),
    ("s1/.envrc", "mkdir n; exec 3<n; mv s1 old; mv n s1; evil /proc/self/fd/3/.envrc"),
    ("s1/.envrc", "mkdir n; evil n/.envrc; rm n/.envrc; mv s1 old; mv n s1; evil s1/.envrc"),
    ("s1/.envrc", "mv s1 old; mkdir n; mv n s1; mv s1 n; evil n/.envrc; mv n s1"),
    ("s1/.envrc", "mv s1 old; mkdir n; mv n s1; mv s1 k; evil k/.envrc; rmdir s1; ln -s k s1"),
    ("s1/.envrc", "mv s1 old; mkdir s1; mv s1 k; evil k/.envrc; mv k s1"),
    ("s1/.envrc", "mv s1 old; mkdir n; evil n/.envrc; ln -s n x; mv x s1"),
    ("s1/.envrc", "mv s1 old; mkdir -p n k/n; evil n/.envrc; ln -s n k/x; mv k/x s1"),
    // Directories and links that are made anew.
    ("s1/.envrc", "rm -r s1; mkdir s1; evil s1/.envrc"),
    ("s1/.envrc", "mkdir n; rmdir n; rm -r s1; mkdir s1; rmdir s1; mkdir s1; evil s1/.envrc"),
    ("s1/.envrc", "mv s1 old; mkdir n; evil n/.envrc; cp -al n s1"),
    ("s1/.envrc", "mkdir n; evil n/.envrc; ln -s n x; rm -r s1; cp -a x s1"),
    ("s1/.envrc", "mkdir n; evil n/.envrc; ln -s n x; mv s1 old; ln -P x s1"),
    ("s1/.envrc", "mkdir n; evil n/f; mv s1 old; mkdir s1; ln n/f s1/.envrc"),
    ("s1/.envrc", "mkdir n; evil n/f; mv s1 old; mkdir s1; ln -s ../n/f s1/.envrc"),
    ("s1/.envrc", "mkdir n; evil n/f; ln -s f n/.envrc; mv s1 old; ln -s n s1"),
    // The user's links.
    ("l1/.envrc", "rm l1; mkdir l1; evil l1/.envrc"),
    ("l1/.envrc", "mv l1 old; mkdir l1; evil l1/.envrc"),
    ("l1/.envrc", "mkdir n; evil n/.envrc; ln -sfn n l1"),
    ("l1/.envrc", "mkdir n; evil n/.envrc; rm l1; mv n l1"),
    ("l1/.envrc", "mv t1 old; mkdir t1; evil t1/.envrc"),
    ("l1/.envrc", "mkdir n; evil n/.envrc; mv t1 old; ln -s n t1"),
    ("l2/.envrc", "mkdir n; evil n/.envrc; ln -sfn n l1"),
    ("l2/.envrc", "mkdir n; evil n/.envrc; rm l1; ln -s n l1"),
    // A directory of the user's that has another name meanwhile.
    ("u/s1/.envrc", "mv u/s1 old; mv u v; mkdir n; ln -s ../n v/s1; evil n/.envrc; mv v u"),
    ("v/s1/.envrc", "mv u/s1 old; mv u v; mkdir n; evil n/.envrc; ln -s ../n v/s1"),
    ("v/s1/.envrc", "mv u/s1 old; mv u v; mkdir v/s1; evil v/s1/.envrc"),
    // Links of the user's that lead elsewhere when their directory moves.
    ("u/t1/up/.envrc", "mkdir u/x1; evil u/x1/.envrc; mv t1 u/t1"),
    ("u/t1/up/.envrc", "mv t1 u/t1; mkdir u/x1; evil u/x1/.envrc"),
    // From where names are free to everybody.
    ("s1/.envrc", "mkdir \"$T/n\"; evil \"$T/n/.envrc\"; mv s1 old; mv \"$T/n\" s1"),
    ("s1/.envrc", "mkdir \"$T/n\"; evil \"$T/n/.envrc\"; mv s1 old; ln -s \"$T/n\" s1"),
    ("s1/.envrc", "mkdir -p node_modules/n; evil node_modules/n/.envrc; mv s1 old; ln -s node_modules/n s1"),
    (
        "s1/.envrc",
        "mkdir node_modules; mv s1 old; ln -s node_modules/n s1; mkdir node_modules/n; evil node_modules/n/.envrc",
    ),
    ("s1/.envrc", "mkdir -p node_modules/n; evil node_modules/n/.envrc; mv s1 old; mv node_modules/n s1"),
];

fn what_comes_to_a_users_place_is_asked_about() {
    if !crate::exists("/usr/bin/perl") {
        return crate::cannot_run("perl (package perl-base)");
    }
    for (place, attack) in ATTACKS {
        let session = session("");
        let found =
            || fs::read_to_string(session.path("work").join(place)).is_ok_and(|text| text == "evil\n");
        let script = format!("{TOOLS}{attack}");
        assert!(session.control(SETUP), "set up: {attack}");
        session.control(&script);
        assert!(found(), "control: {attack}");
        assert!(session.control(SETUP), "set up: {attack}");
        let (_, output, questions) = asked(&session, &script, false);
        assert!(!questions.is_empty(), "not asked: {attack}: {output}");
        assert!(!found(), "there without a yes: {attack}: {questions:?} {output}");
        // Another command of the same session cannot either.
        assert!(session.control("rm -rf n m k e d x a b \"$P/temp/n\""));
        let (_, output, _) = asked(&session, &script, false);
        assert!(!found(), "there the second time: {attack}: {output}");
    }
}

fn a_yes_is_for_one_link() {
    let session = session("");
    assert!(session.control(SETUP));
    let link = "mv s1 old; mkdir n; evil n/.envrc; evil n/.npmrc; ln -s n s1";
    let (exit, output, questions) = asked(&session, &format!("{TOOLS}{link}"), true);
    let expected = vec![(Attempt::Write, "work/s1".to_owned())];
    assert_eq!((exit, questions), (Exit::Code(0), expected), "{output}");
    assert!(session.path("work/s1/.envrc").exists());
    let (_, output, questions) = asked(&session, &format!("{TOOLS}evil n/.envrc; evil s1/.envrc"), false);
    assert_eq!(questions.len(), 2, "{output}");
}

fn other_directories_stay_free() {
    for script in [
        "mkdir n; evil n/.envrc; ln -s n link; evil link/.npmrc",
        "mkdir n m; evil n/.envrc; ln -s n l; ln -sfn m l; evil l/.envrc; rm l; mkdir l; evil l/.envrc",
        "rm -r s1; mkdir k; evil k/.envrc; mkdir s1; echo x > s1/x",
        // The usual link for those who know the old name.
        "mv s1 lib; ln -s lib s1; test -s s1/main.c",
        "mkdir s1/new; evil s1/new/.envrc; mkdir src; mv s1/sub src/sub",
        "rm -r .venv; mkdir -p .venv/bin .venv/lib; ln -s lib .venv/lib64; ln -s /usr/bin/python3 .venv/bin/python; \
         ln -s python .venv/bin/python3",
        "mkdir -p old new; mv t1 old/t1; mv old/t1 t1; rm l2; ln -s l1 l2; test -d l2",
        "mkdir n; evil n/.envrc; rm -r n; mkdir n; evil n/.envrc; mv n m; exchange m m 2> /dev/null; evil m/.npmrc",
        "mkdir a b; evil a/.envrc; evil b/.envrc; exchange a b; evil a/.envrc",
        "rm -rf node_modules; mkdir -p node_modules/a/bin node_modules/.bin; evil node_modules/a/.npmrc; \
         ln -s ../a/bin/x node_modules/.bin/x; mv node_modules/a node_modules/b; ln -s b node_modules/a",
    ] {
        let session = session("");
        assert!(session.control(SETUP), "set up");
        let (exit, output, questions) = asked(&session, &format!("set -e; {TOOLS}{script}"), false);
        assert_eq!((exit, questions), (Exit::Code(0), vec![]), "{script}: {output}");
    }
}

fn a_users_place_is_one_for_all_commands() {
    let attack = |first: &str, second: &str| {
        let session = session("");
        assert!(session.control(SETUP));
        session.allows(&format!("{TOOLS}{first}"));
        let (_, output, questions) = asked(&session, &format!("{TOOLS}{second}"), false);
        assert!(!questions.is_empty(), "{first} - {second}: {output}");
        assert!(!session.path("work/s1/.envrc").exists(), "{first} - {second}: {output}");
        assert!(session.control(SETUP));
        session.control(&format!("{TOOLS}{first}"));
        session.control(&format!("{TOOLS}{second}"));
        assert!(session.path("work/s1/.envrc").exists(), "control: {first} - {second}");
    };
    attack("mkdir n; evil n/.envrc", "mv s1 old; ln -s n s1");
    attack("mkdir n; evil n/.envrc; mv s1 old", "ln -s n s1");
    attack("mkdir n; evil n/.envrc", "mv s1 old; mv n s1");
    attack("mv s1 old", "mkdir s1; evil s1/.envrc");
    attack("mv s1 old; ln -s n s1", "mkdir n; evil n/.envrc");
    attack("mv s1 old; mkdir n; ln -s n s1", "mkdir m; evil m/.envrc; rmdir n; mv m n");
    attack("rm -r s1; mkdir s1", "rmdir s1; mkdir s1; evil s1/.envrc");
}

/// Starts a script that waits in the middle until the file `go` is there.
fn waiting(session: &Session, script: &str) -> (Running, fs::File) {
    let (read, write) = kit::pipe();
    let copy = write.try_clone().expect("a copy");
    let command = session.command(&["sh", "-c", &format!("{TOOLS}{script}")]);
    let running = session.confinement.launch_asking(command, [kit::null(), write, copy]).expect("starts");
    (running, fs::File::from(read))
}

fn a_background_command_loses_what_others_link() {
    for link in
        ["mv s1 old; ln -s n s1", "mv s1 old; mv n s1", "mv s1 old; mkdir s1; mv n s1/n; ln -s n/deep s1/x"]
    {
        let session = session("");
        assert!(session.control(SETUP));
        let script = "mkdir -p n/deep; cd n; evil .npmrc; rm .npmrc; echo x > ../ready; \
            while ! test -e ../go && ! test -e ../../go; do sleep 0.02; done; evil .envrc";
        let (running, mut output) = waiting(&session, script);
        kit::eventually("the command waits", || session.path("work/ready").exists());
        session.allows(&format!("{TOOLS}{link}; echo x > go"));
        let held = kit::next_held(&running).expect("it is asked about");
        assert!(held.path().ends_with(".envrc"), "{link}: {held:?}");
        held.refuse();
        let mut text = String::new();
        output.read_to_string(&mut text).expect("output");
        running.wait();
        assert!(text.contains("Permission denied"), "{link}: {text}");
    }
}

/// One thread fills directories while another links to them from a user's place: what is found through the link was
/// asked about.
fn links_and_files_at_once_leave_no_gap() {
    if !crate::exists("/usr/bin/python3") {
        return crate::cannot_run("python3");
    }
    let script = "import os, sys, threading\n\
        os.rename('s1', 'old')\n\
        late = 0\n\
        for turn in range(ROUNDS):\n    \
            own = f'n{turn}'; os.mkdir(own)\n    \
            start = threading.Barrier(2)\n    \
            def fill():\n        \
                start.wait()\n        \
                try: open(own + '/.envrc', 'w').close()\n        \
                except PermissionError: pass\n    \
            def link():\n        \
                start.wait()\n        \
                try: os.symlink(own, 's1')\n        \
                except PermissionError: pass\n    \
            threads = [threading.Thread(target=work) for work in (fill, link)]\n    \
            [t.start() for t in threads]; [t.join() for t in threads]\n    \
            late += os.path.exists('s1/.envrc')\n    \
            if os.path.lexists('s1'): os.unlink('s1')\n\
        print(late)\n";
    let session = session("");
    assert!(session.control(SETUP));
    let write = |rounds: u32| {
        let mut file = fs::File::create(session.path("work/race.py")).expect("a file");
        file.write_all(script.replace("ROUNDS", &rounds.to_string()).as_bytes()).expect("written");
    };
    write(50);
    let outside =
        Command::new("python3").arg("race.py").current_dir(session.path("work")).output().expect("runs");
    assert_eq!(String::from_utf8_lossy(&outside.stdout).trim(), "50", "control: {outside:?}");
    assert!(session.control(SETUP));
    write(2000);
    session.sh("python3 race.py").assert(0, "0");
}
