//! The view of a sandbox: tools see the same masks and binds as commands.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use portcullis_decision::request::FileOperation;
use portcullis_file_gate::{FileError, Limits, Purpose, View, WriteOptions};
use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::assert_fails;
use crate::kit::{self, Failure, writing};
use crate::races::{self, Attacker};
use crate::session::Session;
use portcullis_each_user::Test;

pub(crate) const TESTS: &[Test] = &[
    ("tools_see_what_commands_see", tools_see_what_commands_see),
    ("links_stay_inside_the_view", links_stay_inside_the_view),
    ("read_only_mounts_hold_for_tools", read_only_mounts_hold_for_tools),
    ("a_file_that_is_a_mount_is_written_in_place", a_file_that_is_a_mount_is_written_in_place),
    ("exceptions_are_marked", exceptions_are_marked),
    ("an_exception_does_not_take_mounts_away", an_exception_does_not_take_mounts_away),
    ("the_hosts_temporary_directory_stays_closed", the_hosts_temporary_directory_stays_closed),
    ("a_view_ends_with_its_keeper", a_view_ends_with_its_keeper),
    ("nothing_hidden_leaks_in_a_race", nothing_hidden_leaks_in_a_race),
];

fn tools_see_what_commands_see() {
    let Some(session) = Session::start() else { return };
    let place = &session.place;
    assert_eq!(session.read(&place.path("p/f")).expect("read").bytes, b"p/f");
    for hidden in ["secret/f", "secret/none"] {
        assert_fails!(session.read(&place.path(hidden)), FileError::NotFound { .. });
    }
    assert_eq!(session.read(&place.path("p/bound")).expect("read").bytes, b"other");
    // Root can read the empty file that is mounted there; other users cannot.
    match session.read(&place.path("p/masked")) {
        Ok(content) => assert!(content.bytes.is_empty() && kit::is_root()),
        Err(refusal) => assert!(matches!(refusal, Failure::Failed(FileError::Denied { .. })), "{refusal:?}"),
    }
    session.write(&place.path("p/new/file"), "x").expect("written");
    assert_eq!(place.content("p/new/file"), "x");
    // The session's own /tmp has the same name as the host's, but other files.
    let name = format!("portcullis-{}", std::process::id());
    session.write(&Path::new("/tmp").join(&name), "private").expect("written");
    assert_eq!(place.content(&format!("temp/{name}")), "private");
    assert!(!Path::new("/tmp").join(&name).exists());
    assert_eq!(session.read(&Path::new("/tmp").join(&name)).expect("read").bytes, b"private");
}

fn links_stay_inside_the_view() {
    let Some(session) = Session::start() else { return };
    let place = &session.place;
    place.link(place.path("secret/f"), "p/absolute");
    place.link("../secret/f", "p/relative");
    let (x, y) =
        (format!("portcullis-x-{}", std::process::id()), format!("portcullis-y-{}", std::process::id()));
    place.link(format!("../../../../../../../../../../tmp/{x}"), "p/climbing");
    place.link(Path::new("/tmp").join(&y), "p/temp");
    place.link(place.path("p"), "p/self");
    for name in ["p/absolute", "p/relative"] {
        assert_eq!(fs::read(place.path(name)).expect("control: the host sees it"), b"TOPSECRET");
        assert_fails!(session.read(&place.path(name)), FileError::NotFound { .. });
    }
    for (name, file) in [("p/climbing", &x), ("p/temp", &y), ("p/self/temp", &y)] {
        session.write(&place.path(name), name).expect("written");
        assert_eq!(place.content(&format!("temp/{file}")), name);
        assert!(!Path::new("/tmp").join(file).exists(), "the host's is untouched");
    }
    let located = session.gate.locate(&place.path("p/self/f"), Purpose::ForWriting).expect("located");
    assert_eq!(located.canonical(), place.path("p/f"));
}

fn read_only_mounts_hold_for_tools() {
    let Some(session) = Session::start() else { return };
    let file = session.place.path("readonly/f");
    let located = session.gate.locate(&file, Purpose::ForWriting).expect("located");
    assert!(located.is_on_read_only_mount());
    for path in [file, session.place.path("readonly/new"), session.place.path("readonly/d/new")] {
        match session.write(&path, "x") {
            Err(Failure::Failed(error @ FileError::Denied { .. })) => assert_eq!(error.errno(), Some(30)),
            other => panic!("{other:?}"),
        }
    }
    let located = session.gate.locate(&session.place.path("p/f"), Purpose::ForWriting).expect("located");
    assert!(!located.is_on_read_only_mount());
}

fn a_file_that_is_a_mount_is_written_in_place() {
    let Some(session) = Session::start() else { return };
    session.write(&session.place.path("p/bound"), "a new content").expect("written");
    assert_eq!(session.place.content("other"), "a new content");
    assert_eq!(session.place.content("p/bound"), "p/bound");
    assert_eq!(session.place.names("p"), ["bound", "f", "masked"]);
}

fn exceptions_are_marked() {
    let Some(session) = Session::start() else { return };
    let secret = session.place.path("secret/f");
    let located = session.gate.locate_in_host_view(&secret, Purpose::Existing).expect("located");
    assert_eq!((located.view(), located.canonical()), (View::BeyondSession, secret.as_path()));
    let permit = kit::permit_below(&secret, &located, FileOperation::Read).expect("allowed");
    let content = session.gate.read(located, permit, Limits::default()).expect("read");
    assert_eq!(content.bytes, b"TOPSECRET");
    // Without a sandbox there is one view and no exception.
    let located = session.place.gate.locate_in_host_view(&secret, Purpose::Existing).expect("located");
    assert_eq!(located.view(), View::Host);
}

fn an_exception_does_not_take_mounts_away() {
    let Some(session) = Session::start() else { return };
    let bound = session.place.path("p/bound");
    let located = session.gate.locate_in_host_view(&bound, Purpose::ForWriting).expect("located");
    let permit = kit::permit_below(&bound, &located, writing("host")).expect("allowed");
    session.gate.write(located, permit, b"host", WriteOptions::default()).expect("written");
    assert_eq!(session.place.content("p/bound"), "host");
    assert_eq!(session.read(&bound).expect("read").bytes, b"other", "the mount is still there");
    // Control: a file that is replaced by a rename loses the mount that another namespace has on it.
    session.place.write("p/bound", "renamed").expect("written");
    assert_eq!(session.read(&bound).expect("read").bytes, b"renamed");
}

fn the_hosts_temporary_directory_stays_closed() {
    let Some(session) = Session::start() else { return };
    let unique = format!("{:08x}", std::process::id());
    let output = PathBuf::from(format!("/tmp/pi-bash-{unique}.log"));
    let other = PathBuf::from(format!("/tmp/pi-bash-{unique}0.log"));
    let link = PathBuf::from(format!("/tmp/pi-bash-{unique}1.log"));
    let files = [&output, &other, &link];
    for file in [&output, &other] {
        fs::write(file, "long output").expect("written");
    }
    std::os::unix::fs::symlink(session.place.path("secret/f"), &link).expect("a link");
    session.place.link(&other, "p/link");
    let find = |path: &Path| session.gate.locate(path, Purpose::Existing).map_err(Failure::Failed);
    let beyond =
        |path: &Path| session.gate.locate_in_host_view(path, Purpose::Existing).map_err(Failure::Failed);
    let results = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        assert_fails!(find(&output), FileError::NotFound { .. });
        assert_fails!(beyond(&output), FileError::HostTemp { .. });
        session.gate.register_output(&output).expect("registered");
        session.gate.register_output(&link).expect("registered");
        for located in [find(&output), beyond(&output)] {
            let located = located.expect("located");
            assert_eq!((located.view(), located.canonical()), (View::Output, output.as_path()));
        }
        assert_fails!(find(&other), FileError::NotFound { .. });
        for path in [&other, &session.place.path("p/link"), &PathBuf::from("/var/../tmp/x")] {
            if path.exists() {
                assert_fails!(beyond(path), FileError::HostTemp { .. });
            }
        }
        // A link under a registered name would let other users choose the file.
        assert_fails!(find(&link), FileError::NotAFile { .. });
        let for_writing = session.gate.locate_in_host_view(&output, Purpose::ForWriting);
        assert_fails!(for_writing.map_err(Failure::Failed), FileError::HostTemp { .. });
    }));
    for file in files {
        drop(fs::remove_file(file));
    }
    results.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    for name in [
        "/tmp/x",
        "/tmp/pi-bash-.log",
        "/tmp/pi-bash-xyz.log",
        "/tmp/pi-clipboard-a--b.png",
        "pi-bash-1.log",
        "/tmp/../pi-bash-1.log",
    ] {
        assert!(session.gate.register_output(Path::new(name)).is_err(), "{name}");
    }
}

fn a_view_ends_with_its_keeper() {
    let Some(session) = Session::start() else { return };
    let place = &session.place;
    let located = session.gate.locate(&place.path("p/f"), Purpose::Existing).expect("located");
    session.keeper.end();
    for path in ["p/f", "secret/f", "p/masked"] {
        assert_fails!(session.read(&place.path(path)), FileError::ViewEnded(_));
        assert_fails!(session.write(&place.path(path), "x"), FileError::ViewEnded(_));
    }
    // Control: the root handle reveals the files that its mounts hid.
    let root = session.keeper.root.as_fd();
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let secret = place.path("secret/f");
    let shown = rustix::fs::openat2(root, &secret, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty(), resolve);
    let mut content = String::new();
    File::from(shown.expect("control: opened")).read_to_string(&mut content).expect("read");
    assert_eq!(content, "TOPSECRET");
    // A file located while the keeper lived was seen through its mounts.
    let permit = kit::permit_below(Path::new("/"), &located, FileOperation::Read).expect("allowed");
    let content = session.gate.read(located, permit, Limits::default()).expect("read");
    assert_eq!(content.bytes, b"p/f");
}

fn nothing_hidden_leaks_in_a_race() {
    let Some(session) = Session::start() else { return };
    races::contest(&session.place);
    // With constant renames, the kernel aborts walks below a root, so they are retried.
    let (mut read, mut written, mut failed) = (0, 0, 0);
    for pause in races::PAUSES {
        let mut attacker = Attacker::start(&session.place, pause);
        for round in 0..races::tries(1_000) {
            match session.read(&session.place.path("p/real/f")) {
                Ok(content) => {
                    assert_ne!(content.bytes, b"TOPSECRET");
                    read += 1;
                }
                Err(_) => failed += 1,
            }
            match session.write(&session.place.path("p/real/f"), &round.to_string()) {
                Ok(_) => written += 1,
                Err(_) => failed += 1,
            }
        }
        assert!(attacker.is_alive());
    }
    assert_eq!(session.place.content("secret/f"), "TOPSECRET");
    assert_eq!(session.place.names("secret"), ["f"]);
    println!("    0 leaks: {read} read, {written} written, {failed} failed");
    assert!(read > 0 && written > 0 && failed > 0, "both sides of the exchange were met");
}
