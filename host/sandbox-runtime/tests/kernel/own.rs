//! Names that the user's tools execute are free in a command's own directories, but not where the user may enter them.

use std::fs;
use std::io::{Read, Write};
use std::process::Command;

use portcullis_exec_surface::UserLink;
use portcullis_sandbox::{NameAccess, NameOrder, NameRules, Profile};
use portcullis_sandbox_runtime::{Confinement, Exit, Running};

use crate::Test;
use crate::held::{asked, asked_in};
use crate::kit::{self, Session};
use crate::names::{rules, session};

pub(crate) const TESTS: &[Test] = &[
    ("own::what_comes_to_a_users_place_is_asked_about", what_comes_to_a_users_place_is_asked_about),
    ("own::a_yes_is_for_one_link", a_yes_is_for_one_link),
    ("own::a_yes_is_for_the_names_behind_the_link", a_yes_is_for_the_names_behind_the_link),
    ("own::other_directories_stay_free", other_directories_stay_free),
    ("own::a_users_place_is_one_for_all_commands", a_users_place_is_one_for_all_commands),
    ("own::a_background_command_loses_what_others_link", a_background_command_loses_what_others_link),
    ("own::links_and_files_at_once_leave_no_gap", links_and_files_at_once_leave_no_gap),
    ("own::what_two_take_away_at_once_stays_a_users_place", what_two_take_away_at_once),
    ("own::a_users_place_is_one_for_all_sandboxes", a_users_place_is_one_for_all_sandboxes),
    ("own::what_a_users_link_leads_to_is_as_its_name", what_a_users_link_leads_to_is_as_its_name),
    ("own::where_a_users_link_leads_nowhere_no_directory_is_own", where_a_users_link_leads_nowhere),
];

/// The user's files: directories, a link to one of them, and a link to that link.
const SETUP: &str = "chmod -R u+rwx . 2>/dev/null; find . -mindepth 1 -delete; \
    mkdir -p s1/sub t1 u/s1 x1 .venv/bin; ln -s ../x1 t1/up; echo x > s1/main.c; echo x > s1/sub/x.c; ln -s t1 l1; ln -s l1 l2; \
    rm -rf \"$P/temp/n\"";

/// Functions for the scripts: `evil PATH` writes a file that the user's tools would execute, `exchange A B` exchanges
/// two names.
const TOOLS: &str = "T=\"${TMPDIR:-$P/temp}\"; evil() { echo evil > \"$1\"; }; \
    exchange() { perl -e 'exit syscall(316, -100, $n = shift, -100, $p = shift, 2) != 0' \"$1\" \"$2\"; }; ";

/// The path at which the user would find the file, and how a command puts it there.
const ATTACKS: &[(&str, &str)] = &[
    // A link to a command's own directory.
    ("s1/.envrc", "mv s1 old; mkdir n; evil n/.envrc; ln -s n s1"),
    ("s1/.envrc", "mv s1 old; mkdir n; evil n/.envrc; ln -s \"$PWD/n\" s1"),
    ("s1/.envrc", "mv s1 old; mkdir n; evil n/.envrc; ln -s ./t1/../n/. s1"),
    ("s1/.envrc", "rm -r s1; mkdir n; evil n/.envrc; ln -s n s1"),
    ("s1/.vscode/tasks.json", "mv s1 old; mkdir -p n/.vscode; evil n/.vscode/tasks.json; ln -s n s1"),
    ("s1/.cargo/config.toml", "mv s1 old; mkdir -p n/.cargo; evil n/.cargo/config.toml; ln -s n s1"),
    // Filled, or even created, only after the link.
    ("s1/.envrc", "mv s1 old; mkdir n; ln -s n s1; evil n/.envrc"),
    ("s1/.envrc", "mv s1 old; mkdir n; ln -s n s1; evil s1/.envrc"),
    ("s1/.envrc", "mv s1 old; ln -s n s1; mkdir n; evil n/.envrc"),
    ("s1/.envrc", "mv s1 old; ln -s n s1; mkdir m; evil m/.envrc; mv m n"),
    ("s1/.envrc", "mv s1 old; mkdir d; ln -s d/n/m s1; mkdir -p e/m; evil e/m/.envrc; mv e d/n"),
    ("s1/.envrc", "mv s1 old; echo x > n; ln -s n s1; rm n; mkdir n; evil n/.envrc"),
    // Chains of links, which are pointed elsewhere later.
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
    // Above it: tools search upwards.
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
    // Directories and links that are created again.
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
    // Links of the user's whose target changes when their directory moves.
    ("u/t1/up/.envrc", "mkdir u/x1; evil u/x1/.envrc; mv t1 u/t1"),
    ("u/t1/up/.envrc", "mv t1 u/t1; mkdir u/x1; evil u/x1/.envrc"),
    // From places where names are free to all commands.
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
        // Another command of the same session cannot do it either.
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
    let expected = vec![(NameAccess::Write, "work/s1".to_owned())];
    assert_eq!((exit, questions), (Exit::Code(0), expected), "{output}");
    assert!(session.path("work/s1/.envrc").exists());
    let (_, output, questions) = asked(&session, &format!("{TOOLS}evil n/.envrc; evil s1/.envrc"), false);
    assert_eq!(questions.len(), 2, "{output}");
}

/// A command adds a name behind its link while the user is asked about the link.
fn a_yes_is_for_the_names_behind_the_link() {
    let script = "mv s1 old; mkdir n; evil n/.envrc; \
        { while ! test -e ../go; do sleep 0.02; done; evil n/.npmrc; echo x > ready; } & ln -s n s1; wait";
    for is_filled in [true, false] {
        let session = session("");
        assert!(session.control(SETUP));
        let (running, _output) = waiting(&session, script);
        let first = kit::next_held(&running).expect("it is asked about");
        let rule = first.rule().to_owned();
        if is_filled {
            fs::write(session.path("go"), "").expect("a file");
            kit::eventually("the name is there", || session.path("work/ready").exists());
        }
        first.allow();
        if is_filled {
            let again = kit::next_held(&running).expect("it is asked about again");
            assert!(again.path().ends_with("s1") && again.rule() == rule, "{again:?}");
            again.refuse();
        } else {
            kit::eventually("the link is there", || session.path("work/s1/.envrc").exists());
            fs::write(session.path("go"), "").expect("a file");
            let held = kit::next_held(&running).expect("the other name is asked about");
            assert!(held.path().ends_with(".npmrc"), "{held:?}");
            held.refuse();
        }
        running.wait();
        assert_eq!(session.path("work/s1/.envrc").exists(), !is_filled);
        assert!(!session.path("work/s1/.npmrc").exists());
        // Without the sandbox both names end up behind the link.
        assert!(session.control(SETUP));
        session.control(&format!("{TOOLS}echo x > ../go; {script}"));
        assert!(session.path("work/s1/.npmrc").exists(), "control");
    }
}

fn other_directories_stay_free() {
    for script in [
        "mkdir n; evil n/.envrc; ln -s n link; evil link/.npmrc",
        "mkdir n m; evil n/.envrc; ln -s n l; ln -sfn m l; evil l/.envrc; rm l; mkdir l; evil l/.envrc",
        "rm -r s1; mkdir k; evil k/.envrc; mkdir s1; echo x > s1/x",
        // The usual compatibility link under the old name.
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

/// Starts a script that waits in the middle until the file `go` exists.
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

/// One thread fills directories while another links to them from a user's place: every file reachable through the link
/// was asked about.
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

/// Two threads take the same link of the user's away. One of them fails, which must not make the place a command's own.
fn what_two_take_away_at_once() {
    if !crate::exists("/usr/bin/python3") {
        return crate::cannot_run("python3");
    }
    let script = "import os, threading\n\
        late = 0\n\
        for turn in range(ROUNDS):\n    \
            name = f'l{turn}'\n    \
            start = threading.Barrier(2)\n    \
            def take():\n        \
                start.wait()\n        \
                try: os.unlink(name)\n        \
                except FileNotFoundError: pass\n    \
            threads = [threading.Thread(target=take) for _ in range(2)]\n    \
            [t.start() for t in threads]; [t.join() for t in threads]\n    \
            os.mkdir(name)\n    \
            try: open(name + '/.envrc', 'w').close(); late += 1\n    \
            except PermissionError: pass\n\
        print(late)\n";
    const ROUNDS: u32 = 400;
    let session = session("");
    let set_up = || {
        assert!(session.control(SETUP));
        for turn in 0..ROUNDS {
            std::os::unix::fs::symlink("t1", session.path(&format!("work/l{turn}"))).unwrap_or_default();
        }
        fs::write(session.path("work/race.py"), script.replace("ROUNDS", &ROUNDS.to_string()))
            .expect("written");
    };
    set_up();
    fs::remove_file(session.path("work/l2")).unwrap_or_default();
    std::os::unix::fs::symlink("t1", session.path("work/l2")).expect("a link");
    let outside =
        Command::new("python3").arg("race.py").current_dir(session.path("work")).output().expect("runs");
    assert_eq!(String::from_utf8_lossy(&outside.stdout).trim(), ROUNDS.to_string(), "control: {outside:?}");
    set_up();
    session.sh("python3 race.py").assert(0, "0");
}

/// The relation of two sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// The same session, restarted.
    SameSession,
    OtherSession,
    /// They share no name order.
    Stranger,
}

/// A session with a second sandbox in the same places.
fn with_other(how: Beside) -> (Session, Confinement) {
    let mut wanted: Option<Profile> = None;
    let session = Session::with(|place, profile| {
        let mut other = profile.clone();
        other.order = match how {
            Beside::SameSession => profile.order.clone(),
            Beside::OtherSession => Some(NameOrder::open(&place.join("order")).expect("an order of names")),
            Beside::Stranger => Some(NameOrder::open(&place.join("another")).expect("an order of names")),
        };
        wanted = Some(other);
    });
    let other = kit::start(&wanted.expect("a profile"));
    (session, other)
}

/// An attack cannot begin in one sandbox and continue in the other.
fn a_users_place_is_one_for_all_sandboxes() {
    let attack = |how: Beside, (place, first, second): (&str, &str, &str)| {
        let (session, other) = with_other(how);
        let told = format!("{how:?}: {first} - {second}");
        assert!(session.control(SETUP));
        let (exit, output, questions) =
            asked_in(&session.confinement, &session, &format!("{TOOLS}{first}"), false);
        assert_eq!((exit, &questions), (Exit::Code(0), &vec![]), "{told}: {output}");
        let (_, output, questions) = asked_in(&other, &session, &format!("{TOOLS}{second}"), false);
        let is_there = session.path("work").join(place).exists();
        if how == Beside::Stranger {
            assert!(is_there && questions.is_empty(), "control: {told}: {output}");
        } else {
            assert!(!questions.is_empty() && !is_there, "{told}: {questions:?} {output}");
        }
    };
    let attacks = [
        ("s1/.envrc", "mv s1 old", "mkdir s1; evil s1/.envrc"),
        ("s1/.envrc", "rm -r s1", "mkdir s1; evil s1/.envrc"),
        ("s1/.envrc", "mv s1 old", "mkdir n; evil n/.envrc; mv n s1"),
        ("s1/.envrc", "mv s1 old", "mkdir n; evil n/.envrc; ln -s n s1"),
        ("s1/sub/.envrc", "mv s1 old", "mkdir -p s1/sub; evil s1/sub/.envrc"),
        ("l1/.envrc", "rm l1", "mkdir l1; evil l1/.envrc"),
        ("s1/.envrc", "mv s1 old; ln -s n s1", "mkdir n; evil n/.envrc"),
        ("s1/.envrc", "mv s1 old; ln -s d/n s1", "mkdir -p d/n; evil d/n/.envrc"),
    ];
    for how in [Beside::Stranger, Beside::SameSession, Beside::OtherSession] {
        attacks.into_iter().for_each(|words| attack(how, words));
    }
    // Cases that only the name order shows: to the maker of the link its target looks like the user's.
    for how in [Beside::SameSession, Beside::OtherSession] {
        for words in [
            ("s1/../.envrc", "mkdir -p n/deep; evil n/.envrc", "mv s1 old; ln -s n/deep s1"),
            ("s1/.envrc", "mkdir n; evil n/.envrc", "mv s1 old; mv n s1"),
        ] {
            attack(how, words);
        }
    }
    a_command_of_another_sandbox_loses_what_is_linked();
    what_commands_make_stays_theirs();
}

fn a_command_of_another_sandbox_loses_what_is_linked() {
    for how in [Beside::SameSession, Beside::OtherSession] {
        let (session, other) = with_other(how);
        assert!(session.control(SETUP));
        let script = "mkdir -p d/n; cd d/n; evil .npmrc; rm .npmrc; echo x > ../../ready; \
            while ! test -e ../../go; do sleep 0.02; done; evil .envrc; \
            cd ../..; mv d d2; mkdir -p d/n; evil d/n/.envrc";
        let (running, mut output) = waiting(&session, script);
        kit::eventually("the command waits", || session.path("work/ready").exists());
        let (exit, said, questions) =
            asked_in(&other, &session, "mv s1 old; ln -s d/n s1; echo x > go", false);
        assert_eq!((exit, questions), (Exit::Code(0), vec![]), "{said}");
        let mut held = 0;
        while let Some(call) = kit::next_held(&running) {
            assert!(call.path().ends_with(".envrc"), "{how:?}: {call:?}");
            call.refuse();
            held += 1;
        }
        assert_eq!(held, 2, "{how:?}");
        let mut text = String::new();
        output.read_to_string(&mut text).expect("output");
        running.wait();
        assert!(!session.path("work/s1/.envrc").exists(), "{how:?}: {text}");
    }
}

/// A directory that commands of one sandbox have made is no user's place for those of another sandbox of the session.
fn what_commands_make_stays_theirs() {
    let (session, other) = with_other(Beside::SameSession);
    assert!(session.control(SETUP));
    session.allows("mkdir n; ln -s n l");
    let script = format!("set -e; {TOOLS}rm -r n; mkdir n; evil n/.envrc; rm l; mkdir l; evil l/.npmrc");
    let (exit, output, questions) = asked_in(&other, &session, &script, false);
    assert_eq!((exit, questions), (Exit::Code(0), vec![]), "{output}");
}

/// A session whose broker knows links of the user's.
fn with_links(links: &[(&str, &str)], nowhere: &[&str]) -> Session {
    Session::with(|place, profile| {
        let at = |name: &str| place.join("work").join(name);
        let link = |(name, target): &(&str, &str)| UserLink { name: at(name), target: at(target) };
        profile.names = Some(NameRules {
            workspace: place.join("work"),
            links: links.iter().map(link).collect(),
            leading_nowhere: nowhere.iter().map(|end| at(end)).collect(),
            ..rules("")
        });
    })
}

fn what_a_users_link_leads_to_is_as_its_name() {
    const SETUP: &str = "chmod -R u+rwx . 2>/dev/null; find . -mindepth 1 -delete; mkdir -p env tools/editor; \
        echo x > env/rc; echo x > tools/editor/tasks.json; ln -s env/rc .envrc; ln -s tools/editor .vscode; \
        ln -s none/rc .npmrc";
    for (place, attack) in [
        (".envrc", "evil env/rc"),
        (".envrc", "evil .envrc"),
        (".envrc", "evil x; mv x env/rc"),
        (".envrc", "rm env/rc; evil env/rc"),
        (".envrc", "evil x; rm env/rc; ln x env/rc"),
        (".envrc", "evil x; rm env/rc; ln -s ../x env/rc"),
        (".envrc", "ln env/rc x; evil x"),
        (".envrc", "mv env old; mkdir env; evil env/rc"),
        (".envrc", "mv env old; mkdir n; evil n/rc; mv n env"),
        (".envrc", "mv env old; mkdir n; evil n/rc; ln -s n env"),
        (".envrc", "mkdir n; evil n/rc; exchange n env"),
        (".vscode/tasks.json", "evil tools/editor/tasks.json"),
        (".vscode/new.json", "evil tools/editor/new.json"),
        (".vscode/tasks.json", "mv tools old; mkdir -p n/editor; evil n/editor/tasks.json; mv n tools"),
        (".vscode/tasks.json", "mv tools old; mkdir -p tools/editor; evil tools/editor/tasks.json"),
        (".vscode/tasks.json", "mkdir n; evil n/tasks.json; mv tools/editor old; mv n tools/editor"),
        (".vscode/tasks.json", "mkdir n; evil n/tasks.json; mv tools/editor old; ln -s ../n tools/editor"),
        // The link is dangling at first.
        (".npmrc", "mkdir none; evil none/rc"),
        (".npmrc", "mkdir n; evil n/rc; mv n none"),
        (".npmrc", "mkdir n; evil n/rc; ln -s n none"),
    ] {
        let links = [(".envrc", "env/rc"), (".vscode", "tools/editor"), (".npmrc", "none/rc")];
        let session = with_links(&links, &["none/rc"]);
        let found =
            || fs::read_to_string(session.path("work").join(place)).is_ok_and(|text| text == "evil\n");
        let script = format!("{TOOLS}{attack}");
        assert!(session.control(SETUP), "set up: {attack}");
        session.control(&script);
        assert!(found(), "control: {attack}");
        assert!(session.control(SETUP), "set up: {attack}");
        let (_, output, questions) = asked(&session, &script, false);
        assert!(!questions.is_empty() && !found(), "{attack}: {questions:?} {output}");
    }
    // Files beside the target belong to the project.
    let session = with_links(&[(".envrc", "env/rc"), (".vscode", "tools/editor")], &[]);
    assert!(session.control(SETUP));
    let script = "set -e; echo x > env/other; mkdir tools/new; echo x > tools/new/x; mv env/other tools/other; \
        rm env/rc; rm -r tools; mkdir tools; echo x > tools/x";
    let (exit, output, questions) = asked(&session, script, false);
    assert_eq!((exit, questions), (Exit::Code(0), vec![]), "{output}");
}

fn where_a_users_link_leads_nowhere() {
    for (place, attack) in [
        ("out/.envrc", "mkdir -p build/out; evil build/out/.envrc"),
        ("out/.envrc", "mkdir -p n/out; evil n/out/.envrc; mv n build"),
        ("out/.envrc", "mkdir n; evil n/.envrc; mkdir build; ln -s ../n build/out"),
        ("out/.envrc", "mkdir build; mv build k; mkdir k/out; evil k/out/.envrc; mv k build"),
        ("out/../.envrc", "mkdir -p build/out; evil build/.envrc"),
    ] {
        let session = with_links(&[], &["build/out"]);
        let set_up = "find . -mindepth 1 -delete; ln -s build/out out";
        let found =
            || fs::read_to_string(session.path("work").join(place)).is_ok_and(|text| text == "evil\n");
        let script = format!("{TOOLS}{attack}");
        assert!(session.control(set_up));
        session.control(&script);
        assert!(found(), "control: {attack}");
        assert!(session.control(set_up));
        let (_, output, questions) = asked(&session, &script, false);
        assert!(!questions.is_empty() && !found(), "{attack}: {questions:?} {output}");
        let ordinary =
            "set -e; rm -rf build; mkdir -p build/out other; echo x > build/out/x; echo x > other/.envrc";
        let (exit, output, questions) = asked(&session, ordinary, false);
        assert_eq!((exit, questions), (Exit::Code(0), vec![]), "{output}");
    }
}
