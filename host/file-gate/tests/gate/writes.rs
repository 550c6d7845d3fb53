//! Writing.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;

use portcullis_decision::request::PathKind;
use portcullis_file_gate::{FileError, Links, Purpose, WriteOptions};

use crate::assert_fails;
use crate::kit::{self, Failure, TestDir, writing};
use portcullis_each_user::{Test, cannot_run};

pub(crate) const TESTS: &[Test] = &[
    ("writes_new_and_old_files", writes_new_and_old_files),
    ("makes_missing_directories", makes_missing_directories),
    ("a_link_to_nothing_is_what_it_creates", a_link_to_nothing_is_what_it_creates),
    ("links_stay_links", links_stay_links),
    ("mode_and_attributes_stay", mode_and_attributes_stay),
    ("set_id_bits_go", set_id_bits_go),
    ("hard_links_are_refused_or_kept", hard_links_are_refused_or_kept),
    ("only_files_are_written", only_files_are_written),
    ("a_name_that_appears_is_a_conflict", a_name_that_appears_is_a_conflict),
    ("a_directory_that_moves_is_noticed", a_directory_that_moves_is_noticed),
    ("a_directory_that_cannot_be_written", a_directory_that_cannot_be_written),
    ("a_foreign_file_stays_foreign", a_foreign_file_stays_foreign),
];

fn writes_new_and_old_files() {
    let place = TestDir::new();
    let written = place.write("p/f", "new").expect("written");
    assert_eq!((place.content("p/f").as_str(), written.size, written.created), ("new", 3, true));
    let written = place.write("p/f", "other").expect("written");
    assert_eq!((place.content("p/f").as_str(), written.size, written.created), ("other", 5, false));
    assert_eq!(place.names("p"), ["f"], "no temporary file stays");
    // The state after a write is the one that the next edit expects.
    let located = place.locate("p/f", Purpose::ForWriting).expect("located");
    let permit = place.decide(&located, writing("third")).expect("allowed");
    let options = WriteOptions { expect: Some(written.identity), ..WriteOptions::default() };
    place.gate.write(located, permit, b"third", options).expect("written");
    assert!(matches!(place.write("secret/f", "x"), Err(Failure::Denied)));
    assert!(matches!(place.write("secret/new", "x"), Err(Failure::Denied)));
    assert_eq!((place.content("secret/f").as_str(), place.names("secret")), ("TOPSECRET", vec!["f".into()]));
}

fn makes_missing_directories() {
    let place = TestDir::new();
    let located = place.locate("p/a/b/c/f", Purpose::ForWriting).expect("located");
    let expected: Vec<PathBuf> = ["p/a", "p/a/b", "p/a/b/c"].map(|path| place.path(path)).into();
    assert_eq!((located.missing_parents(), located.kind()), (expected, PathKind::Missing));
    assert!(!place.path("p/a").exists(), "nothing is made before the decision");
    place.write("p/a/b/c/f", "deep").expect("written");
    assert_eq!(place.content("p/a/b/c/f"), "deep");
    assert!(matches!(place.write("secret/a/b/f", "x"), Err(Failure::Denied)));
    assert_eq!(place.names("secret"), ["f"]);
    let (most, more) = (format!("p/{}f", "d/".repeat(256)), format!("p/{}f", "e/".repeat(257)));
    place.write(&most, "deepest").expect("written");
    assert_fails!(place.write(&more, "x"), FileError::Io { .. });
    assert!(!place.path("p/e").exists());
    assert_fails!(place.write("p/none/../f", "x"), FileError::NotFound { .. });
    assert_fails!(place.write("p/a/b/c/f/g", "x"), FileError::NotADirectory { .. });
}

fn a_link_to_nothing_is_what_it_creates() {
    let place = TestDir::new();
    place.link("../secret/key", "p/file");
    place.link("../secret/new", "p/directory");
    place.link("/proc/self/cwd/../../none", "p/magic");
    place.link("../secret/", "p/slash");
    for (path, canonical) in [("p/file", "secret/key"), ("p/directory/x/f", "secret/new/x/f")] {
        let located = place.locate(path, Purpose::ForWriting).expect("located");
        assert_eq!(located.canonical(), place.path(canonical));
        assert!(matches!(place.write(path, "x"), Err(Failure::Denied)), "{path}");
    }
    assert_fails!(place.write("p/slash", "x"), FileError::IsDirectory { .. });
    assert!(place.write("p/magic", "x").is_err());
    assert_eq!(place.names("secret"), ["f"]);
    fs::write(place.path("p/file"), "x").expect("control: the link creates its target");
    assert_eq!(place.names("secret"), ["f", "key"]);
    place.link("inside", "p/link");
    place.write("p/link", "x").expect("written");
    assert_eq!(place.content("p/inside"), "x");
}

fn links_stay_links() {
    let place = TestDir::new();
    place.put("p/f", "old");
    place.link("f", "p/one");
    place.link(place.path("p/one"), "p/two");
    place.write("p/two", "new").expect("written");
    assert_eq!(place.content("p/f"), "new");
    for name in ["p/one", "p/two"] {
        assert!(fs::symlink_metadata(place.path(name)).expect("there").is_symlink());
    }
    place.link("circle", "p/circle");
    assert_fails!(place.write("p/circle", "x"), FileError::Loop { .. });
    place.link("circle2/x", "p/circle2");
    assert_fails!(place.write("p/circle2/y", "x"), FileError::Loop { .. });
}

fn mode_and_attributes_stay() {
    let place = TestDir::new();
    let file = place.put("p/f", "old");
    fs::set_permissions(&file, Permissions::from_mode(0o754)).expect("set");
    let flags = rustix::fs::XattrFlags::empty();
    let has_attributes = match rustix::fs::setxattr(&file, "user.origin", b"here", flags) {
        Ok(()) => true,
        Err(rustix::io::Errno::NOTSUP) => false,
        Err(errno) => panic!("{errno}"),
    };
    let before = fs::metadata(&file).expect("there");
    place.write("p/f", "new").expect("written");
    let after = fs::metadata(&file).expect("there");
    assert_eq!(after.mode(), before.mode());
    assert_ne!(after.ino(), before.ino(), "the file was replaced, not written in place");
    if has_attributes {
        let mut value = [0; 8];
        let length = rustix::fs::getxattr(&file, "user.origin", &mut value).expect("kept");
        assert_eq!(value[..length], *b"here");
    } else {
        cannot_run("extended attributes in /var/tmp");
    }
}

fn set_id_bits_go() {
    let place = TestDir::new();
    let file = place.put("p/f", "old");
    for options in [WriteOptions::default(), WriteOptions { links: Links::Allow, ..WriteOptions::default() }]
    {
        fs::set_permissions(&file, Permissions::from_mode(0o6755)).expect("set");
        assert_eq!(place.mode("p/f"), 0o6755, "control");
        place.write_with("p/f", "new", options).expect("written");
        assert_eq!(place.mode("p/f"), 0o755);
        // The second time, it has two names and is written in place.
        drop(fs::hard_link(&file, place.path("p/g")));
    }
}

fn hard_links_are_refused_or_kept() {
    let place = TestDir::new();
    fs::hard_link(place.path("secret/f"), place.path("p/f")).expect("linked");
    assert_fails!(place.write("p/f", "x"), FileError::Linked { links: 2, .. });
    assert_eq!(place.content("secret/f"), "TOPSECRET");
    place.put("p/one", "a long old content");
    fs::hard_link(place.path("p/one"), place.path("p/two")).expect("linked");
    let options = WriteOptions { links: Links::Allow, ..WriteOptions::default() };
    place.write_with("p/one", "new", options).expect("written");
    assert_eq!((place.content("p/one"), place.content("p/two")), ("new".into(), "new".into()));
}

fn only_files_are_written() {
    let place = TestDir::new();
    fs::create_dir(place.path("p/d")).expect("a directory");
    let made = std::process::Command::new("mkfifo").arg(place.path("p/fifo")).status();
    assert!(made.expect("mkfifo is there").success());
    assert_fails!(place.write("p/d", "x"), FileError::IsDirectory { .. });
    assert_fails!(place.write("p/d/", "x"), FileError::IsDirectory { .. });
    assert_fails!(place.write("p/new/", "x"), FileError::IsDirectory { .. });
    assert_fails!(place.write("p/d/..", "x"), FileError::IsDirectory { .. });
    assert_fails!(place.write("p/fifo", "x"), FileError::NotAFile { .. });
    assert_eq!(place.names("p"), ["d", "fifo"]);
}

fn a_name_that_appears_is_a_conflict() {
    let place = TestDir::new();
    let located = place.locate("p/f", Purpose::ForWriting).expect("located");
    let permit = place.decide(&located, writing("x")).expect("allowed");
    place.link("../secret/f", "p/f");
    let result = place.gate.write(located, permit, b"x", WriteOptions::default()).map_err(Failure::Failed);
    assert_fails!(result, FileError::Conflict { .. });
    // The same for a file that was replaced by a link.
    place.put("p/g", "old");
    let located = place.locate("p/g", Purpose::ForWriting).expect("located");
    let permit = place.decide(&located, writing("x")).expect("allowed");
    fs::remove_file(place.path("p/g")).expect("removed");
    place.link("../secret/f", "p/g");
    let result = place.gate.write(located, permit, b"x", WriteOptions::default()).map_err(Failure::Failed);
    assert_fails!(result, FileError::Conflict { .. });
    assert!(fs::symlink_metadata(place.path("p/g")).expect("there").is_symlink(), "it is put back");
    assert_eq!(
        (place.content("secret/f").as_str(), place.names("p")),
        ("TOPSECRET", vec!["f".into(), "g".into()])
    );
}

fn a_directory_that_moves_is_noticed() {
    let place = TestDir::new();
    for name in ["p/d/f", "p/e/new"] {
        let directory = place.path(name).parent().expect("a parent").to_owned();
        fs::create_dir(&directory).expect("a directory");
        if name == "p/d/f" {
            place.put(name, "old");
        }
        let located = place.locate(name, Purpose::ForWriting).expect("located");
        let permit = place.decide(&located, writing("x")).expect("allowed");
        let elsewhere = place.path("secret").join(directory.file_name().expect("a name"));
        fs::rename(&directory, &elsewhere).expect("moved");
        let result = place.gate.write(located, permit, b"x", WriteOptions::default());
        assert_fails!(result.map_err(Failure::Failed), FileError::Moved { .. });
    }
    assert_eq!(place.content("secret/d/f"), "old");
    assert!(place.names("secret/e").is_empty());
}

fn a_directory_that_cannot_be_written() {
    let place = TestDir::new();
    fs::create_dir(place.path("p/d")).expect("a directory");
    let file = place.put("p/d/f", "a long old content");
    if kit::is_root() {
        // Root can write to every directory; the same test runs as an ordinary user.
        return;
    }
    fs::set_permissions(place.path("p/d"), Permissions::from_mode(0o555)).expect("set");
    let before = fs::metadata(&file).expect("there").ino();
    place.write("p/d/f", "new").expect("written");
    assert_eq!((place.content("p/d/f").as_str(), fs::metadata(&file).expect("there").ino()), ("new", before));
    assert_fails!(place.write("p/d/new", "x"), FileError::Denied { .. });
    fs::set_permissions(place.path("p/d"), Permissions::from_mode(0o755)).expect("set");
}

fn a_foreign_file_stays_foreign() {
    if !kit::is_root() {
        // Only root can create a file that belongs to another user.
        return;
    }
    let place = TestDir::new();
    let file = place.put("p/f", "old");
    std::os::unix::fs::chown(&file, Some(1000), Some(1001)).expect("given away");
    place.write("p/f", "new").expect("written");
    let after = fs::metadata(&file).expect("there");
    assert_eq!((after.uid(), after.gid(), place.content("p/f").as_str()), (1000, 1001, "new"));
}
