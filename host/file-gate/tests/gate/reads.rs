//! Reading and listing.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use portcullis_decision::request::{FileOperation, PathKind};
use portcullis_file_gate::{FileError, Gate, Limits, Purpose, View, Views};

use crate::assert_fails;
use crate::kit::{self, Failure, TestDir};
use portcullis_each_user::Test;

pub(crate) const TESTS: &[Test] = &[
    ("reads_what_was_located", reads_what_was_located),
    ("facts_and_kinds", facts_and_kinds),
    ("links_are_followed_before_the_decision", links_are_followed_before_the_decision),
    ("only_regular_files_are_read", only_regular_files_are_read),
    ("kernel_interfaces_are_refused", kernel_interfaces_are_refused),
    ("names_of_any_bytes", names_of_any_bytes),
    ("names_that_look_removed", names_that_look_removed),
    ("large_files_are_refused", large_files_are_refused),
    ("the_kernel_is_asked_too", the_kernel_is_asked_too),
    ("odd_paths", odd_paths),
    ("lists_what_the_caller_keeps", lists_what_the_caller_keeps),
    ("no_descriptor_is_left_behind", no_descriptor_is_left_behind),
];

fn reads_what_was_located() {
    let place = TestDir::new();
    place.put("p/f", "content");
    assert_eq!(place.read("p/f").expect("read").bytes, b"content");
    let located = place.locate("p/f", Purpose::Existing).expect("located");
    assert_eq!((located.canonical(), located.view()), (place.path("p/f").as_path(), View::Host));
    // The decision was about the file, not about its name.
    fs::rename(place.path("p/f"), place.path("p/g")).expect("moved");
    place.put("p/f", "another");
    let permit = place.decide(&located, FileOperation::Read).expect("allowed");
    assert_eq!(place.gate.read(located, permit, Limits::default()).expect("read").bytes, b"content");
    assert!(matches!(place.read("secret/f"), Err(Failure::Denied)));
    assert_fails!(place.read("p/none"), FileError::NotFound { .. });
    assert_fails!(place.read("p/f/x"), FileError::NotADirectory { .. });
}

fn facts_and_kinds() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = TestDir::new();
    let file = place.put("p/f", "12345");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("set");
    fs::hard_link(&file, place.path("p/g")).expect("linked");
    for purpose in [Purpose::Existing, Purpose::ForWriting] {
        let located = place.locate("p/f", purpose).expect("located");
        let facts = located.facts();
        assert_eq!((located.kind(), facts.size, facts.links, facts.mode), (PathKind::File, 5, 2, 0o640));
        assert_eq!(facts.owner == 0, kit::is_root());
        assert_eq!(place.locate("p", purpose).expect("located").kind(), PathKind::Directory);
    }
    let missing = place.locate("p/none", Purpose::ForWriting).expect("located");
    assert_eq!((missing.kind(), missing.facts()), (PathKind::Missing, Default::default()));
}

fn links_are_followed_before_the_decision() {
    let place = TestDir::new();
    place.put("p/f", "content");
    place.link("f", "p/inside");
    place.link("../secret/f", "p/outside");
    place.link(place.path("secret"), "p/directory");
    assert_eq!(place.read("p/inside").expect("read").bytes, b"content");
    for path in ["p/outside", "p/directory/f", "p/../secret/f", "p/directory/../secret/f"] {
        assert_eq!(fs::read(place.path(path)).expect("control: it is readable"), b"TOPSECRET");
        assert!(matches!(place.read(path), Err(Failure::Denied)), "{path}");
        let located = place.locate(path, Purpose::Existing).expect("located");
        assert_eq!(located.canonical(), place.path("secret/f"), "{path}");
    }
    place.link("circle", "p/circle");
    assert_fails!(place.read("p/circle"), FileError::Loop { .. });
}

fn only_regular_files_are_read() {
    let place = TestDir::new();
    let fifo = place.path("p/fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo is there");
    assert!(made.success());
    let _socket = UnixListener::bind(place.path("p/socket")).expect("a socket");
    // A reader without the gate would block here forever.
    assert_fails!(place.read("p/fifo"), FileError::NotAFile { .. });
    assert_fails!(place.read("p/socket"), FileError::NotAFile { .. });
    assert_fails!(place.read("p"), FileError::IsDirectory { .. });
    place.link("/dev/zero", "p/zero");
    assert!(matches!(place.read("p/zero"), Err(Failure::Denied)));
    for device in ["/dev/zero", "/dev/null", "/dev/tty"] {
        assert_fails!(read_anything(device), FileError::NotAFile { .. });
    }
}

fn kernel_interfaces_are_refused() {
    for path in
        ["/proc/self/environ", "/proc/self/mem", "/proc/sys/kernel/hostname", "/sys/kernel/uevent_seqnum"]
    {
        assert!(fs::metadata(path).expect("control: it is there").is_file(), "{path}");
        assert_fails!(read_anything(path), FileError::Special { .. });
    }
    for path in ["/proc/self/root/etc/passwd", "/proc/self/cwd/x", "/proc/self/fd/0", "/proc/self/exe"] {
        assert_fails!(read_anything(path), FileError::Loop { .. });
    }
    let place = TestDir::new();
    place.link("/proc/self/root/etc/passwd", "p/magic");
    assert!(fs::read(place.path("p/magic")).is_ok(), "control: the link works");
    assert_fails!(place.read("p/magic"), FileError::Loop { .. });
    for name in ["p/magic", "p/descriptor"] {
        drop(fs::remove_file(place.path(name)));
        place.link("/proc/self/fd/0", name);
        assert_fails!(place.write(name, "x"), FileError::Special { .. });
    }
}

/// Reads a file of the machine, with a permit for everything.
fn read_anything(path: &str) -> Result<Vec<u8>, Failure> {
    let gate = Gate::new(Views::Host).expect("a gate");
    let located = gate.locate(Path::new(path), Purpose::Existing)?;
    let permit = kit::permit_below(Path::new("/"), &located, FileOperation::Read).expect("allowed");
    Ok(gate.read(located, permit, Limits::default())?.bytes)
}

fn names_of_any_bytes() {
    let place = TestDir::new();
    for name in [&b"p/\xff\xfe name\n"[..], b"p/\\xFF", "p/ü日\u{202e}".as_bytes(), b"p/[x]*?.env"] {
        let name = OsStr::from_bytes(name);
        place.write(name, "hi").expect("written");
        assert_eq!(place.read(name).expect("read").bytes, b"hi");
    }
    let located = place.locate(OsStr::from_bytes(b"p/\xff\xfe name\n"), Purpose::Existing).expect("located");
    assert!(located.canonical_text().ends_with("/p/\\xFF\\xFE name\n"), "{}", located.canonical_text());
}

fn names_that_look_removed() {
    let place = TestDir::new();
    place.put("p/f (deleted)", "still here");
    assert_eq!(place.read("p/f (deleted)").expect("read").bytes, b"still here");
    fs::create_dir(place.path("p/d (deleted)")).expect("a directory");
    place.write("p/d (deleted)/f", "x").expect("written");
    assert_eq!(place.content("p/d (deleted)/f"), "x");
}

fn large_files_are_refused() {
    let place = TestDir::new();
    let file = fs::File::create(place.path("p/f")).expect("a file");
    let read = |bytes: u64| {
        let located = place.locate("p/f", Purpose::Existing).expect("located");
        let permit = place.decide(&located, FileOperation::Read).expect("allowed");
        let limits = Limits { bytes, ..Limits::default() };
        place.gate.read(located, permit, limits).map(|content| content.bytes.len()).map_err(Failure::Failed)
    };
    assert_eq!(read(0).expect("read"), 0);
    file.set_len(10).expect("longer");
    assert_eq!(read(10).expect("read"), 10);
    assert_fails!(read(9), FileError::TooLarge { limit: 9, .. });
    file.set_len(1 << 40).expect("a sparse terabyte");
    assert_fails!(read(Limits::default().bytes), FileError::TooLarge { .. });
}

fn the_kernel_is_asked_too() {
    if kit::is_root() {
        // Root may read everything; the same test runs as an ordinary user.
        return;
    }
    use std::os::unix::fs::PermissionsExt as _;
    let place = TestDir::new();
    let file = place.put("p/f", "x");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).expect("set");
    let error = match place.read("p/f") {
        Err(Failure::Failed(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(error, FileError::Denied { .. }), "{error:?}");
    assert_eq!(error.errno(), Some(13));
    assert_fails!(place.write("p/f", "y"), FileError::Denied { .. });
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).expect("set");
    assert_fails!(place.write("p/f", "y"), FileError::Denied { .. });
    assert_eq!(place.content("p/f"), "x");
}

fn odd_paths() {
    let place = TestDir::new();
    place.put("p/f", "x");
    for path in ["p//f", "p/./f", "p/../p/f", "/p/f"] {
        let path = place.path("").join(path.trim_start_matches('/'));
        let located = place.gate.locate(&path, Purpose::Existing).expect("located");
        assert_eq!(located.canonical(), place.path("p/f"));
    }
    assert_fails!(place.read("p/f/"), FileError::NotADirectory { .. });
    assert_fails!(place.read("p/f\0"), FileError::Io { .. });
    assert_fails!(place.read("x".repeat(5000)), FileError::Io { .. });
    let long = place.locate("x".repeat(5000), Purpose::ForWriting).map(drop).map_err(Failure::Failed);
    assert_fails!(long, FileError::Io { .. });
    let relative = place.gate.locate(Path::new("p/f"), Purpose::Existing).map(drop).map_err(Failure::Failed);
    assert_fails!(relative, FileError::Io { .. });
}

fn lists_what_the_caller_keeps() {
    let place = TestDir::new();
    for name in ["a", "b.key", "c"] {
        place.put(&format!("p/{name}"), "");
    }
    fs::create_dir(place.path("p/d")).expect("a directory");
    place.link("nowhere", "p/l");
    let top = place.path("p");
    let mut keep = |path: &Path, _| {
        assert!(path.starts_with(&top));
        path.extension().is_none()
    };
    let listing = place.list("p", Limits::default(), &mut keep).expect("listed");
    let mut found: Vec<(OsString, PathKind)> =
        listing.entries.into_iter().map(|entry| (entry.name, entry.kind)).collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let expected =
        [("a", PathKind::File), ("c", PathKind::File), ("d", PathKind::Directory), ("l", PathKind::Symlink)];
    assert_eq!(found, expected.map(|(name, kind)| (OsString::from(name), kind)));
    assert!(!listing.truncated);
    let two = Limits { entries: 2, ..Limits::default() };
    let listing = place.list("p", two, &mut |_, _| true).expect("listed");
    assert_eq!((listing.entries.len(), listing.truncated), (2, true));
    assert_fails!(place.list("p/a", two, &mut |_, _| true), FileError::NotADirectory { .. });
    assert!(matches!(place.list("secret", two, &mut |_, _| true), Err(Failure::Denied)));
}

fn no_descriptor_is_left_behind() {
    let place = TestDir::new();
    place.put("p/f", "x");
    let open = || fs::read_dir("/proc/self/fd").expect("procfs").count();
    let before = open();
    for round in 0..250 {
        place.read("p/f").expect("read");
        place.write("p/f", &round.to_string()).expect("written");
        place.write(format!("p/{round}/new"), "").expect("written");
        place.list("p", Limits::default(), &mut |_, _| true).expect("listed");
        assert!(place.read("secret/f").is_err() && place.read("p/none").is_err());
        assert!(place.write("secret/x/y", "x").is_err());
    }
    assert_eq!(open(), before);
}
