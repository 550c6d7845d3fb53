//! Calls that wait for an answer.

use std::fs::{self, File};
use std::io::Read;
use std::time::{Duration, Instant};

use portcullis_sandbox::NameAccess;
use portcullis_sandbox_runtime::{Confinement, Exit, RefusedCall};

use crate::Test;
use crate::kit::{self, Session};
use crate::names::session;

pub(crate) const TESTS: &[Test] = &[
    ("held::a_call_goes_on_after_a_yes", a_call_goes_on_after_a_yes),
    ("held::a_call_fails_after_a_no", a_call_fails_after_a_no),
    ("held::a_file_outside_is_opened_by_the_host", a_file_outside_is_opened_by_the_host),
    ("held::names_outside_are_changed_by_the_host", names_outside_are_changed_by_the_host),
    ("held::what_rules_refuse_is_told", what_rules_refuse_is_told),
    ("held::a_file_with_other_names_is_asked_about", a_file_with_other_names_is_asked_about),
    ("held::a_call_that_waits_ends_with_its_command", a_call_that_waits_ends_with_its_command),
    ("held::other_commands_go_on", other_commands_go_on),
    ("held::a_yes_is_for_the_text_that_was_asked_about", a_yes_is_for_the_text_that_was_asked_about),
];

/// Runs a script and answers its calls; returns how it ended, its output and its questions.
pub(crate) fn asked(
    session: &Session,
    script: &str,
    answer: bool,
) -> (Exit, String, Vec<(NameAccess, String)>) {
    asked_in(&session.confinement, session, script, answer)
}

/// The same in a sandbox beside that of `session`.
pub(crate) fn asked_in(
    confinement: &Confinement,
    session: &Session,
    script: &str,
    answer: bool,
) -> (Exit, String, Vec<(NameAccess, String)>) {
    let (read, write) = kit::pipe();
    let copy = write.try_clone().expect("a copy");
    let command = session.command(&["sh", "-c", script]);
    let running = confinement.launch_asking(command, [kit::null(), write, copy]).expect("starts");
    let mut asked = Vec::new();
    while let Some(held) = kit::next_held(&running) {
        let path = held.path().strip_prefix(session.place.path()).expect("below the place");
        asked.push((held.attempt(), path.display().to_string()));
        if answer { held.allow() } else { held.refuse() }
    }
    let mut output = String::new();
    File::from(read).read_to_string(&mut output).expect("output");
    (running.wait(), output, asked)
}

fn a_call_goes_on_after_a_yes() {
    let session = session("ask slow");
    let write = |path: &str| (NameAccess::Write, path.to_owned());
    let make = |path: &str| (NameAccess::MakeDirectory, path.to_owned());
    let remove = |path: &str| (NameAccess::Remove, path.to_owned());
    for (script, expected) in [
        ("echo x > slow && test -s slow", vec![write("work/slow")]),
        ("mkdir sub/slow && test -d sub/slow", vec![make("work/sub/slow")]),
        ("mv slow moved && test -s moved", vec![remove("work/slow")]),
        ("mv moved slow && test -s slow", vec![write("work/slow")]),
        ("rm slow && ! test -e slow", vec![remove("work/slow")]),
        ("ln -s file slow && test -L slow", vec![write("work/slow")]),
        ("mkdir d && mv d sub/slow/d", vec![write("work/sub/slow/d")]),
    ] {
        let (exit, output, asked) = asked(&session, script, true);
        assert_eq!((exit, asked), (Exit::Code(0), expected), "{script}: {output}");
    }
    // A rule over names that other programs execute asks too, with its id.
    let (exit, output, asked) = asked(&session, "echo x > .npmrc", true);
    assert_eq!((exit, asked), (Exit::Code(0), vec![write("work/.npmrc")]), "{output}");
}

fn a_call_fails_after_a_no() {
    let session = session("ask slow");
    let (exit, output, asked) = asked(&session, "echo x > slow || echo go on", false);
    assert_eq!((exit, asked.len()), (Exit::Code(0), 1));
    assert!(output.contains("Permission denied") && output.contains("go on"), "{output}");
    assert!(!session.path("work/slow").exists());
    // Without anyone to ask, the answer is no.
    session.sh("echo x > slow").assert_fails();
}

fn a_file_outside_is_opened_by_the_host() {
    let session = session("ask open");
    let script = "umask 077; cd \"$P/home/open\" && echo new > new && echo more >> file";
    let (exit, output, asked) = asked(&session, script, true);
    let expected = ["home/open/new", "home/open/file"].map(|path| (NameAccess::Write, path.to_owned()));
    assert_eq!((exit, asked), (Exit::Code(0), expected.to_vec()), "{output}");
    assert_eq!(fs::read_to_string(session.path("home/open/new")).expect("made"), "new\n");
    assert!(fs::read_to_string(session.path("home/open/file")).expect("changed").ends_with("more\n"));
    let (exit, output, asked) = self::asked(&session, "echo x > \"$P/home/open/other\"", false);
    assert!(exit != Exit::Code(0) && asked.len() == 1 && output.contains("Permission denied"), "{output}");
    assert!(!session.path("home/open/other").exists());
    // Hidden files do not lead to questions.
    let (_, _, asked) =
        self::asked(&session, "echo x > \"$P/home/closed/other\"; echo x > \"$P/secret/key\"", true);
    assert_eq!(asked, []);
}

fn names_outside_are_changed_by_the_host() {
    let session = session("ask open");
    let write = |path: &str| (NameAccess::Write, format!("home/open/{path}"));
    let make = |path: &str| (NameAccess::MakeDirectory, format!("home/open/{path}"));
    let remove = |path: &str| (NameAccess::Remove, format!("home/open/{path}"));
    for (script, expected) in [
        ("umask 027; mkdir new && test $(stat -c %a new) = 750", vec![make("new")]),
        ("mv new newer && test -d newer && ! test -e new", vec![remove("new"), write("newer")]),
        ("ln -s file newer/link && test -L newer/link", vec![write("newer/link")]),
        ("ln file newer/hard && test $(stat -c %h file) = 2", vec![write("file"), write("newer/hard")]),
        ("mv newer/hard \"$P/work/came\" && cat \"$P/work/came\"", vec![remove("newer/hard")]),
        ("truncate -s 3 file && test $(stat -c %s file) = 3", vec![write("file")]),
        ("perl -e 'exit !truncate(\"file\", 2)' && test $(stat -c %s file) = 2", vec![write("file")]),
        (
            "mv file other && mv -f other file",
            vec![remove("file"), write("other"), remove("other"), write("file")],
        ),
        ("rm newer/link && rmdir newer && ! test -e newer", vec![remove("newer/link"), remove("newer")]),
        // Operations that the kernel would refuse lead to no questions.
        (
            "! mkdir deep 2> /dev/null; ! rm deep 2> /dev/null; ! rm none 2> /dev/null; ! mv none x 2> /dev/null",
            vec![],
        ),
        ("! mkfifo p 2> /dev/null; ! ln -s x file 2> /dev/null; ! chmod 700 file 2> /dev/null", vec![]),
    ] {
        let (exit, output, asked) = asked(&session, &format!("cd \"$P/home/open\" && {script}"), true);
        assert_eq!((exit, asked), (Exit::Code(0), expected), "{script}: {output}");
    }
    let script = "cd \"$P/home/open\"; mkdir d; rm file; mv deep d; ln -s a b; ls";
    let (_, output, questions) = asked(&session, script, false);
    assert_eq!(questions.len(), 4, "{questions:?}");
    assert_eq!(output.matches("Permission denied").count(), 4, "{output}");
    assert!(output.ends_with("deep\nfile\n"), "{output}");
    // Other obstacles remain obstacles.
    assert!(session.control("chmod 555 \"$P/home/open\""));
    if !rustix::process::geteuid().is_root() {
        let (_, _, questions) = asked(&session, "cd \"$P/home/open\"; mkdir d; rm file", true);
        assert_eq!(questions, []);
    }
    assert!(session.control("chmod 755 \"$P/home/open\""));
}

fn what_rules_refuse_is_told() {
    let session = session("refuse bad");
    let script = "(echo x > bad; echo x > bad; mkdir sub/bad; rm none; echo x > .git/hooks/x; cat bad) 2> /dev/null; true";
    assert!(session.control("mkdir -p .git/hooks"));
    for _ in 0..5 {
        let (running, mut output) = session.start(session.command(&["sh", "-c", script])).expect("starts");
        std::io::copy(&mut output, &mut std::io::sink()).expect("read to its end");
        assert_eq!(running.wait(), Exit::Code(0));
        let told: Vec<_> = running
            .refusals()
            .into_iter()
            .map(|RefusedCall { attempt, path, rule }| {
                let path = path.strip_prefix(session.path("work")).expect("in the workspace").to_owned();
                (attempt, path.display().to_string(), rule)
            })
            .collect();
        let expected = [
            (NameAccess::Write, "bad", ""),
            (NameAccess::MakeDirectory, "sub/bad", ""),
            (NameAccess::Write, ".git/hooks/x", "host.git-hooks"),
        ];
        let expected = expected.map(|(attempt, path, rule)| (attempt, path.to_owned(), rule.to_owned()));
        assert_eq!(told, expected);
    }
    // Only the first of many are kept.
    let script = "for i in $(seq 100); do mkdir -p d$i; echo x > d$i/bad; done 2> /dev/null; true";
    let (running, _output) = session.start(session.command(&["sh", "-c", script])).expect("starts");
    assert_eq!(running.wait(), Exit::Code(0));
    assert_eq!(running.refusals().len(), 20);
}

/// Row 5 of the attack corpus.
fn a_file_with_other_names_is_asked_about() {
    let session = session("");
    assert!(
        session
            .control("echo outside > \"$P/home/open/other\"; ln \"$P/home/open/other\" shared; echo x > own")
    );
    let other = session.path("home/open/other");
    for script in [
        "echo evil >> shared",
        "echo evil > shared",
        "truncate -s 0 shared",
        "perl -e 'exit !truncate(\"shared\", 0)'",
        "exec 3< shared; echo evil > /dev/fd/3",
        "mv shared moved; echo evil > moved; mv moved shared; grep -v evil shared > /dev/null",
        "ln shared more; echo evil > more; rm more; grep -v evil shared > /dev/null",
        "dd if=/dev/zero of=shared bs=1 count=1 conv=notrunc 2> /dev/null",
    ] {
        let (_, output, questions) = asked(&session, script, false);
        assert_eq!(questions.len(), 1, "{script}: {output}");
        assert_eq!(fs::read_to_string(&other).expect("read"), "outside\n", "{script}: {output}");
    }
    assert!(session.control("echo evil > shared") && fs::read_to_string(&other).expect("read") == "evil\n");
    let (exit, _, questions) = asked(&session, "echo wanted > shared && cat shared", true);
    assert_eq!((exit, questions), (Exit::Code(0), vec![(NameAccess::Write, "work/shared".to_owned())]));
    // Links made here, replacing, and reading need no question.
    let script = "ln own a; mv a b; echo y > b; ln b c; echo z >> c; cat shared; cp shared copy; echo new > copy; \
                  sed -i s/wanted/x/ shared; test $(stat -c %h shared) = 1; echo free > shared";
    let (exit, output, questions) = asked(&session, &format!("set -e; {script}"), false);
    assert_eq!((exit, questions), (Exit::Code(0), vec![]), "{output}");
    assert_eq!(fs::read_to_string(&other).expect("read"), "wanted\n");
}

fn a_call_that_waits_ends_with_its_command() {
    let session = session("ask slow");
    let command = session.command(&["sh", "-c", "echo x > slow"]);
    let stdio = [kit::null(), kit::null(), kit::null()];
    let running = session.confinement.launch_asking(command, stdio).expect("starts");
    let held = kit::next_held(&running).expect("it asks");
    let begun = Instant::now();
    running.kill();
    assert_eq!(running.wait(), Exit::Signal(9));
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    assert!(kit::next_held(&running).is_none());
    held.allow();
    session.sh("echo y > other && cat other").assert(0, "y");
    assert!(!session.path("work/slow").exists());
}

fn other_commands_go_on() {
    let session = session("ask slow");
    let start = |script: &str| {
        let stdio = [kit::null(), kit::null(), kit::null()];
        session.confinement.launch_asking(session.command(&["sh", "-c", script]), stdio).expect("starts")
    };
    // More of them than the broker has threads.
    let waiting: Vec<_> =
        (0..20).map(|number| start(&format!("mkdir -p {number} && echo x > {number}/slow"))).collect();
    let held: Vec<_> = waiting.iter().map(|running| kit::next_held(running).expect("it asks")).collect();
    session.sh("for i in 1 2 3; do echo y > f$i; done; ls f1 f2 f3 | wc -l").assert(0, "3");
    held.into_iter().for_each(portcullis_sandbox_runtime::Held::allow);
    for running in waiting {
        assert!(kit::next_held(&running).is_none());
        assert_eq!(running.wait(), Exit::Code(0));
    }
}

/// The command writes another text while the user reads the question.
fn a_yes_is_for_the_text_that_was_asked_about() {
    let session = session("ask slow");
    assert!(session.control("mkdir -p repo/.git && printf '[core]\\n\\tbare = false\\n' > repo/.git/config"));
    let swapped = "cp .git/config new && printf '\\tpager = mine\\n' >> new && \
        { (sleep 0.3; cp .git/config evil; printf '\\tfsmonitor = ./evil\\n' >> evil; cat evil > new) & mv new .git/config; \
        status=$?; wait; exit $status; }";
    let honest = "cp .git/config new && printf '\\tpager = mine\\n' >> new && mv new .git/config";
    for (script, answers) in [(honest, &[true][..]), (swapped, &[true, false][..])] {
        assert!(session.control("printf '[core]\\n\\tbare = false\\n' > repo/.git/config"));
        let command = session.command(&["sh", "-c", &format!("cd repo && {script}")]);
        let streams = [kit::null(), kit::null(), kit::null()];
        let running = session.confinement.launch_asking(command, streams).expect("starts");
        let mut reasons = Vec::new();
        while let Some(held) = kit::next_held(&running) {
            let answer = answers.get(reasons.len()).copied().expect("a question that is expected");
            reasons.push(held.reason().to_owned());
            std::thread::sleep(Duration::from_millis(600));
            if answer { held.allow() } else { held.refuse() }
        }
        let exit = running.wait();
        let config = fs::read_to_string(session.path("work/repo/.git/config")).expect("read");
        assert!(reasons[0].starts_with("`core.pager` on line 3"), "{reasons:?}");
        assert_eq!(reasons.len(), answers.len(), "{reasons:?}");
        assert!(!config.contains("fsmonitor"), "{config}");
        match reasons.get(1) {
            None => assert!(exit == Exit::Code(0) && config.contains("pager = mine"), "{exit:?}: {config}"),
            Some(reason) => {
                assert!(reason.starts_with("`core.fsmonitor` on line 3"), "{reason}");
                assert!(exit != Exit::Code(0) && !config.contains("pager"), "{exit:?}: {config}");
            }
        }
    }
}
