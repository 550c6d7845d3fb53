//! A file that is opened again by its descriptor is the file that was judged, and is judged as by its name.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use portcullis_sandbox::{Access, NameRules, PathAccess, Reads};
use portcullis_sandbox_runtime::Exit;

use crate::kit::{self, Session, WITHOUT};
use crate::names::{rules, session};
use crate::{Test, cannot_run};

pub(crate) const TESTS: &[Test] = &[
    ("anew::a_name_that_is_gone_frees_no_other", a_name_that_is_gone_frees_no_other),
    ("anew::own_files_are_opened_and_named", own_files_are_opened_and_named),
    ("anew::named_pipes_are_judged", named_pipes_are_judged),
    ("anew::no_race_reads_another_file", no_race_reads_another_file),
];

/// Attempts of each race; a race that is won ends sooner.
const TRIES: u32 = 10_000;
/// The number of tries of a race outside: on a busy machine the two threads do not always run at the same time.
const CONTROLS: u32 = 20;

/// Row 4: a file outside has a hard link in the project, which the command removes before it writes.
fn a_name_that_is_gone_frees_no_other() {
    let session = session("");
    let outside = session.path("home/open/file");
    let link = "perl -e 'my ($old, $new) = (q(/proc/self/fd/3), q(new)); \
                exit syscall(265, -100, $old, -100, $new, 0x400) != 0'";
    for script in [
        "exec 3< h; rm h; echo evil >> /proc/self/fd/3",
        "exec 3< h; rm h; echo evil > /dev/fd/3",
        "exec 3< h; rm h; exec 4<> /proc/self/fd/3; echo evil >&4",
        "exec 3< h; echo x > n; mv n h; echo evil >> /proc/self/fd/3",
        "exec 3< h; rm h; echo x > 'h (deleted)'; echo evil >> /proc/self/fd/3",
        "mkdir d; mv h d; exec 3< d/h; rm -r d; echo evil >> /proc/self/fd/3",
        "exec 3< h; rm h; truncate -s 1 /proc/self/fd/3",
        &format!("exec 3< h; rm h; {link} && echo evil >> new"),
    ] {
        for is_inside in [true, false] {
            assert!(session.control("rm -rf h* new d; ln \"$P/home/open/file\" h"));
            // The broker knows the mount from then on.
            let script = format!("echo x > y; {script}");
            let done =
                if is_inside { session.sh(&script).exit == Exit::Code(0) } else { session.control(&script) };
            let is_changed = fs::read_to_string(&outside).expect("there") != "content\n";
            assert_eq!((done, is_changed), (!is_inside, !is_inside), "inside: {is_inside}: {script}");
            fs::write(&outside, "content\n").expect("written");
        }
    }
}

fn own_files_are_opened_and_named() {
    let session = session("");
    for script in [
        "echo a > f; exec 3< f; rm f; echo b > /proc/self/fd/3; grep b <&3",
        "echo a > f; exec 3< f; mv f g; echo b >> /proc/self/fd/3; grep b g",
        "echo a > f; ln f g; exec 3< g; rm f; echo b > /dev/fd/3; grep b g",
        "python3 -c 'import os; f = os.open(\".\", os.O_TMPFILE | os.O_RDWR); os.write(f, b\"b\\n\"); \
         os.link(f\"/proc/self/fd/{f}\", \"t\", src_dir_fd=os.open(\".\", os.O_RDONLY))'; echo c >> t; grep b t",
        "python3 -c 'import os; f = os.memfd_create(\"x\"); os.write(os.open(f\"/proc/self/fd/{f}\", os.O_RDWR), b\"b\"); \
         assert os.read(f, 1) == b\"b\"'",
    ] {
        session.allows(&format!("set -e; exec 2>&1; {script}"));
        assert!(session.control(&format!("rm -f f g t; set -e; {script}")), "control: {script}");
        assert!(session.control("rm -f f g t"));
    }
}

/// A session in which reading is judged: names that end in `.pem` and a directory in the workspace are hidden.
fn reading() -> Session {
    Session::with(|place, profile| {
        profile.names = Some(NameRules { reads: Reads::Judged, ..rules("hide .pem") });
        fs::create_dir(place.join("work/closed")).expect("a directory");
        profile.places.push(PathAccess { path: place.join("work/closed"), access: Access::Hidden });
    })
}

fn named_pipes_are_judged() {
    let session = reading();
    let read = |name: &str, descriptor: &str| {
        format!(
            "perl -e 'sysopen(P, qq($ENV{{P}}/{name}), 0x200000) or exit 9; \
             $n = fileno P; sysopen(F, qq({descriptor}/$n), 0x800) or exit 1; sysread(F, $x, 6) == 6 or exit 1; print $x'"
        )
    };
    for name in ["work/late.pem", "work/closed/pipe", "secret/pipe"] {
        let path = session.path(name);
        assert!(
            Command::new("mkfifo").args(["-m", "666"]).arg(&path).status().is_ok_and(|made| made.success())
        );
        let mut pipe = File::options().read(true).write(true).open(&path).expect("a pipe");
        pipe.write_all(b"secret").expect("written");
        for descriptor in ["/proc/self/fd", "/dev/fd"] {
            let outcome = session.sh(&read(name, descriptor));
            outcome.assert_fails();
            assert_eq!(outcome.output, "", "{name}");
        }
        assert!(session.control(&read(name, "/proc/self/fd")), "control: {name}");
    }
    session.allows("mkfifo p; exec 3<> p; exec 4< /proc/self/fd/3; echo x >&3; read y <&4; test $y = x");
    session.allows("echo x | cat /dev/stdin | grep x && echo x | cat /proc/self/fd/0 | grep x");
}

fn no_race_reads_another_file() {
    let session = reading();
    let source = session.path("work/anew.c");
    fs::write(&source, include_str!("anew.c")).expect("written");
    let program = session.path("work/anew");
    let compiled = Command::new("cc").arg("-O1").args(["-pthread", "-o"]).args([&program, &source]).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return cannot_run("a C compiler (`cc`)");
    }
    assert!(session.control("cp file closed/file"));
    let race = |file: &str| format!("./anew {TRIES} {file}");
    // With mounts such a file cannot be opened at all.
    if kit::walls() == Some(WITHOUT) {
        for file in ["closed/file", "\"$P/secret/key\""] {
            let outcome = session.sh(&race(file));
            assert_eq!(outcome.exit, Exit::Code(0), "{file}: {outcome:?}");
            assert!((0..CONTROLS).any(|_| !session.control(&race(file))), "control: {file}");
        }
    }
    // A file that the command was given as its output.
    let log = session.path("secret/log");
    fs::write(&log, "what others have written\n").expect("a file");
    let open = |path: &Path| File::options().append(true).open(path).expect("open");
    let command = session.command(&["sh", "-c", &race("")]);
    let running = session.confinement.launch(command, [kit::null(), open(&log).into(), kit::null()]);
    assert_eq!(running.expect("it starts").wait(), Exit::Code(0));
    let leaks = || {
        let mut outside = Command::new("sh");
        outside.args(["-c", &race("")]).current_dir(session.path("work"));
        let outside = outside.stdout(open(&log)).stderr(Stdio::null()).status().expect("sh runs");
        outside.code() == Some(1)
    };
    assert!((0..CONTROLS).any(|_| leaks()), "control");
}
