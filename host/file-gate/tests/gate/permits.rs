//! A permit is valid for one path and one operation.

use portcullis_decision::Permit;
use portcullis_decision::request::{Content, FileOperation};
use portcullis_file_gate::{FileError, Limits, Located, Purpose, WriteOptions};

use crate::kit::{TestDir, writing};
use portcullis_each_user::Test;

pub(crate) const TESTS: &[Test] = &[
    ("a_permit_is_for_one_path", a_permit_is_for_one_path),
    ("a_permit_is_for_one_operation", a_permit_is_for_one_operation),
    ("a_permit_is_for_the_content_that_was_judged", a_permit_is_for_the_content_that_was_judged),
    ("what_was_located_to_be_read_is_not_written", what_was_located_to_be_read_is_not_written),
];

fn located(place: &TestDir, name: &str) -> Located {
    place.locate(name, Purpose::ForWriting).expect("located")
}

fn permit(place: &TestDir, name: &str, operation: FileOperation) -> Permit {
    place.decide(&located(place, name), operation).expect("allowed")
}

fn a_permit_is_for_one_path() {
    let place = TestDir::new();
    place.put("p/f", "x");
    place.put("p/g", "x");
    let other = permit(&place, "p/g", FileOperation::Read);
    let result = place.gate.read(located(&place, "p/f"), other, Limits::default());
    assert!(matches!(result, Err(FileError::WrongPermit { .. })), "{result:?}");
    let other = permit(&place, "p/g", writing("new"));
    let result = place.gate.write(located(&place, "secret/f"), other, b"new", WriteOptions::default());
    assert!(matches!(result, Err(FileError::WrongPermit { .. })), "{result:?}");
    assert_eq!(place.content("secret/f"), "TOPSECRET");
}

fn a_permit_is_for_one_operation() {
    let place = TestDir::new();
    place.put("p/f", "x");
    let operations = || {
        [
            FileOperation::Read,
            FileOperation::List,
            FileOperation::Edit(Vec::new()),
            FileOperation::Write(Content::Unknown),
            FileOperation::Delete,
            FileOperation::CreateDirectory,
        ]
    };
    let mut passed = Vec::new();
    for operation in operations() {
        let verb = operation.verb().to_owned();
        let permit = || permit(&place, "p/f", operation.clone());
        let file = || located(&place, "p/f");
        let mut results = [
            ("read", place.gate.read(file(), permit(), Limits::default()).map(drop)),
            ("edit", place.gate.edit(file(), permit(), Limits::default()).map(drop)),
            ("write", place.gate.write(file(), permit(), b"x", WriteOptions::default()).map(drop)),
            ("list", place.gate.list(file(), permit(), Limits::default(), &mut |_, _| true).map(drop)),
        ];
        for (act, result) in &mut results {
            if !matches!(result, Err(FileError::WrongPermit { .. })) {
                passed.push(format!("{verb}: {act}"));
            }
        }
    }
    assert_eq!(passed, ["read: read", "list: list", "edit: read", "edit: edit", "write: write"]);
}

fn a_permit_is_for_the_content_that_was_judged() {
    let place = TestDir::new();
    let long = "x".repeat(100_000);
    let cases: [(FileOperation, &[u8], bool); 7] = [
        (writing("abc"), b"abc", true),
        (writing("abc"), b"abd", false),
        (writing("abc"), b"abcd", false),
        (writing(&long), long.as_bytes(), true),
        (writing(&long), &long.as_bytes()[1..], false),
        (FileOperation::Write(Content::Binary(2)), b"\xff\xfe", true),
        (FileOperation::Write(Content::Binary(2)), b"\xff", false),
    ];
    for (operation, bytes, fits) in cases {
        let permit = permit(&place, "p/f", operation);
        let result = place.gate.write(located(&place, "p/f"), permit, bytes, WriteOptions::default());
        assert_eq!(result.is_ok(), fits, "{result:?}");
        assert_eq!(matches!(result, Err(FileError::WrongPermit { .. })), !fits);
    }
}

fn what_was_located_to_be_read_is_not_written() {
    let place = TestDir::new();
    place.put("p/f", "x");
    let existing = place.locate("p/f", Purpose::Existing).expect("located");
    let permit = permit(&place, "p/f", writing("y"));
    let result = place.gate.write(existing, permit, b"y", WriteOptions::default());
    assert!(matches!(result, Err(FileError::NotForWriting { .. })), "{result:?}");
}
