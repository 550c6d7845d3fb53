//! Spellings of one name.

use portcullis_each_user::Test;
use portcullis_file_gate::Purpose;

use crate::kit::TestDir;

pub(crate) const TESTS: &[Test] = &[("names_are_as_listed", names_are_as_listed)];

/// The names in a canonical path are those that the directories list.
fn names_are_as_listed() {
    let place = TestDir::new();
    place.put("p/File", "x");
    let other = place.read("p/file");
    if let Ok(content) = other {
        // This file system ignores case.
        assert_eq!(content.bytes, b"x");
        let located = place.locate("p/file", Purpose::Existing).expect("located");
        assert_eq!(located.canonical(), place.path("p/File"));
    } else {
        place.write("p/file", "y").expect("written");
        assert_eq!(place.names("p"), ["File", "file"]);
        place.write("p/.FILE", "y").expect("written: case counts here");
    }
}
