//! Compiled policies on disk.

use std::fs;
use std::path::Path;

use portcullis_decision::Policy;
use portcullis_policy_runtime::{CachePlace, Compiler, Limits, LoadError, Runtime};

use crate::hand_made::HandMade;
use crate::request::{context, read};

fn load(directory: &Path, component: &[u8], configuration: &str) -> String {
    let runtime =
        Runtime::new(Limits::default(), &CachePlace::Directory(directory.to_owned()), Compiler::InProcess)
            .unwrap();
    let policy = runtime.load("guest", component, configuration).unwrap();
    policy.evaluate(&read("/srv/app/a"), &context()).unwrap().cause.rule
}

fn files(directory: &Path) -> Vec<fs::DirEntry> {
    fs::read_dir(directory).unwrap().map(Result::unwrap).collect()
}

#[test]
fn one_file_for_component_and_configuration() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("cache");
    let component = HandMade::evaluate("").build();
    load(&directory, &component, "{}");
    let written = fs::metadata(files(&directory)[0].path()).unwrap().modified().unwrap();
    load(&directory, &component, "{}");
    assert_eq!(files(&directory).len(), 1);
    assert_eq!(fs::metadata(files(&directory)[0].path()).unwrap().modified().unwrap(), written);
    load(&directory, &component, r#"{"a": 1}"#);
    assert_eq!(files(&directory).len(), 2);
    load(&directory, &HandMade::evaluate("(nop)").build(), "{}");
    assert_eq!(files(&directory).len(), 3);
}

#[test]
fn the_configured_state_is_kept() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("cache");
    let component = HandMade::evaluate("(if (i32.eqz (i32.load (i32.const 8))) (then (unreachable)))")
        .configure("(i32.store (i32.const 8) (local.get $length))")
        .build();
    assert_eq!(load(&directory, &component, "{}"), "test.rule");
    assert_eq!(load(&directory, &component, "{}"), "test.rule");
}

#[test]
fn descriptions_are_kept() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("cache");
    let component = HandMade::evaluate("").build();
    let describe = || {
        let runtime =
            Runtime::new(Limits::default(), &CachePlace::Directory(directory.clone()), Compiler::InProcess)
                .unwrap();
        runtime.describe(&component).unwrap()
    };
    let first = describe();
    let path = files(&directory)[0].path();
    let written = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(describe(), first);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written);
    fs::write(&path, "{}").unwrap();
    assert_eq!(describe(), first, "a broken file is written again");
}

#[test]
fn broken_files_are_compiled_again() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("cache");
    let component = HandMade::evaluate("").build();
    load(&directory, &component, "{}");
    let path = files(&directory)[0].path();
    let whole = fs::read(&path).unwrap();
    for broken in [Vec::new(), b"nonsense".to_vec(), whole[..whole.len() / 2].to_vec()] {
        fs::write(&path, broken).unwrap();
        assert_eq!(load(&directory, &component, "{}"), "test.rule");
        assert_eq!(fs::read(&path).unwrap().len(), whole.len(), "and written again");
    }
}

#[test]
fn a_directory_of_others_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let error =
        Runtime::new(Limits::default(), &CachePlace::Directory(place.path().to_owned()), Compiler::InProcess)
            .unwrap_err();
    assert!(matches!(error, LoadError::Cache { .. }), "{error}");
}

#[test]
fn old_files_go() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("cache");
    let component = HandMade::evaluate("").build();
    for number in 0..40 {
        load(&directory, &component, &format!("{{\"a\": {number}}}"));
    }
    assert_eq!(files(&directory).len(), 32);
}
