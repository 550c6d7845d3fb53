//! Rules over names hold for names that appear later, wherever and however.

use std::fs;
use std::path::{Path, PathBuf};

use portcullis_sandbox::{Judgement, NameRules, Names, Reads};

use crate::Test;
use crate::held::asked;
use crate::kit::Session;

pub(crate) const TESTS: &[Test] = &[
    ("names::a_refused_name_is_not_made_in_any_way", a_refused_name_is_not_made_in_any_way),
    ("names::a_plain_name_is_no_link", a_plain_name_is_no_link),
    ("names::what_has_a_refused_name_is_not_changed", what_has_a_refused_name_is_not_changed),
    ("names::a_directory_does_not_move_onto_refused_names", a_directory_does_not_move_onto_refused_names),
    ("names::what_a_command_has_made_is_its_own", what_a_command_has_made_is_its_own),
    ("names::what_takes_anothers_place_is_not_its_own", what_takes_anothers_place_is_not_its_own),
    (
        "names::what_was_never_asked_about_is_asked_about_when_it_leaves",
        what_was_never_asked_about_is_asked_about_when_it_leaves,
    ),
    ("names::spared_places_are_left_to_the_kernel", spared_places_are_left_to_the_kernel),
    ("names::modes_and_errors_are_the_kernels", modes_and_errors_are_the_kernels),
    ("names::descriptors_by_path_lead_to_the_callers_own", descriptors_by_path_lead_to_the_callers_own),
    ("names::what_appears_meanwhile_is_no_refusal", what_appears_meanwhile_is_no_refusal),
    ("names::pipes_and_sockets_work", pipes_and_sockets_work),
    ("names::a_pipe_ends_when_its_writer_has_closed_it", a_pipe_ends_when_its_writer_has_closed_it),
    ("names::a_script_runs_as_soon_as_it_is_executable", a_script_runs_as_soon_as_it_is_executable),
    ("names::places_are_apart", places_are_apart),
    ("names::directories_deeper_than_any_path_do_not_end_a_session", directories_deeper_than_any_path),
    ("names::nothing_goes_on_without_the_broker", nothing_goes_on_without_the_broker),
];

/// A judge for tests. Lines of `refuse` or `ask` take the name of a component, and lines of `hide` or `ask-to-read` a
/// suffix of names; `refuse-below` with two names refuses the second below the first. Below a `plain` directory every
/// name must be plain.
#[derive(Default)]
struct Lines {
    changes: Vec<(Judgement, String)>,
    reads: Vec<(Judgement, String)>,
    below: Vec<(String, String)>,
}

impl Names for Lines {
    fn judge(&self, path: &Path) -> Judgement {
        let holds = |wanted: &str| path.iter().any(|component| component == wanted);
        let found = self.changes.iter().filter(|(_, wanted)| holds(wanted)).map(|(judgement, _)| *judgement);
        let is_below = |(around, name): &(String, String)| path.ends_with(PathBuf::from(around).join(name));
        let below = self.below.iter().any(is_below).then_some(Judgement::Refused);
        found.max().max(below).unwrap_or(Judgement::Free)
    }

    fn judge_reading(&self, path: &Path) -> Judgement {
        let ends = |wanted: &str| {
            path.iter()
                .any(|component| component.to_str().is_some_and(|component| component.ends_with(wanted)))
        };
        let found = self.reads.iter().filter(|(_, wanted)| ends(wanted)).map(|(judgement, _)| *judgement);
        found.max().unwrap_or(Judgement::Free)
    }

    fn is_plain(&self, path: &Path) -> bool {
        path.iter().any(|component| component == "plain")
    }

    fn is_own(&self, _path: &Path) -> bool {
        false
    }

    fn is_alike_below(&self, _one: &Path, _other: &Path) -> bool {
        self.changes.is_empty() && self.reads.is_empty() && self.below.is_empty()
    }

    fn restricts_alike_below(&self, path: &Path, other: &Path) -> bool {
        self.below.iter().all(|(around, _)| !path.ends_with(around) || other.ends_with(around))
    }
}

/// Makes the judge in the keepers of these tests.
pub(crate) fn make(data: &[u8]) -> Option<Box<dyn Names>> {
    let mut lines = Lines::default();
    for line in std::str::from_utf8(data).ok()?.lines() {
        let (kind, name) = line.split_once(' ')?;
        let (list, judgement) = match kind {
            "refuse-below" => {
                let (around, name) = name.split_once(' ')?;
                lines.below.push((around.to_owned(), name.to_owned()));
                continue;
            }
            "refuse" => (&mut lines.changes, Judgement::Refused),
            "ask" => (&mut lines.changes, Judgement::Asked),
            "hide" => (&mut lines.reads, Judgement::Refused),
            "ask-to-read" => (&mut lines.reads, Judgement::Asked),
            _ => return None,
        };
        list.push((judgement, name.to_owned()));
    }
    Some(Box::new(lines))
}

pub(crate) fn rules(lines: &str) -> NameRules {
    NameRules {
        data: lines.into(),
        workspace: "/w".into(),
        homes: Vec::new(),
        spared: vec!["/tmp".into()],
        lifted: Vec::new(),
        links: Vec::new(),
        leading_nowhere: Vec::new(),
        reads: Reads::Free,
        kept_back: Vec::new(),
    }
}

pub(crate) fn session(lines: &str) -> Session {
    Session::with(|_, profile| profile.names = Some(rules(lines)))
}

fn directories_deeper_than_any_path() {
    if !crate::exists("/usr/bin/perl") {
        return crate::cannot_run("perl (package perl-base)");
    }
    let session = session("refuse bad");
    let script = format!(
        "perl -e 'use Cwd; $top = getcwd(); for $k (0, 1) {{ mkdir qq(t$k); chdir qq(t$k) or die; \
         for (1..1900) {{ mkdir q(a); chdir q(a) or die }} sysopen(B, q(.), 0) or die; chdir $top or die }} \
         sub move {{ my ($at, $from, $to) = @_; syscall({number}, -100, $from, $at, $to, 0) == 0 }} \
         exit((move(fileno(B), q(t0), q(p)) && move(-100, q(t1), q(other))) ? 0 : 1)'",
        number = libc::SYS_renameat2
    );
    session.sh(&script).assert_fails();
    // The broker is alive and continues.
    session.allows("mkdir new && mv new newer && rm -r t0 t1");
    assert!(session.control(&script), "control");
    assert!(session.control("rm -r other"));
}

fn a_refused_name_is_not_made_in_any_way() {
    let session = session("refuse bad");
    for script in [
        "echo x > bad",
        "echo x > sub/../bad",
        "echo x > \"$P/work/bad\"",
        "mkdir -p new/deep && echo x > new/deep/bad",
        "mkdir bad",
        "mkdir -p new/deep/bad/deeper",
        "mkfifo bad",
        "ln -s file bad",
        "ln file bad",
        "mv file bad && mv bad file",
        "echo x > /dev/fd/3/bad",
        "echo x > /proc/self/cwd/bad",
        "ln -sfn bad link && echo x > link",
        "ln -sfn \"$P/work/sub/bad\" link && echo x > link",
        "ln -sfn sub l2; ln -sfn l2/bad link && echo x > link",
        "cd sub && echo x > ../bad",
        "cp file bad",
        "touch bad",
        "install -m 755 file bad",
        "tar cf - file --transform=s/file/bad/ | tar xf -",
        "truncate -s 1 bad",
        "sed -n 'w bad' file",
        "perl -e 'exit !mkdir(\"bad/\")'",
    ] {
        let script = format!("exec 3<.; {script}");
        session.sh(&script).assert_fails();
        let found = session.sh("find . -name bad | grep . && exit 1; true");
        assert_eq!(found.exit, portcullis_sandbox_runtime::Exit::Code(0), "{script}: {found:?}");
        assert!(session.control(&script), "control: {script}");
        assert!(session.control("rm -rf bad link l2 new sub/bad; echo content > file"));
    }
}

fn a_plain_name_is_no_link() {
    let session = session("refuse bad");
    let moved = |script: &str, old: &str, new: &str| {
        format!("{script}; perl -e 'exit !rename(\"{old}\", \"{new}\")'")
    };
    for script in [
        "ln -s file plain/x".to_owned(),
        "ln file plain/x".to_owned(),
        "exec 3<file; ln -L /proc/self/fd/3 plain/x".to_owned(),
        "mkfifo plain/x".to_owned(),
        "perl -MIO::Socket::UNIX -e 'exit !IO::Socket::UNIX->new(Local => \"plain/x\", Listen => 1)'"
            .to_owned(),
        moved("ln -s file l", "l", "plain/x"),
        moved("ln file l", "l", "plain/x"),
        moved("mkdir l && ln -s ../file l/x", "l", "plain/l"),
        moved("rmdir plain && mkdir l && ln -s ../file l/x", "l", "plain"),
    ] {
        assert!(session.control("mkdir -p plain && chmod 777 plain"));
        session.sh(&script).assert_fails();
        let found = session
            .sh("find plain '(' ! -type f ! -type d -o -type f -links +1 ')' | grep . && exit 1; true");
        assert_eq!(found.exit, portcullis_sandbox_runtime::Exit::Code(0), "{script}: {found:?}");
        assert!(session.control("rm -rf l plain; mkdir plain"));
        assert!(session.control(&script), "control: {script}");
        assert!(session.control("rm -rf l plain"));
    }
    // Files and directories can be created, removed and renamed.
    session.allows(
        "mkdir -p plain/a && echo x > plain/a/b && ln plain/a/b plain/c && mv plain/a plain/d && rm plain/c",
    );
    session.allows("mv file plain/file && mv plain/file file");
}

fn what_has_a_refused_name_is_not_changed() {
    let session = session("refuse bad");
    let bad = session.path("work/sub/bad");
    fs::write(&bad, "content\n").expect("a file");
    std::os::unix::fs::chown(&bad, None, None).expect("owned");
    for script in [
        "echo x > sub/bad",
        "echo x >> sub/bad",
        "sed -i s/content/x/ sub/bad",
        "truncate -s 0 sub/bad",
        "rm -f sub/bad",
        "mv sub/bad other",
        "mv file sub/bad",
        "ln sub/bad other && echo x > other",
        "ln -sfn sub/bad other && echo x > other",
        "ln -f file sub/bad",
        "exec 3<sub/bad; echo x > /dev/fd/3",
        "exec 3<sub/bad; echo x >> /proc/self/fd/3",
        "exec 3<sub/bad; echo x > /proc/$$/fd/3",
        "perl -e 'exit !truncate(\"sub/bad\", 0)'",
        "perl -e 'exit !open(my $f, \"+<\", \"sub/bad\")'",
    ] {
        session.sh(script).assert_fails();
        assert_eq!(fs::read_to_string(&bad).expect("read"), "content\n", "{script}");
        assert!(session.control(script), "control: {script}");
        assert!(session.control("rm -f other; echo content > file; echo content > sub/bad"));
    }
}

fn a_directory_does_not_move_onto_refused_names() {
    let session = session("refuse bad");
    session.allows(
        "mkdir -p a/b && echo x > a/b/f && mv a c && mv c/b b && mv b c/b && mv c a && test -f a/b/f",
    );
    assert!(session.control("mkdir -p held && echo x > held/bad"));
    for script in [
        "mv a bad",
        // Its path would change with it.
        "mv held other",
        "mv held sub/held",
        "perl -e 'my ($one, $two) = (\"held\", \"a\"); exit syscall(316, -100, $one, -100, $two, 2) != 0'",
    ] {
        session.sh(script).assert_fails();
        assert!(session.control(script), "control: {script}");
        assert!(session.control("rm -rf bad other held sub/held a; mkdir -p held a/b; echo x > held/bad"));
    }
}

fn what_a_command_has_made_is_its_own() {
    let session = session("");
    session.allows(
        "mkdir -p new/deep && echo x > new/deep/.npmrc && mv new moved && echo y >> moved/deep/.npmrc && \
         mkdir moved/.vscode && echo z > moved/.vscode/tasks.json && rm -r moved/.vscode",
    );
    session.refuses("echo x > .npmrc");
    session.refuses("echo x > sub/.npmrc");
    session.refuses("mkdir -p sub/.vscode && echo x > sub/.vscode/tasks.json");
    // The next command has not made it.
    session.refuses("echo z > moved/deep/.npmrc");
    session.refuses("mkdir sub2; rmdir sub2; echo x > sub/.npmrc");
    session.refuses("echo x > rc; mv rc .bashrc");
    session.refuses(
        "mkdir gh; mkdir gh/workflows; echo x > gh/workflows/x; mv gh .github && exit 0; \
         mv sub/file file && mkdir .github && mv gh/workflows .github/ && exit 0; exit 1",
    );
    // A directory becomes the command's own by where it goes, not by where it comes from.
    session.allows("mkdir -p n/g/workflows && echo x > n/g/workflows/ci.yml && mv n/g n/.forgejo");
    for (made, name) in
        [("workflows/ci.yml", ".forgejo"), ("hgrc", ".hg"), ("mise.toml", ".config"), ("skills/s.md", ".pi")]
    {
        session.refuses(&format!(
            "rm -rf {name} m; mkdir -p m/g/$(dirname {made}) && echo x > m/g/{made} && mv -T m/g {name}"
        ));
    }
}

/// A directory of the project stays the project's, whoever has made the one that is there now.
fn what_takes_anothers_place_is_not_its_own() {
    let session = session("");
    let place = "packages/app/.vscode";
    let tasks = |directory: &str| format!("mkdir -p {directory}; echo evil > {directory}/tasks.json");
    for script in [
        format!(
            "mkdir n; mv packages/app/main.c n; rmdir packages/app; {}; mv n packages/app",
            tasks("n/.vscode")
        ),
        format!("rm packages/app/main.c; {}; mv -T n packages/app", tasks("n/.vscode")),
        format!("rm -r packages/app; mkdir packages/app; {}", tasks(place)),
        format!("mv packages old; {}", tasks(place)),
        format!("mv packages old; rm -r old/app; {}; mv n old/app; mv old packages", tasks("n/.vscode")),
        // Empty when it arrives, and filled there.
        format!("mkdir n; mv packages/app old; mv n packages/app; {}", tasks(place)),
        format!("mkdir -p n/app; mv packages old; mv n packages; {}", tasks(place)),
        format!(
            "mkdir n; perl -e 'exit syscall(316, -100, $n = \"n\", -100, $p = \"packages/app\", 2) != 0' && {{ {}; }}",
            tasks(place)
        ),
    ] {
        assert!(
            session.control("rm -rf n old packages; mkdir -p packages/app; echo x > packages/app/main.c")
        );
        assert!(session.control(&script) && session.path("work").join(place).join("tasks.json").exists());
        assert!(
            session.control("rm -rf n old packages; mkdir -p packages/app; echo x > packages/app/main.c")
        );
        let (_, output, questions) = asked(&session, &script, false);
        assert!(!questions.is_empty(), "{script}: {output}");
        assert!(!session.path("work").join(place).join("tasks.json").exists(), "{script}: {output}");
    }
    let tasks = tasks("own/.vscode");
    session.allows(&format!("mkdir own; {tasks}; mv own other; rm -r other; mkdir own; {tasks}; rm -r own"));
    session.allows(&format!("mkdir own; {tasks}; rm -r own"));
}

fn what_was_never_asked_about_is_asked_about_when_it_leaves() {
    let session = session("");
    let moved = |through: &str| {
        format!(
            "mkdir -p {through}; mv sub {through}/; echo e > {through}/sub/.envrc; made=$?; mv {through}/sub . && exit $made"
        )
    };
    session.allows(
        "mkdir -p node_modules/a && echo x > node_modules/a/.npmrc && mv node_modules/a node_modules/b",
    );
    session.refuses(&moved("node_modules"));
    session.allows("rm sub/.envrc");
    session.refuses(&moved("n"));
    session.allows("rm sub/.envrc; mkdir k; mv sub k/ && mv k/sub .");
}

fn spared_places_are_left_to_the_kernel() {
    let session = session("refuse bad");
    session.allows("echo x > /tmp/bad && mkdir /tmp/d && mv /tmp/bad /tmp/d/bad && rm -r /tmp/d");
    session.allows("ln -s /tmp/here link && echo x > link && test -s /tmp/here && rm link");
    session.refuses("cp file /tmp/bad && mv /tmp/bad bad && rm bad");
}

fn modes_and_errors_are_the_kernels() {
    let session = session("refuse bad");
    for script in [
        "umask 077; echo x > m1; mkdir m2; test $(stat -c %a m1) = 600 && test $(stat -c %a m2) = 700",
        "(umask 002; echo x > m3); echo x > m4; test $(stat -c %a m3) = 664 && test $(stat -c %a m4) = 644",
        "mkdir -m 1777 m5; test $(stat -c %a m5) = 1777",
        "set -C; ! echo x > file",
        "! mkdir sub 2> e; grep -q exists e",
        "! rmdir sub 2> e; grep -q 'not empty' e",
        "! rmdir file 2> e; grep -q 'Not a directory' e",
        "! rm sub 2> e; grep -q 'Is a directory' e",
        "! echo x > nowhere/file 2> e; ! (echo x > sub/) 2> e; ! (echo x > file/x) 2> e",
        "ln -s nowhere dangling; echo x > dangling; test -s nowhere; ln -s loop loop; ! (echo x > loop) 2> /dev/null",
        "mkdir ro; chmod 500 ro; test $(id -u) = 0 || ! (echo x > ro/x) 2> /dev/null",
        "perl -e 'use Fcntl; sysopen(F, \"ap\", O_WRONLY|O_CREAT|O_APPEND) or die; syswrite(F, \"a\"); \
         sysopen(G, \"ap\", O_WRONLY|O_APPEND); syswrite(G, \"b\"); syswrite(F, \"c\")'; test \"$(cat ap)\" = abc",
        "perl -e 'mkdir \"x/\" or die; rename \"x/\", \"y/\" or die; rmdir \"y/\" or die'",
        "perl -e 'open(F, \">f1\") or die; unlink \"f1\" or die; print F \"x\"; close F or die'",
    ] {
        session.allows(script);
        assert!(session.control("rm -rf m1 m2 m3 m4 m5 e dangling nowhere loop ro ap"));
        assert!(session.control(script), "control: {script}");
        assert!(session.control("rm -rf m1 m2 m3 m4 m5 e dangling nowhere loop ro ap"));
    }
}

fn descriptors_by_path_lead_to_the_callers_own() {
    let session = session("refuse bad");
    session.allows(
        "exec 4> four 5< sub; echo x > /dev/fd/4; echo y >> /proc/self/fd/4; test \"$(cat four)\" = y || \
         test \"$(cat four)\" = \"$(printf 'x\\ny')\"; echo z > /dev/fd/5/z; test -s sub/z; \
         echo out > /dev/stdout; (echo o > /dev/stdout) > five; grep -q o five; echo e > /dev/stderr",
    );
}

/// Two processes that create the same directories at once, as npm does, find them there or not, and are never refused.
fn what_appears_meanwhile_is_no_refusal() {
    let session = session("");
    let script = "import os, threading\n\
        refused = []\n\
        def make(path):\n    \
            for _ in range(400):\n        \
                try: os.mkdir(path)\n        \
                except (FileNotFoundError, FileExistsError): pass\n        \
                except OSError as error: refused.append(error)\n        \
                try: os.rmdir(path)\n        \
                except OSError: pass\n\
        threads = [threading.Thread(target=make, args=[path]) for path in ['top', 'top/a', 'top/a/b', 'top/a/c'] * 2]\n\
        [t.start() for t in threads]; [t.join() for t in threads]; print(refused)";
    fs::write(session.path("work/s.py"), script).expect("a file");
    session.sh("python3 s.py").assert(0, "[]");
}

/// The broker opens pipes for commands, and must not keep an end of its own: a reader would wait forever.
fn a_pipe_ends_when_its_writer_has_closed_it() {
    if !crate::exists("/usr/bin/python3") {
        return crate::cannot_run("python3");
    }
    // With busy processors, so that every wake-up is delayed.
    let script = "import os, subprocess\n\
        busy = [subprocess.Popen(['sh', '-c', 'while :; do :; done']) for _ in range(os.cpu_count() * 2)]\n\
        late = 0\n\
        os.mkfifo('pipe')\n\
        for turn in range(1000):\n    \
            read = os.open('pipe', os.O_RDONLY | os.O_NONBLOCK)\n    \
            write = os.open('pipe', os.O_WRONLY); os.write(write, b'x'); os.close(write)\n    \
            assert os.read(read, 9) == b'x'\n    \
            try: assert os.read(read, 9) == b''\n    \
            except BlockingIOError: late += 1\n    \
            os.close(read)\n\
        [one.kill() for one in busy]; [one.wait() for one in busy]\n\
        os.unlink('pipe'); print(late)\n";
    let session = session("");
    fs::write(session.path("work/pipes.py"), script).expect("written");
    assert!(session.control("test \"$(python3 pipes.py)\" = 0"), "control: as it is without us");
    session.sh("python3 pipes.py").assert(0, "0");
}

/// The broker opens files for commands. A script that has just been written, and made executable, runs at once.
fn a_script_runs_as_soon_as_it_is_executable() {
    if !crate::exists("/usr/bin/python3") {
        return crate::cannot_run("python3");
    }
    let script = "import errno, os, subprocess, sys\n\
        name, refused = f'script{sys.argv[1]}', 0\n\
        for turn in range(400):\n    \
            with open(name, 'w') as file:\n        \
                file.write('#!/bin/sh\\n')\n        \
                if turn % 2: os.fchmod(file.fileno(), 0o755)\n    \
            if turn % 2 == 0: os.chmod(name, 0o755)\n    \
            try: subprocess.run(['./' + name], check=True)\n    \
            except OSError as error:\n        \
                assert error.errno == errno.ETXTBSY; refused += 1\n    \
            os.unlink(name)\n\
        print(f'refused {refused}' if refused else 'ran')\n";
    let session = session("");
    fs::write(session.path("work/scripts.py"), script).expect("written");
    let several = "for n in 1 2 3 4 5 6 7 8; do python3 scripts.py $n & done; wait";
    assert!(
        session.control(&format!("test \"$( ({several}) | uniq -c | tr -d ' ')\" = 8ran")),
        "control: as it is without us"
    );
    session.sh(several).assert(0, &["ran"; 8].join("\n"));
}

fn pipes_and_sockets_work() {
    let session = session("refuse bad");
    session.allows(
        "mkfifo p; (echo through > p) & read x < p; test $x = through; wait; \
         (cat p > got) & sleep 0.05; echo late > p; wait; grep -q late got",
    );
    session.allows(
        "perl -e 'use Socket; for my $n (\"s\", \"sub/s\", \"$ENV{P}/work/s2\") { socket(my $s, AF_UNIX, SOCK_STREAM, 0); \
         bind($s, sockaddr_un($n)) or die; listen($s, 1); socket(my $c, AF_UNIX, SOCK_STREAM, 0); \
         connect($c, sockaddr_un($n)) or die }' && test -S s && test -S sub/s && test $(stat -c %a s) = 755",
    );
    session
        .sh("perl -e 'use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0); \
         exit !bind($s, sockaddr_un(\"sub/bad\"))'")
        .assert_fails();
    assert!(!session.path("work/sub/bad").exists());
}

fn places_are_apart() {
    let session = session("");
    // `mv` copies when the kernel reports two file systems, and so do programs that link.
    session.allows(
        "echo x > /tmp/x && mv /tmp/x x && mv x /tmp/x && ! ln /tmp/x y 2> e; grep -q cross-device e",
    );
    session.sh("cp -al \"$P/home/open\" copied 2>&1 | grep -c cross-device").assert(0, "2");
}

fn nothing_goes_on_without_the_broker() {
    let session = session("");
    let (running, _output) = session.start(session.command(&["sleep", "100"])).expect("starts");
    let view = session.confinement.view();
    let number = std::os::fd::AsRawFd::as_raw_fd(&view.keeper());
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).expect("its number");
    let keeper = info.lines().find_map(|line| line.strip_prefix("Pid:")).expect("its number").trim();
    let children =
        fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).expect("its children");
    let broker = children.split_whitespace().next().and_then(|first| first.parse().ok()).expect("a child");
    let broker = rustix::process::Pid::from_raw(broker).expect("a number");
    rustix::process::kill_process(broker, rustix::process::Signal::KILL).expect("killed");
    let exit = running.wait_timeout(std::time::Duration::from_secs(2));
    assert_eq!(exit, Some(portcullis_sandbox_runtime::Exit::Lost));
    assert!(session.run(session.command(&["true"])).is_err());
}
