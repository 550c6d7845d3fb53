//! The on-disk cache of compiled policies.

use std::collections::BTreeMap;
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
    if let Some(job) = policy.snapshot_job() {
        job.run().unwrap();
    }
    policy.evaluate(&read("/srv/app/a"), &context()).unwrap().cause.rule
}

fn files(directory: &Path) -> Vec<fs::DirEntry> {
    fs::read_dir(directory).unwrap().map(Result::unwrap).collect()
}

/// The cache has one file for the component, and one for its snapshot with each configuration.
#[test]
fn components_and_their_snapshots_are_kept() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("cache");
    let component = HandMade::evaluate("").build();
    let written = || {
        let changed = |entry: &fs::DirEntry| entry.metadata().unwrap().modified().unwrap();
        files(&directory).iter().map(|entry| (entry.file_name(), changed(entry))).collect::<BTreeMap<_, _>>()
    };
    load(&directory, &component, "{}");
    let first = written();
    assert_eq!(first.len(), 2);
    load(&directory, &component, "{}");
    assert_eq!(written(), first, "nothing is compiled again");
    load(&directory, &component, r#"{"a": 1}"#);
    assert_eq!(files(&directory).len(), 3);
    load(&directory, &HandMade::evaluate("(nop)").build(), "{}");
    assert_eq!(files(&directory).len(), 5);
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
fn a_component_is_described_without_compiling_it_again() {
    let place = tempfile::tempdir().unwrap();
    let cache = CachePlace::Directory(place.path().join("cache"));
    let component = HandMade::evaluate("").build();
    let runtime = |compiler| Runtime::new(Limits::default(), &cache, compiler).unwrap();
    let first = runtime(Compiler::InProcess).describe(&component).unwrap();
    let no_compiler = runtime(Compiler::Process("/nonexistent".into()));
    assert_eq!(no_compiler.describe(&component).unwrap(), first);
    let other = HandMade::evaluate("(nop)").build();
    assert!(matches!(no_compiler.describe(&other), Err(LoadError::Compiler { .. })), "control");
}

#[test]
fn broken_files_are_compiled_again() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("cache");
    let component = HandMade::evaluate("").build();
    load(&directory, &component, "{}");
    let paths: Vec<_> = files(&directory).iter().map(fs::DirEntry::path).collect();
    for path in &paths {
        let whole = fs::read(path).unwrap();
        for broken in [Vec::new(), b"nonsense".to_vec(), whole[..whole.len() / 2].to_vec()] {
            // The snapshot is looked up before the component.
            paths.iter().for_each(|path| fs::write(path, &broken).unwrap());
            assert_eq!(load(&directory, &component, "{}"), "test.rule");
            assert_eq!(fs::read(path).unwrap().len(), whole.len(), "and written again");
        }
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
