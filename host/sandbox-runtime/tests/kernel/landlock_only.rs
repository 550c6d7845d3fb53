//! The sandbox without namespaces: tests of the usual sandbox that apply here too, and tests of the differences.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::process::{Child, Command};

use portcullis_sandbox::{Access, PathAccess};
use portcullis_sandbox_runtime::Exit;

use crate::kit::{Session, eventually, without_namespaces};
use crate::{Test, cannot_run, exists};

/// Tests of the usual sandbox that hold here unchanged: prefixes of their names.
const SHARED: &[&str] = &[
    "files::the_workspace_is_writable",
    "files::the_rest_is_read_only",
    "files::hidden_places_cannot_be_written",
    "files::a_hidden_file_cannot_be_opened",
    "files::protected_names_cannot_be_moved_away",
    "files::proc_and_sys_are_read_only",
    "commands::exit_codes_are_passed_on",
    "commands::what_cannot_be_started_says_why",
    "commands::signals_end_commands_as_outside",
    "commands::handled_signals_are_handled",
    "commands::input_and_both_outputs_are_connected",
    "commands::limits_hold",
    "commands::eight_at_once_do_not_mix",
    "limits::processor_time_ends_with_its_own_signal",
    "attacks::calls_are_refused",
    "attacks::calls_are_unknown",
    "attacks::foreign_calls_are_killed",
    "attacks::commands_do_not_see_each_other",
    "attacks::namespaces_cannot_be_made",
    "attacks::only_directories_become_set_group_id",
    "attacks::objects_of_system_v_are_not_shared",
    "below::a_file_to_read_cannot_be_written",
    "below::a_file_to_write_can_be_opened_anew",
    "below::one_command_is_not_given_the_files_of_another",
    "below::the_init_gets_no_signals",
    "requests::",
];

/// The same, about names.
const SHARED_ON_NAMES: &[&str] = &[
    "names::a_",
    "names::what_has_a_refused_name_is_not_changed",
    "names::what_a_command_has_made_is_its_own",
    "names::modes_and_errors_are_the_kernels",
    "names::descriptors_by_path_lead_to_the_callers_own",
    "own::",
    "git::what_",
    "git::a_directory_that_becomes_a_repository_is_looked_at",
    "held::",
    "reads::what_appears_later_is_not_read_in_any_way",
    "reads::it_",
    "reads::errors_are_the_kernels",
    "reads::somebody_can_say_yes",
    "races::",
    "order::",
    "anew::",
    "workloads::builds_work",
];

/// The same, about the ends of processes.
const SHARED_ON_ENDS: &[&str] = &[
    "death::the_end_of_",
    "death::kill_ends_the_whole_tree",
    "death::a_dropped_command_is_killed",
    "death::a_killed_",
    "death::the_view_is_closed_when_the_keeper_is_dead",
    "death::nothing_is_left_in_the_hosts_mounts",
];

pub(crate) const TESTS: &[Test] = &[
    ("landlock_only::what_is_shown_of_the_usual_sandbox_holds", || shown_of_the_usual_sandbox(SHARED)),
    ("landlock_only::names_are_judged_as_in_the_usual_sandbox", || {
        shown_of_the_usual_sandbox(SHARED_ON_NAMES)
    }),
    ("landlock_only::ends_are_those_of_the_usual_sandbox", || shown_of_the_usual_sandbox(SHARED_ON_ENDS)),
    ("landlock_only::nothing_is_connected_to", || without_namespaces(nothing_is_connected_to)),
    ("landlock_only::other_processes_are_left_alone", || without_namespaces(other_processes_are_left_alone)),
    ("landlock_only::what_is_outside_keeps_its_attributes", || {
        without_namespaces(what_is_outside_keeps_its_attributes)
    }),
    ("landlock_only::attributes_inside_are_changed", || without_namespaces(attributes_inside_are_changed)),
    ("landlock_only::hidden_places_are_not_listed", || without_namespaces(hidden_places_are_not_listed)),
    ("landlock_only::what_is_hidden_in_the_workspace_is_judged", || {
        without_namespaces(hidden_in_the_workspace)
    }),
    ("landlock_only::what_is_hidden_in_the_workspace_is_not_executed", || {
        without_namespaces(hidden_programs_are_not_executed)
    }),
    ("landlock_only::links_of_other_processes_are_not_followed", || {
        without_namespaces(links_of_other_processes_are_not_followed)
    }),
    ("landlock_only::the_hosts_temporary_files_are_hidden", || {
        without_namespaces(the_hosts_temporary_files_are_hidden)
    }),
    ("landlock_only::a_killed_init_ends_the_session", || without_namespaces(a_killed_init_ends_the_session)),
    ("landlock_only::commands_have_terminals_of_their_own", || without_namespaces(terminals)),
    ("landlock_only::programs_work", || without_namespaces(programs_work)),
];

/// Tests that take long, and run in this sandbox only with all others.
const LONG: &[&str] = &["names::directories_deeper_than_any_path", "races::", "workloads::builds_work"];

/// Runs tests of the usual sandbox in this one: as each user every second one, or all of them if
/// `PORTCULLIS_EVERY_TASK` is set (`cargo xtask test --full`).
fn shown_of_the_usual_sandbox(shared: &[&str]) {
    let all = crate::all_tests();
    let tries_all = std::env::var_os("PORTCULLIS_EVERY_TASK").is_some();
    let own = usize::from(!rustix::process::geteuid().is_root());
    let named = |wanted: &&str| {
        let found: Vec<_> = all.iter().filter(|(name, _)| name.starts_with(*wanted)).collect();
        assert!(!found.is_empty(), "there is no `{wanted}`");
        found
    };
    let tests = shared.iter().flat_map(named).enumerate();
    let is_long = |name: &str| LONG.iter().any(|long| name.starts_with(long));
    let is_wanted = |place: usize, name: &str| tries_all || place % 2 == own && !is_long(name);
    for (_, (name, test)) in tests.filter(|(place, (name, _))| is_wanted(*place, name)) {
        println!("    {name}");
        without_namespaces(*test);
    }
}

fn nothing_is_connected_to() {
    if !exists("/usr/bin/perl") {
        return cannot_run("perl (package perl-base)");
    }
    let session = Session::new();
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a server");
    let port = server.local_addr().expect("its address").port();
    let path = session.path("work/socket");
    let _stream = UnixListener::bind(&path).expect("a socket");
    let _datagrams = UnixDatagram::bind(session.path("work/datagrams")).expect("a socket");
    for path in [&path, &session.path("work/datagrams")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("permissions");
    }
    let name = format!("portcullis-{}-{port}", std::process::id());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).expect("a name"));
    for script in [
        format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'"),
        format!("perl -MSocket -e 'socket(S, AF_INET, SOCK_DGRAM, 0) && send(S, q(x), 0, \
                 sockaddr_in({port}, inet_aton(q(127.0.0.1)))) or exit 1'"),
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un(q(socket))) or exit 1'".into(),
        format!("perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un(qq(\\0{name}))) or exit 1'"),
        // One half of a datagram pair can send its messages to any address.
        "perl -MSocket -e 'socketpair(S, T, AF_UNIX, SOCK_DGRAM, 0) && send(S, q(x), 0, \
         sockaddr_un(q(datagrams))) or exit 1'"
            .into(),
        "perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0) && bind(S, sockaddr_in(0, INADDR_ANY)) && listen(S, 1) \
         or exit 1'"
            .into(),
        format!("perl -e 'exit(syscall({}, 16, 3, 0) < 0)'", libc::SYS_socket),
        format!("perl -e 'exit(syscall({}, 0x7000{:04x}, 4096, 01600) < 0)'", libc::SYS_shmget, port),
        format!("perl -e '$n = q(portcullis-{port}); exit(syscall({}, $n, 66, 0600, 0) < 0)'", libc::SYS_mq_open),
    ] {
        session.refuses(&script);
    }
    let remove = format!(
        "perl -e '$n = q(portcullis-{port}); syscall({}, $n); \
                          shmctl(shmget(0x7000{port:04x}, 0, 0), 0, 0)'",
        libc::SYS_mq_unlink
    );
    session.control(&remove);
    // Pairs of streams, by which programs talk to their children, lead nowhere else.
    session.allows(
        "perl -MSocket -e 'socketpair(S, T, AF_UNIX, SOCK_STREAM, 0) && syswrite(S, q(x)) && sysread(T, $x, 1) \
         or exit 1'",
    );
}

/// A process of the user's, with a secret in its environment.
struct Victim(Child);

impl Victim {
    fn new(session: &Session) -> Self {
        let mut sleep = Command::new("sleep");
        Self(
            sleep
                .arg("97")
                .env("SECRET", "1")
                .current_dir(session.path("secret"))
                .spawn()
                .expect("sleep runs"),
        )
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn other_processes_are_left_alone() {
    let session = Session::new();
    let mut victim = Victim::new(&session);
    let pid = victim.0.id();
    eventually("it sleeps", || {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep"))
    });
    for script in [
        format!("kill -0 {pid}"),
        format!("kill -STOP {pid} && kill -CONT {pid}"),
        format!("grep -qa SECRET /proc/{pid}/environ"),
        format!("grep -qa sleep /proc/{pid}/cmdline"),
        format!("cat /proc/{pid}/status > /dev/null"),
        format!("cat /proc/{pid}/cwd/key"),
        format!("cat /proc/{pid}/root/etc/passwd > /dev/null && cat /proc/{pid}/maps > /dev/null"),
        format!("ls /proc/{pid}/fd"),
        format!("echo 500 > /proc/{pid}/oom_score_adj"),
        format!("prlimit --pid {pid} --nofile=50:"),
        format!("renice -n 5 -p {pid}"),
        format!("chrt -b -p 0 {pid}"),
        format!("taskset -p 1 {pid}"),
        format!("ionice -c 3 -p {pid}"),
        "ls /proc".into(),
    ] {
        session.refuses(&script);
    }
    // Every process that it may signal, and every process of a user.
    session.sh("kill -9 -1");
    session.sh("renice -n 7 -u $(id -u)").assert_fails();
    session.sh(&format!("kill -9 {pid}")).assert_fails();
    assert!(victim.0.try_wait().expect("asked").is_none(), "it lives");
    session.allows("nice -n 1 true && (sleep 9 & kill $!; wait $!; test $? = 143)");
}

fn what_is_outside_keeps_its_attributes() {
    let session = Session::new();
    let outside = session.path("home/open/file");
    let was = fs::metadata(&outside).expect("there");
    for script in [
        "chmod 600 $P/home/open/file",
        "chmod 700 $P/home/open",
        "ln -sfn $P/home/open/file l; chmod 600 l",
        "exec 3< $P/home/open/file; chmod 600 /proc/self/fd/3",
        "perl -e 'open(F, q(<), qq($ENV{P}/home/open/file)) or die; exit !chmod(0600, *F)'",
        "perl -e 'open(F, q(<), qq($ENV{P}/home/open/file)) or die; exit !utime(1, 1, *F)'",
        "touch -d 2001-01-01 $P/home/open/file",
        "cd $P/home/open && touch -d 2001-01-01 file",
        "touch -h -d 2001-01-01 $P/home/open/file",
        "chmod 600 $P/secret/key",
        "chmod 700 $P",
        "python3 -c 'import os; os.setxattr(os.environ[\"P\"] + \"/home/open/file\", \"user.x\", b\"x\")'",
    ] {
        session.sh(script).assert_fails();
        let is = fs::metadata(&outside).expect("there");
        assert_eq!((is.mode(), is.mtime()), (was.mode(), was.mtime()), "{script}");
        assert!(session.control(script), "control: {script}");
        assert!(session.control(
            "chmod 644 $P/home/open/file; chmod 755 $P/home/open $P; touch -d @$(stat -c %Y $P/secret/key) \
             $P/home/open/file"
        ));
        fs::File::open(&outside)
            .and_then(|file| file.set_modified(was.modified().expect("a time")))
            .expect("put back");
    }
}

fn attributes_inside_are_changed() {
    let session = Session::new();
    for script in [
        "chmod 640 file && test $(stat -c %a file) = 640",
        "touch -d @1000000000 file && test $(stat -c %Y file) = 1000000000",
        "ln -s file l; touch -h -d @1000000000 l && test $(stat -c %Y l) = 1000000000",
        "perl -e 'open(F, q(>), q(new)); exit !(chmod(0600, *F) && utime(7, 9, *F) && (stat F)[9] == 9)'",
        "perl -e 'exit !(utime(undef, undef, q(file)) && time - (stat q(file))[9] < 99)'",
        "cp -a sub copied && cp -p file copied/f && test $(stat -c %Y copied/f) = $(stat -c %Y file)",
        "tar cf t.tar sub && mkdir out && tar xpf t.tar -C out && diff -r sub out/sub",
        "echo x > $TMPDIR/t && chmod 600 $TMPDIR/t && touch -d @7 $TMPDIR/t && test $(stat -c %Y $TMPDIR/t) = 7",
        "! chmod 600 nowhere 2> e && grep -q 'No such' e && ! chmod 4755 file 2> /dev/null",
        "chown $(id -u):$(id -g) file && ! chown 4711 file 2> /dev/null",
        "mv $TMPDIR/t there && mv there $TMPDIR/t && ! ln $TMPDIR/t l2 2> e && grep -q cross-device e",
    ] {
        session.allows(script);
    }
}

/// Terminals of the user and of other commands cannot be opened.
fn terminals() {
    if !exists("/usr/bin/script") {
        return cannot_run("`script` (package bsdutils)");
    }
    let session = Session::new();
    session.allows("test \"$(script -qec 'test -t 0 && echo it-is' /dev/null)\" = \"$(printf 'it-is\\r')\"");
    session.allows(
        "python3 -c 'import os, pty; ours, theirs = pty.openpty(); os.write(ours, b\"x\\n\"); \
         assert os.read(theirs, 9) == b\"x\\n\"; assert os.ttyname(theirs).startswith(\"/dev/pts/\")'",
    );
    session.allows("script -qec 'script -qec \"stty size && exec 3<> $(tty)\" /dev/null' /dev/null");
    let held = |session: &Session| {
        let script = "script -qfc 'tty > here.new; mv here.new here; sleep 1000' /dev/null > /dev/null";
        (session.start(session.command(&["sh", "-c", script])).expect("it starts"), session.path("work/here"))
    };
    let mut outside = Command::new("script")
        .args(["-qfc", "tty > outside.new; mv outside.new outside; sleep 1000", "/dev/null"])
        .current_dir(session.path("work"))
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("`script` starts");
    let ((other, _output), here) = held(&session);
    let there = session.path("work/outside");
    eventually("both have a terminal", || here.exists() && there.exists());
    for name in [&here, &there] {
        let name = fs::read_to_string(name).expect("a name");
        for way in [
            format!("exec 3<> {name}"),
            format!("echo x > {name}"),
            format!("cat < {name}"),
            // With a terminal of its own, by the number of another.
            format!("script -qec 'exec 3<> {}' /dev/null", name.trim()),
        ] {
            session.sh(&way).assert_fails();
        }
        assert!(session.control(&format!("exec 3<> {name}")), "control: {name}");
    }
    session.sh("ls /dev/pts").assert_fails();
    other.kill();
    other.wait();
    outside.kill().and_then(|()| outside.wait()).expect("it ends");
}

fn hidden_places_are_not_listed() {
    let session = Session::new();
    for script in ["ls $P/secret", "ls $P/home", "cat $P/home/closed/file", "$P/home/closed/program"] {
        if script.ends_with("program") {
            fs::copy("/bin/true", session.path("home/closed/program")).expect("a copy");
        }
        session.refuses(script);
    }
    session.allows("cat $P/home/open/file && ls $P/home/open/deep && cd $P/home/open && cat file");
    // A file that appears beside a hidden name later is not allowed.
    fs::write(session.path("later"), "content").expect("a file");
    session.refuses("cat $P/later");
}

fn hidden_in_the_workspace() {
    let session = Session::with(|place, wanted| {
        wanted.places.push(PathAccess { path: place.join("work/sub"), access: Access::Hidden });
    });
    for script in [
        "cat sub/file",
        "ls sub",
        "head -c1 < sub/file",
        "cd sub && cat file",
        "mv sub other",
        "mv sub/file other",
        "ln sub/file other",
        "ln -sfn sub other; cat other/file",
        "echo x > sub/new",
        "rm sub/file",
        "exec 3< sub; cat /proc/self/fd/3/file",
        // Opened with O_PATH, and then opened again.
        "perl -e 'sysopen(F, q(sub/file), 0x200000) or die; $n = fileno F; open(G, q(<), qq(/proc/self/fd/$n)) or exit 1'",
        "perl -e 'sysopen(F, q(sub), 0x200000) or die; $n = fileno F; opendir(G, qq(/proc/self/fd/$n)) or exit 1'",
        "perl -e 'sysopen(F, qq($ENV{P}/secret/key), 0x200000) or die; $n = fileno F; \
         open(G, q(<), qq(/proc/$$/fd/$n)) or exit 1'",
        "cat $P/secret/key",
        "ls $P/secret",
    ] {
        session.sh(script).assert_fails();
        assert_eq!(
            fs::read_to_string(session.path("work/sub/file")).expect("there"),
            "content\n",
            "{script}"
        );
    }
    assert!(session.control("cat sub/file && ls sub && head -c1 < sub/file"), "control");
    session.allows("echo x > new && cat new file && grep -q Name: /proc/self/status && ls . > /dev/null");
    session.refuses("cat /proc/1/status > /dev/null");
    session.refuses("cat /proc/$PPID/cmdline > /dev/null");
    session.refuses("cat /proc/self/net/tcp > /dev/null");
}

/// A program's file is mapped in its memory, so a process that executes it could read it with preloaded code.
fn hidden_programs_are_not_executed() {
    let session = Session::with(|place, wanted| {
        wanted.places.push(PathAccess { path: place.join("work/sub"), access: Access::Hidden });
        wanted.places.push(PathAccess { path: place.join("work/alone"), access: Access::Hidden });
        for program in ["work/sub/tool", "work/alone", "work/seen"] {
            fs::copy("/bin/sh", place.join(program)).expect("a copy");
        }
        fs::write(place.join("work/sub/script"), "#!/bin/sh\nexit 0\n").expect("a script");
        fs::set_permissions(place.join("work/sub/script"), fs::Permissions::from_mode(0o755))
            .expect("permissions");
    });
    for script in [
        "sub/tool -c 'exit 0'",
        "./alone -c 'exit 0'",
        "sub/script",
        "cd sub && ./tool -c 'exit 0'",
        "exec $P/work/sub/tool -c 'exit 0'",
        "ln -s sub/tool link && ./link -c 'exit 0'",
        "ln -s $P/work/alone other && ./other -c 'exit 0'",
        "env -C sub ./tool -c 'exit 0'",
        // Through an O_PATH descriptor.
        "perl -e 'sysopen(F, q(sub/tool), 0x200000) or exit 1; $n = fileno F; exec(qq(/proc/self/fd/$n), q(-c), q(exit 0)); exit 1'",
        "perl -e 'sysopen(F, q(alone), 0x200000) or exit 1; ($e, $v) = (q(), pack(q(Q), 0)); \
         @s = (q(sh), q(-c), q(exit 0)); $a = pack(q(p3Q), @s, 0); syscall(322, fileno F, $e, $a, $v, 0x1000); exit 1'",
        // Through the dynamic loader as a program.
        "/lib64/ld-linux-x86-64.so.2 ./alone -c 'exit 0'",
    ] {
        session.sh(script).assert_fails();
        assert!(session.control(&format!("rm -f link other; {script}")), "control: {script}");
        assert!(session.control("rm -f link other"), "as before");
    }
    session.allows("./seen -c 'exit 0' && exec ./seen -c 'exit 0'");
}

/// The target of a process's link reveals something about it, also in another visible procfs.
fn links_of_other_processes_are_not_followed() {
    let session = Session::with(|place, wanted| {
        wanted.places.push(PathAccess { path: place.join("work/sub"), access: Access::Hidden });
    });
    let victim = Victim::new(&session);
    let pid = victim.0.id();
    let opens = |path: &str| {
        format!(
            "perl -e 'sysopen(F, qq({path}), 0) or exit 1; print readlink(qq(/proc/self/fd/) . fileno F)'"
        )
    };
    for link in ["cwd", "exe", "root", "task/$V/exe", "cwd/."] {
        let path = format!("/proc/{pid}/{}", link.replace("$V", &pid.to_string()));
        let outcome = session.sh(&opens(&path));
        outcome.assert_fails();
        assert_eq!(outcome.output, "", "{link}");
        assert!(session.control(&opens(&path)), "control: {link}");
    }
    session.allows("cat /proc/self/exe > /dev/null && ls /proc/self/cwd/ && cat /proc/mounts > /dev/null");
    // Only root can mount one.
    if rustix::process::geteuid().is_root() {
        let other = session.path("home/open/deep");
        let other = other.display();
        assert!(session.control(&format!("mount --bind /proc {other}")), "a mount");
        for file in ["environ", "maps", "cmdline", "status"] {
            session.refuses(&format!("cat {other}/{pid}/{file} > /dev/null"));
        }
        for file in ["cwd", "exe"] {
            session.refuses(&opens(&format!("{other}/{pid}/{file}")));
        }
        assert!(session.control(&format!("umount {other}")));
    }
}

fn the_hosts_temporary_files_are_hidden() {
    let session = Session::new();
    let file = tempfile::NamedTempFile::new_in("/tmp").expect("a file");
    let path = file.path().display();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o666)).expect("permissions");
    for script in
        [format!("cat {path}"), format!("echo x > {path}"), "ls /tmp".into(), "mktemp -p /tmp".into()]
    {
        session.refuses(&script);
    }
    session.allows("mktemp && mktemp -d && echo x > $TMPDIR/x && test -f $TMPDIR/x");
}

fn a_killed_init_ends_the_session() {
    let session = Session::new();
    let script = "setsid sleep 96.5 & setsid sleep 96.5 & echo ready; sleep 96.5";
    let (running, mut output) = session.start(session.command(&["sh", "-c", script])).expect("starts");
    std::io::Read::read_exact(&mut output, &mut [0; 6]).expect("it is ready");
    let init = running.init().and_then(|init| i32::try_from(init).ok());
    let init = init.and_then(rustix::process::Pid::from_raw).expect("its number");
    rustix::process::kill_process(init, rustix::process::Signal::KILL).expect("killed");
    assert_eq!(running.wait(), Exit::Lost);
    // The pipe is closed when the last of its writers has ended.
    drop(std::io::Read::read_to_end(&mut output, &mut Vec::new()));
    assert!(session.run(session.command(&["true"])).is_err());
}

fn programs_work() {
    let session = Session::new();
    session.allows(
        "set -e; exec 2>&1; export HOME=$TMPDIR GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
         GIT_COMMITTER_EMAIL=a@b; git init -q -b main r; cd r; echo 1 > f; git add .; git commit -qm 1; \
         git checkout -q -b side; echo 2 > f; git commit -qam 2; git rebase -q main; git worktree add -q ../tree main; \
         git clone -q . ../clone; git clone -q --no-hardlinks . $TMPDIR/clone; git gc -q; git status --porcelain",
    );
    session.allows(
        "for i in $(seq 30); do (echo $i | cat | sh -c 'cat > n$$'); done; test $(ls n* | wc -l) = 30",
    );
    if exists("/usr/bin/python3") {
        session.allows(
            "exec 2>&1; python3 -m venv --without-pip v && v/bin/python -c 'import json, subprocess; \
                        subprocess.run([\"true\"], check=True)'",
        );
    }
}
