use std::fs::{self, File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::*;
use crate::identity::identify;

fn place(top: &Path, path: &str) -> ResolvedName {
    let path = top.join(path);
    let directory: OwnedFd = File::open(path.parent().expect("a parent")).expect("open").into();
    let name = std::ffi::CString::new(path.file_name().expect("a name").as_bytes()).expect("no NUL");
    ResolvedName { directory, name, path, as_directory: false }
}

#[test]
fn a_name_covers_what_lies_below_it_and_moves_with_its_directory() {
    let top = tempfile::tempdir().expect("a directory");
    let top = top.path().canonicalize().expect("there");
    fs::create_dir_all(top.join("u/s1/deep")).expect("made");
    let covers = |places: &SharedKnowledge, path: &str| places.cover(&place(&top, path), None);
    let places = SharedKnowledge::default();
    assert!(!covers(&places, "u/s1"));
    let holder = identify(File::open(top.join("u")).expect("open"), c"").expect("there");
    let add = |name: &[u8]| places.add_name(holder.clone(), name).expect("noted");
    assert!(add(b"s1") && !add(b"S1"));
    assert!(covers(&places, "u/s1") && covers(&places, "u/s1/deep/x") && covers(&places, "u/S1"));
    assert!(!covers(&places, "u/other") && !covers(&places, "s1"));
    fs::rename(top.join("u"), top.join("v")).expect("moved");
    assert!(covers(&places, "v/s1/deep"));
    places.remove_name(&holder, b"s1");
    assert!(!covers(&places, "v/s1/deep"));
    add(b"s1");
    places.forget(&holder);
    assert!(!covers(&places, "v/s1/deep"));
}

#[test]
fn a_directory_covers_what_it_holds_wherever_it_is_moved() {
    let top = tempfile::tempdir().expect("a directory");
    let top = top.path().canonicalize().expect("there");
    fs::create_dir_all(top.join("n/deep")).expect("made");
    let places = SharedKnowledge::default();
    let n = identify(File::open(top.join("n")).expect("open"), c"").expect("there");
    places.add(&Reached { directories: vec![n.clone()], ..Reached::default() }).expect("noted");
    let covers = |path: &str| places.cover(&place(&top, path), None);
    assert!(covers("n/x") && covers("n/deep/x") && !covers("n"));
    fs::rename(top.join("n"), top.join("m")).expect("moved");
    assert!(covers("m/deep/x"));
    places.forget(&n);
    assert!(!covers("m/deep/x"));
}

#[test]
fn what_lies_in_an_own_directory_is_own_wherever_it_goes() {
    let place = tempfile::tempdir().expect("a directory");
    let top = File::open(place.path()).expect("open");
    fs::create_dir_all(place.path().join("own/deep")).expect("made");
    let made = SharedKnowledge::default();
    let own = identify(&top, c"own").expect("there");
    made.note_own(1, own.clone(), |_| true);
    fs::rename(place.path().join("own"), place.path().join("moved")).expect("moved");
    let deep = File::open(place.path().join("moved/deep")).expect("open");
    let holds = |command, directory: &File, levels| made.holds(command, directory, levels, None);
    assert!(holds(1, &deep, 0) && holds(1, &deep, 1) && !holds(1, &deep, 2));
    assert!(!holds(2, &deep, 0) && !holds(1, &top, 0));
    made.note_own(2, own.clone(), |command| command == 2);
    assert!(!made.holds(1, &deep, 0, None), "forgotten with its command");
    made.forget(&own);
    assert!(!made.holds(2, &deep, 0, None), "forgotten by itself");
}

#[test]
fn what_moves_is_own_by_where_it_goes() {
    let place = tempfile::tempdir().expect("a directory");
    let top = File::open(place.path()).expect("open");
    fs::create_dir_all(place.path().join("own/users/deep")).expect("made");
    let made = SharedKnowledge::default();
    made.note_own(1, identify(&top, c"own").expect("there"), |_| true);
    let own = File::open(place.path().join("own")).expect("open");
    let deep = File::open(place.path().join("own/users/deep")).expect("open");
    let out = Moving::new(&own, c"users", top.as_fd()).expect("there");
    assert!(made.holds(1, &deep, 0, None) && !made.holds(1, &deep, 0, Some(&out)));
    let within = Moving::new(&own, c"users", own.as_fd()).expect("there");
    assert!(made.holds(1, &deep, 0, Some(&within)));
    let itself = Moving::new(&top, c"own", top.as_fd()).expect("there");
    assert!(made.holds(1, &deep, 2, Some(&itself)) && !made.holds(1, &deep, 3, Some(&itself)));
}

/// Returns brokers of the sessions with these numbers, in one order.
fn brokers<const N: usize>(place: &Path, sessions: [u64; N]) -> [SharedKnowledge; N] {
    let record = place.join("record");
    sessions.map(|session| {
        let file = OpenOptions::new().read(true).append(true).create(true).open(&record).expect("a file");
        SharedKnowledge::new(Some(Record::open(file.into(), session).expect("locked")))
    })
}

#[test]
fn brokers_know_of_one_another() {
    let top = tempfile::tempdir().expect("a directory");
    let [one, same, other] = brokers(top.path(), [1, 1, 2]);
    fs::create_dir_all(top.path().join("n/deep")).expect("made");
    let n = identify(File::open(top.path().join("n")).expect("open"), c"").expect("there");
    let holder = identify(File::open(top.path()).expect("open"), c"").expect("there");
    one.note_made(n.clone());
    one.note_own(1, n.clone(), |_| true);
    assert!(same.is_ours(&n) && !other.is_ours(&n) && other.is_made(&n));
    let place = place(&top.path().canonicalize().expect("there"), "n/deep/x");
    assert!(!other.cover(&place, None));
    // A name, until it is taken back.
    assert!(
        other.add_name(holder.clone(), b"N").expect("noted")
            && !one.add_name(holder.clone(), b"n").expect("noted")
    );
    assert!([&one, &same, &other].iter().all(|known| known.cover(&place, None)));
    one.remove_name(&holder, b"n");
    assert!(![&one, &same, &other].iter().any(|known| known.cover(&place, None)));
    // A directory that another command's link leads to is no command's own.
    other.add(&Reached { directories: vec![n.clone()], ..Reached::default() }).expect("noted");
    assert!(one.cover(&place, None) && !one.is_ours(&n) && !one.is_own(1, &n));
    same.forget(&n);
    assert!(!other.cover(&place, None));
}

#[test]
fn a_record_that_cannot_be_read_frees_nothing() {
    let top = tempfile::tempdir().expect("a directory");
    let [one] = brokers(top.path(), [1]);
    let place = place(&top.path().canonicalize().expect("there"), "x");
    assert!(!one.cover(&place, None));
    fs::write(top.path().join("record"), [9, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]).expect("written");
    assert!(one.cover(&place, None));
}
