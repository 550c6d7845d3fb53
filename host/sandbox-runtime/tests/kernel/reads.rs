//! Rules that forbid reading a name hold for files that appear later, however they are reached.

use std::fs;
use std::process::Command;

use portcullis_sandbox::{FileId, NameAccess, NameRules, Reads};
use portcullis_sandbox_runtime::Exit;

use crate::held::asked;
use crate::kit::Session;
use crate::names::rules;
use crate::{Test, cannot_run};

pub(crate) const TESTS: &[Test] = &[
    ("reads::what_appears_later_is_not_read_in_any_way", what_appears_later_is_not_read_in_any_way),
    ("reads::it_gets_no_other_name", it_gets_no_other_name),
    ("reads::it_is_not_executed", it_is_not_executed),
    ("reads::everything_else_is_read_as_ever", everything_else_is_read_as_ever),
    ("reads::errors_are_the_kernels", errors_are_the_kernels),
    ("reads::links_do_not_lead_into_the_brokers_processes", links_do_not_lead_into_the_brokers_processes),
    ("reads::a_file_is_kept_back_by_all_its_names", a_file_is_kept_back_by_all_its_names),
    ("reads::somebody_can_say_yes", somebody_can_say_yes),
    ("reads::no_race_reads_it", no_race_reads_it),
    ("reads::no_race_executes_it", no_race_executes_it),
];

/// Attempts of each kind; the variable sets another number, for a long run.
const TRIES: u32 = 3_000;
const TRIES_VARIABLE: &str = "PORTCULLIS_RACE_TRIES";

/// A session in which files that end in `.pem` cannot be read.
fn session() -> Session {
    Session::with(|_, profile| {
        let mut names = rules("hide .pem\nask-to-read .ask");
        names.reads = Reads::Judged;
        profile.names = Some(names);
    })
}

fn put_secret(session: &Session) {
    fs::write(session.path("work/sub/late.pem"), "the secret\n").expect("a file");
}

fn what_appears_later_is_not_read_in_any_way() {
    let session = session();
    // It appears only after the sandbox has been made.
    put_secret(&session);
    for script in [
        "cat sub/late.pem",
        "cat < sub/late.pem",
        "cat \"$P/work/sub/late.pem\"",
        "cat sub/../sub/./late.pem",
        "cd sub && cat late.pem",
        "cat /proc/self/cwd/sub/late.pem",
        "cat /proc/$$/cwd/sub/late.pem",
        "exec 3<sub; cat /dev/fd/3/late.pem",
        "exec 3<sub; cat /proc/self/fd/3/late.pem",
        "ln -sfn sub/late.pem l && cat l",
        "ln -sfn sub l && cat l/late.pem",
        "l=/tmp/portcullis-$$; ln -s \"$P/work/sub/late.pem\" $l && cat $l; s=$?; rm $l; exit $s",
        "cat /proc/self/root$P/work/sub/late.pem",
        "cat /proc/thread-self/cwd/sub/late.pem",
        "exec 3<>sub/late.pem; cat <&3",
        "dd if=sub/late.pem of=/dev/null count=1",
        "perl -e 'use Fcntl; sysopen(my $p, \"sub/late.pem\", 010000000) or exit 9; \
         open(my $f, \"<\", \"/proc/self/fd/\" . fileno $p) or exit 1; print <$f>'",
        "perl -e 'sysopen(my $p, \"sub/late.pem\", 010000000) or exit 9; \
         unlink \"sub/late.pem\" or exit 9; \
         open(my $f, \"<\", \"/proc/self/fd/\" . fileno $p) or exit 1; print <$f>'",
        "tar cf - sub/late.pem | tar xfO - | grep .",
        "sh sub/late.pem 2>&1 | grep 'the: '",
    ] {
        let outcome = session.sh(script);
        assert!(!outcome.output.contains("the secret"), "{script}: {outcome:?}");
        outcome.assert_fails();
        assert_ne!(outcome.exit, Exit::Code(9), "{script}: {outcome:?}");
        put_secret(&session);
        assert!(session.control(script), "control: {script}");
        put_secret(&session);
    }
}

fn it_gets_no_other_name() {
    let session = session();
    put_secret(&session);
    for script in [
        "mv sub/late.pem x && cat x",
        "ln sub/late.pem x && cat x",
        "mv sub other && cat other/late.pem",
        "mkdir -p d.pem && echo x > d.pem/x && mv d.pem d && cat d/x",
        "perl -e 'my ($one, $two) = (\"sub/late.pem\", \"file\"); exit syscall(316, -100, $one, -100, $two, 2) != 0' && \
         cat file",
        "perl -e 'sysopen(my $p, \"sub/late.pem\", 010000000) or exit 9; \
         my ($one, $two) = (\"/proc/self/fd/\" . fileno $p, \"x\"); \
         exit syscall(265, -100, $one, -100, $two, 0x400) != 0' && cat x",
    ] {
        session.sh(script).assert_fails();
        assert!(session.control(script), "control: {script}");
        assert!(session.control("rm -rf x other d d.pem; mkdir -p sub; echo content > file"));
        put_secret(&session);
    }
    session.allows("echo mine > own.pem && rm own.pem && rm sub/late.pem");
}

fn it_is_not_executed() {
    let session = session();
    assert!(
        session.control("cp /bin/echo sub/echo.pem && printf '#!/bin/sh\\necho ran\\n' > sub/script.pem")
    );
    assert!(
        session.control("chmod 755 sub/*.pem; cp sub/script.pem good; cp /bin/echo echo; chmod 755 good")
    );
    for script in [
        "sub/echo.pem ran",
        "sub/script.pem",
        "ln -sfn sub/echo.pem l && ./l ran",
        "ln -sfn sub/script.pem l && ./l",
        "/lib64/ld-linux-x86-64.so.2 sub/echo.pem ran",
        "python3 -c 'import os; os.execve(os.open(\"sub/echo.pem\", os.O_PATH), [\"echo\", \"ran\"], {})'",
    ] {
        let outcome = session.sh(script);
        assert!(!outcome.output.contains("ran"), "{script}: {outcome:?}");
        outcome.assert_fails();
        assert!(session.control(script), "control: {script}");
    }
    session.sh("./good && ./echo ran").assert(0, "ran\nran");
}

fn everything_else_is_read_as_ever() {
    let session = session();
    for script in [
        "cat file && cat < sub/file && grep -r content . && find . -type f | wc -l",
        "cat /proc/self/status /proc/self/maps /proc/meminfo /proc/$$/stat > /dev/null",
        "test \"$(cat /proc/self/comm)\" = cat && grep -q ' / ' /etc/mtab && cat /proc/net/dev > /dev/null",
        "test $(readlink /proc/self/exe) && cat /proc/self/exe | cmp - $(readlink -f $(command -v cat))",
        "ln -sfn /proc/self/comm l; test \"$(cat l)\" = cat; ln -sfn /proc/self l; test \"$(cat l/comm)\" = cat; \
         ln -sfn /proc/self/environ l; cat l | tr '\\0' '\\n' | grep -x \"P=$P\"; rm l",
        "ls / . sub && ls -la /dev/ && head -c 4 /dev/urandom | wc -c && cat /dev/null",
        "echo x > /tmp/x && cat /tmp/x && echo x > /dev/shm/x && cat /dev/shm/x && rm /tmp/x /dev/shm/x",
        "echo piped | cat /dev/stdin | cat /dev/fd/0 | grep piped",
        "echo here > f && exec 3<f && rm f && cat /dev/fd/3 | grep here",
        "mkfifo p; (sleep 0.1; echo through > p) & cat p | grep through; rm p",
        "mkfifo p; cat p > out & sleep 0.1; echo other > p; wait; grep other out && rm p out",
        "perl -e 'open(my $f, \"<\", \"/proc/self/fd/0\") or exit 1'",
        "perl -e 'sysopen(my $f, \"lock\", 0100, 0640) or exit 1; exit((stat $f)[7] != 0)' && rm lock",
        "python3 -c 'import json, os, pty; pid, fd = pty.fork(); \
         os.execvp(\"sh\", [\"sh\", \"-c\", \"cat < /dev/tty\"]) if pid == 0 else 0; \
         os.write(fd, b\"typed\\n\\x04\"); os.waitpid(pid, 0); print(os.read(fd, 100))' | grep typed",
        "printf 'int main(){return 7;}' > a.c && cc a.c -o a && (./a; test $? = 7) && rm a a.c",
        "for i in 1 2 3 4 5 6 7 8; do (true; /bin/true; sh -c 'exit 0') & done; wait",
    ] {
        let outcome = session.sh(&format!("exec 2>&1; set -ex; {script}"));
        assert_eq!(outcome.exit, Exit::Code(0), "{script}: {outcome:?}");
    }
    session.sh_reading("cat /dev/stdin", "given").assert(0, "given");
}

fn errors_are_the_kernels() {
    let session = session();
    let script = "for path in none none/x file/x sub/none /none '' file/ loop; do \
                  (exec 3< \"$path\") 2>&1 | sed 's/.*: //'; done; \
                  perl -e 'use Fcntl; \
                  for (qw(file sub link none loop)) { sysopen(my $f, $_, O_NOFOLLOW | O_DIRECTORY) or print \"$_ $!\\n\"; \
                  sysopen($f, $_, O_NOFOLLOW) or print \"$_ $!\\n\"; \
                  sysopen($f, $_, O_CREAT | O_EXCL) or print \"$_ $!\\n\"; unlink \"none\" }; \
                  open(my $g, \"<\", \"x\" x 300) or print \"$!\\n\"; open($g, \"<\", \"/x\" x 3000) or print \"$!\\n\"; \
                  syscall(2, 8, 0, 0) < 0 and print \"$!\\n\"; syscall(257, 99, \"x\", 0, 0) < 0 and print \"$!\\n\"'; \
                  ./none; ./file; ./sub; ./loop; true";
    assert!(session.control("ln -sfn loop loop; ln -sfn file link"));
    let inside = session.sh(&format!("exec 2>&1; {script}"));
    let outside = Command::new("sh")
        .args(["-c", &format!("exec 2>&1; {script}")])
        .current_dir(session.path("work"))
        .output()
        .expect("sh runs");
    assert_eq!(inside.output, String::from_utf8_lossy(&outside.stdout));
}

/// The broker's own `/proc` contains the keeper, the broker and all commands.
fn links_do_not_lead_into_the_brokers_processes() {
    let session = session();
    let other = session.command(&["sh", "-c", "exec sleep 30"]);
    let (running, _output) = session.start(other).expect("starts");
    let seen = session.sh("for n in $(seq 60); do for f in comm cmdline environ maps mem; do \
        ln -sfn /proc/$n/$f l; test -d /proc/$n || ! head -c 1 l > /dev/null 2>&1 || echo $n $f; done; done");
    seen.assert(0, "");
    let own = session.sh("ln -sfn /proc/self/maps l; grep -c portcullis l; grep -c kernel l; true");
    assert_eq!(own.output, "0\n0\n", "{own:?}");
    running.kill();
    running.wait();
}

/// Row 4: the host has made a hard link to a hidden file in the project.
fn a_file_is_kept_back_by_all_its_names() {
    let session = Session::with(|place, profile| {
        for (hidden, name) in [("secret/key", "work/innocent"), ("secret/program", "work/tool")] {
            if hidden.ends_with("program") {
                fs::copy("/bin/true", place.join(hidden)).expect("a copy");
            }
            fs::hard_link(place.join(hidden), place.join(name)).expect("a link");
        }
        let kept_back = ["secret/key", "secret/program"].map(|file| {
            let status = rustix::fs::stat(place.join(file)).expect("there");
            let device = (rustix::fs::major(status.st_dev), rustix::fs::minor(status.st_dev));
            FileId { device, inode: status.st_ino }
        });
        profile.names = Some(NameRules { reads: Reads::Judged, kept_back: kept_back.into(), ..rules("") });
    });
    for script in [
        "cat innocent",
        "cat < innocent",
        "cp innocent copy",
        "ln innocent other; cat other",
        "mv innocent moved; cat moved; s=$?; mv moved innocent; exit $s",
        "ln -sfn innocent l; cat l",
        "cat $P/work/../work/innocent",
        "exec 3<> innocent && head -c1 <&3",
        "perl -e 'sysopen(F, q(innocent), 0x200000) or die; $n = fileno F; open(G, q(<), qq(/proc/self/fd/$n)) or exit 1'",
        "./tool",
        "sh -c 'exec ./tool'",
    ] {
        let outcome = session.sh(script);
        outcome.assert_fails();
        assert!(!outcome.output.contains("content"), "{outcome:?}");
        assert!(session.control(script), "control: {script}");
        assert!(session.control("rm -f copy other l"));
    }
    session.allows("cat file sub/file && cp file copy && /bin/true");
}

fn somebody_can_say_yes() {
    let session = session();
    assert!(session.control("echo content > x.ask; echo other > y.ask"));
    let (exit, output, questions) = asked(&session, "cat x.ask && cat x.ask", true);
    assert_eq!((exit, output.as_str()), (Exit::Code(0), "content\ncontent\n"));
    assert_eq!(questions[0], (NameAccess::Read, "work/x.ask".to_owned()));
    let (exit, output, _) = asked(&session, "cat x.ask", false);
    assert!(exit != Exit::Code(0) && output.contains("Permission denied"), "{output}");
    session.sh("cat x.ask").assert_fails();
}

/// A session with the attacker's program in it; `None` if it cannot be compiled.
fn racing() -> Option<Session> {
    let session = session();
    let source = session.path("work/reading.c");
    fs::write(&source, include_str!("reading.c")).expect("written");
    let program = session.path("work/reading");
    let compiled = Command::new("cc").arg("-O1").args(["-pthread", "-o"]).args([&program, &source]).status();
    if !compiled.is_ok_and(|status| status.success()) {
        cannot_run("a C compiler (`cc`)");
        return None;
    }
    Some(session)
}

fn tries() -> u32 {
    std::env::var(TRIES_VARIABLE).ok().and_then(|tries| tries.parse().ok()).unwrap_or(TRIES)
}

fn no_race_reads_it() {
    let Some(session) = racing() else { return };
    put_secret(&session);
    assert!(
        session.control(
            "echo open > fine.txt; mv sub/late.pem evil.pem; cp fine.txt swap; ln -sfn evil.pem link"
        )
    );
    let tries = tries();
    for how in ["string", "proc", "exchange"] {
        for pause in [0, 300, 3000] {
            let outcome = session.sh(&format!("./reading {how} {tries} {pause}"));
            println!("    {how}, pause {pause}: {}", outcome.output.trim());
            assert_eq!(outcome.exit, Exit::Code(0), "{how}: {outcome:?}");
        }
        // On a busy machine the two threads do not always run at the same time.
        let leaks = || {
            let pauses = [300, 3000].into_iter().cycle().take(10);
            pauses.into_iter().any(|pause| !session.control(&format!("./reading {how} {tries} {pause}")))
        };
        assert!(leaks(), "control: without the sandbox the race {how} is won");
    }
}

fn no_race_executes_it() {
    let Some(session) = racing() else { return };
    assert!(session.control("cp /bin/true fine.run && cp /bin/false run.pem"));
    let tries = tries() / 10;
    for pause in [300, 3000] {
        let outcome = session.sh(&format!("./reading run {tries} {pause}"));
        println!("    pause {pause}: {}", outcome.output.trim());
        assert_eq!(outcome.exit, Exit::Code(0), "{outcome:?}");
    }
    let leaks = || (0..10).any(|_| !session.control(&format!("./reading run {tries} 3000")));
    assert!(leaks(), "control: the race is won");
}
