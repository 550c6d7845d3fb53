//! Edits replace exactly the content that was read.

use std::fs;
use std::io::Write as _;

use portcullis_decision::request::FileOperation;
use portcullis_file_gate::{Editing, FileError, Limits, Links, Purpose, WriteOptions};

use crate::assert_fails;
use crate::kit::{Failure, TestDir};
use portcullis_each_user::Test;

pub(crate) const TESTS: &[Test] = &[
    ("edits_what_was_read", edits_what_was_read),
    ("a_change_in_between_is_a_conflict", a_change_in_between_is_a_conflict),
    ("no_edit_is_lost", no_edit_is_lost),
];

/// A change of `p/f` by another program, with its name.
type Change = (&'static str, fn(&TestDir));

pub(crate) fn begin(place: &TestDir, name: &str) -> Result<Editing, Failure> {
    let located = place.locate(name, Purpose::ForWriting)?;
    let permit = place.decide(&located, FileOperation::Edit(Vec::new())).ok_or(Failure::Denied)?;
    Ok(place.gate.edit(located, permit, Limits::default())?)
}

fn edits_what_was_read() {
    let place = TestDir::new();
    place.put("p/f", "one");
    let editing = begin(&place, "p/f").expect("read");
    assert_eq!(editing.content().bytes, b"one");
    assert_eq!(editing.canonical_text(), place.path("p/f").to_str().expect("plain"));
    place.gate.replace(editing, b"two", Links::Refuse).expect("written");
    assert_eq!(place.content("p/f"), "two");
    assert!(matches!(begin(&place, "secret/f"), Err(Failure::Denied)));
    assert_fails!(begin(&place, "p/none"), FileError::NotFound { .. });
    assert_fails!(begin(&place, "p"), FileError::IsDirectory { .. });
    // The same in two steps: read, then write with the state that was read.
    let identity = place.read("p/f").expect("read").identity;
    let options = WriteOptions { expect: Some(identity), ..WriteOptions::default() };
    place.write_with("p/f", "three", options).expect("written");
    assert_fails!(place.write_with("p/f", "four", options), FileError::Conflict { .. });
    fs::remove_file(place.path("p/f")).expect("removed");
    assert_fails!(place.write_with("p/f", "four", options), FileError::Conflict { .. });
}

fn a_change_in_between_is_a_conflict() {
    let place = TestDir::new();
    let changes: [Change; 4] = [
        ("appended", |place| {
            let file = fs::OpenOptions::new().append(true).open(place.path("p/f"));
            file.expect("open").write_all(b"more").expect("written");
        }),
        ("replaced", |place| {
            place.put("p/other", "old");
            fs::rename(place.path("p/other"), place.path("p/f")).expect("renamed");
        }),
        ("removed", |place| fs::remove_file(place.path("p/f")).expect("removed")),
        ("linked", |place| {
            fs::remove_file(place.path("p/f")).expect("removed");
            place.link("../secret/f", "p/f");
        }),
    ];
    for (change, make) in changes {
        drop(fs::remove_file(place.path("p/f")));
        place.put("p/f", "old");
        let editing = begin(&place, "p/f").expect("read");
        make(&place);
        let result = place.gate.replace(editing, b"new", Links::Refuse);
        assert!(matches!(result, Err(FileError::Conflict { .. })), "{change}: {result:?}");
        let names = place.names("p");
        assert!(names.iter().all(|name| name == "f"), "{change}: {names:?}");
    }
    assert_eq!(place.content("secret/f"), "TOPSECRET");
}

fn no_edit_is_lost() {
    const EDITS: usize = 300;
    let place = TestDir::new();
    place.put("p/f", "");
    let append = |who: usize| {
        let mut conflicts = 0;
        for line in 0..EDITS {
            while let Err(refusal) = add_line(&place, &format!("{who}-{line}\n")) {
                let expected = matches!(
                    refusal,
                    Failure::Failed(
                        FileError::Conflict { .. } | FileError::Moved { .. } | FileError::NotFound { .. }
                    )
                );
                assert!(expected, "{refusal:?}");
                conflicts += 1;
            }
        }
        conflicts
    };
    let conflicts: usize = std::thread::scope(|scope| {
        let others = [1, 2].map(|who| scope.spawn(move || append(who)));
        others.map(|other| other.join().expect("it ends")).iter().sum()
    });
    println!("    {} edits by two, {conflicts} conflicts", 2 * EDITS);
    assert_eq!(place.content("p/f").lines().count(), 2 * EDITS);
    assert_eq!(place.names("p"), ["f"]);
}

fn add_line(place: &TestDir, line: &str) -> Result<(), Failure> {
    let editing = begin(place, "p/f")?;
    let mut content = editing.content().bytes.clone();
    content.extend(line.bytes());
    place.gate.replace(editing, &content, Links::Refuse)?;
    Ok(())
}
