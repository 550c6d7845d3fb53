//! Detection of writers of a file. This is a separate test program, because another test that starts a
//! process would hold copies of all descriptors until that process calls `execve`.

#![cfg(target_os = "linux")]

use std::fs::File;

use portcullis_sys::descriptor::has_writers;

#[test]
fn writers_are_seen_as_long_as_there_are_any() {
    let path = std::env::temp_dir().join(format!("portcullis-writers-{}", std::process::id()));
    let writer = File::create(&path).expect("a file");
    let reader = File::open(&path).expect("the file");
    assert!(has_writers(&reader));
    drop(writer);
    assert!(!has_writers(&reader));
    std::fs::remove_file(&path).expect("removed");
}
