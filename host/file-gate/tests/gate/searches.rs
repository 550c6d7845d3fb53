//! Finding and searching: ignored names are left out, and no link leads out of the tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use portcullis_decision::request::{FileOperation, PathKind, SearchQuery};
use portcullis_each_user::Test;
use portcullis_file_gate::{
    Case, FileError, FindQuery, Flow, GitRepositories, GrepQuery, IgnoreFiles, Inode, PatternSyntax, Purpose,
    SearchEnd, SearchError, SearchGuard,
};

use crate::kit::{TestDir, is_root};
use crate::races::{Attacker, PAUSES, contest, tries};

pub(crate) const TESTS: &[Test] = &[
    ("names_are_found_in_order", names_are_found_in_order),
    ("lines_are_found", lines_are_found),
    ("what_may_not_be_read_is_not_found", what_may_not_be_read_is_not_found),
    ("ignore_files_are_no_way_to_read", ignore_files_are_no_way_to_read),
    ("another_name_is_no_way_to_read", another_name_is_no_way_to_read),
    ("odd_files_do_not_hang_a_search", odd_files_do_not_hang_a_search),
    ("a_search_can_be_taken_back", a_search_can_be_taken_back),
    ("a_permit_is_for_one_pattern", a_permit_is_for_one_pattern),
    ("no_search_leaks_in_a_race", no_search_leaks_in_a_race),
];

/// A guard that hides the files at or below one path.
struct Without {
    hidden: PathBuf,
    kept_back: Vec<Inode>,
    cancelled: bool,
}

impl SearchGuard for Without {
    fn may_enter(&self, path: &Path, _kind: PathKind) -> bool {
        !path.starts_with(&self.hidden)
    }

    fn may_show(&self, path: &Path, kind: PathKind) -> bool {
        self.may_enter(path, kind)
    }

    fn may_read_linked(&self, file: Inode) -> bool {
        !self.kept_back.contains(&file)
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled
    }
}

/// A guard like that of a session: it allows only files in the project.
struct Within(PathBuf);

impl SearchGuard for Within {
    fn may_enter(&self, path: &Path, _kind: PathKind) -> bool {
        path.starts_with(&self.0)
    }

    fn may_show(&self, path: &Path, kind: PathKind) -> bool {
        self.may_enter(path, kind)
    }

    fn may_read_linked(&self, _file: Inode) -> bool {
        true
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

fn all() -> Without {
    Without { hidden: "/nowhere".into(), kept_back: Vec::new(), cancelled: false }
}

fn ignoring() -> IgnoreFiles {
    IgnoreFiles { own_name: ".fdignore", git: GitRepositories::NotRequired, ..IgnoreFiles::default() }
}

fn find(place: &TestDir, top: &str, glob: &str, guard: &dyn SearchGuard) -> Result<Vec<String>, SearchError> {
    let located = place.locate(top, Purpose::Existing)?;
    let search = SearchQuery { pattern: glob.to_owned(), glob: None };
    let permit = place.decide(&located, FileOperation::Search(search)).expect("allowed");
    let query = FindQuery { glob: glob.to_owned(), named: place.path(top), ignore: ignoring() };
    let mut names = Vec::new();
    place.gate.find(located, permit, &query, guard, &mut |found| {
        names.push(found.relative.to_string_lossy().into_owned());
        Flow::Continue
    })?;
    Ok(names)
}

fn query(pattern: &str) -> GrepQuery {
    GrepQuery {
        pattern: pattern.to_owned(),
        syntax: PatternSyntax::Regex,
        case: Case::Sensitive,
        glob: None,
        glob_root: None,
        context: 0,
        whole_files: false,
        ignore: ignoring(),
    }
}

fn grep(
    place: &TestDir,
    top: &str,
    query: &GrepQuery,
    guard: &dyn SearchGuard,
) -> Result<(Vec<String>, SearchEnd), SearchError> {
    let located = place.locate(top, Purpose::Existing)?;
    let search = SearchQuery { pattern: query.pattern.clone(), glob: query.glob.clone() };
    let permit = place.decide(&located, FileOperation::Search(search)).expect("allowed");
    let mut lines = Vec::new();
    let end = place.gate.grep(located, permit, query, guard, &mut |line| {
        let text = String::from_utf8_lossy(line.bytes);
        lines.push(format!("{}:{}:{}", line.relative.display(), line.number, text.trim_end()));
        Flow::Continue
    })?;
    Ok((lines, end))
}

fn names_are_found_in_order() {
    let place = TestDir::new();
    for directory in ["p/b", "p/a", "p/.h", "p/build"] {
        fs::create_dir(place.path(directory)).expect("a directory");
    }
    for file in ["p/b/1.txt", "p/a/2.txt", "p/a.txt", "p/.h/3.txt", "p/build/4.txt"] {
        place.put(file, "x");
    }
    place.put("p/.gitignore", "build/\n");
    place.link("a", "p/link.txt");
    let names = find(&place, "p", "*.txt", &all()).expect("found");
    assert_eq!(names, [".h/3.txt", "a/2.txt", "a.txt", "b/1.txt", "link.txt"]);
    assert_eq!(find(&place, "p", "a/*.txt", &all()).expect("found"), ["a/2.txt"]);
    assert!(matches!(find(&place, "p", "[", &all()), Err(SearchError::Glob(_))));
    let no_directory = find(&place, "p/a.txt", "*", &all());
    assert!(matches!(no_directory, Err(SearchError::File(FileError::NotADirectory { .. }))));
}

fn lines_are_found() {
    let place = TestDir::new();
    fs::create_dir(place.path("p/d")).expect("a directory");
    place.put("p/d/f", "one\ntwo\nthree\n");
    place.put("p/d/binary", "two\n\0\ntwo\n");
    place.put("p/d/bom", "\u{FEFF}two\n");
    let (lines, _) = grep(&place, "p", &query("^t[wh]"), &all()).expect("found");
    // A file with a NUL counts as binary, unless it is named itself.
    assert_eq!(lines, ["d/bom:1:two", "d/f:2:two", "d/f:3:three"]);
    let (lines, _) = grep(&place, "p/d/binary", &query("two"), &all()).expect("found");
    assert_eq!(lines, [":1:two", ":3:two"]);
    let around = GrepQuery { context: 1, ..query("two") };
    let (lines, _) = grep(&place, "p/d/f", &around, &all()).expect("found");
    assert_eq!(lines, [":1:one", ":2:two", ":3:three"]);
    let only = GrepQuery { glob: Some("!**/b*".to_owned()), ..query("two") };
    let (lines, _) = grep(&place, "p", &only, &all()).expect("found");
    assert_eq!(lines, ["d/f:2:two"]);
    assert!(matches!(grep(&place, "p", &query("("), &all()), Err(SearchError::Pattern(_))));
}

fn what_may_not_be_read_is_not_found() {
    let place = TestDir::new();
    fs::create_dir_all(place.path("p/closed/deep")).expect("a directory");
    place.put("p/closed/deep/needle.txt", "needle");
    place.put("p/open.txt", "needle");
    let guard = Without { hidden: place.path("p/closed"), kept_back: Vec::new(), cancelled: false };
    assert_eq!(find(&place, "p", "*", &guard).expect("found"), ["open.txt"]);
    let (lines, _) = grep(&place, "p", &query("needle"), &guard).expect("found");
    assert_eq!(lines, ["open.txt:1:needle"]);
    // The control: both are found.
    assert!(find(&place, "p", "*", &all()).expect("found").contains(&"closed/deep/needle.txt".to_owned()));
    assert_eq!(grep(&place, "p", &query("needle"), &all()).expect("found").0.len(), 2);
}

/// The names that an ignore file hides reveal its content: through a link, it would be a way to guess a secret.
fn ignore_files_are_no_way_to_read() {
    let place = TestDir::new();
    for name in ["p/TOPSECRET", "p/guess"] {
        place.put(name, "x");
    }
    place.link("../secret/f", "p/.gitignore");
    let inside = Within(place.path("p"));
    assert_eq!(find(&place, "p", "[!.]*", &inside).expect("found"), ["TOPSECRET", "guess"]);
    // The control: where the secret may be read, its content hides the file of the same name.
    assert_eq!(find(&place, "p", "[!.]*", &all()).expect("found"), ["guess"]);
}

fn another_name_is_no_way_to_read() {
    let place = TestDir::new();
    fs::hard_link(place.path("secret/f"), place.path("p/h")).expect("linked");
    assert_eq!(grep(&place, "p", &query("TOPSECRET"), &all()).expect("searched").0.len(), 1);
    let inode = place.locate("secret/f", Purpose::Existing).expect("located").inode();
    let guard = Without { kept_back: inode.into_iter().collect(), ..all() };
    assert_eq!(grep(&place, "p", &query("TOPSECRET"), &guard).expect("searched").0.len(), 0);
}

fn odd_files_do_not_hang_a_search() {
    let place = TestDir::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, place.path("p/fifo"), rustix::fs::Mode::RWXU).expect("a pipe");
    let huge = fs::File::create(place.path("p/huge")).expect("a file");
    huge.set_len(1 << 40).expect("a hole");
    place.link("p", "p/circle");
    place.link("/dev/zero", "p/zero");
    place.link("/proc/self/environ", "p/environ");
    place.put("p/f", "needle");
    if !is_root() {
        place.put("p/locked", "needle");
        fs::set_permissions(place.path("p/locked"), std::os::unix::fs::PermissionsExt::from_mode(0o000))
            .expect("locked");
    }
    let start = Instant::now();
    let (lines, end) = grep(&place, "p", &query("needle|PATH"), &all()).expect("found");
    assert_eq!(lines, ["f:1:needle"]);
    assert_eq!(end.failures.len(), usize::from(!is_root()), "{:?}", end.failures);
    assert!(start.elapsed() < Duration::from_secs(5), "it took {:?}", start.elapsed());
    assert_eq!(find(&place, "p", "*o", &all()).expect("found"), ["fifo", "zero"]);
    assert!(grep(&place, "p/fifo", &query("x"), &all()).is_err());
    let top = place.gate.locate(Path::new("/proc"), Purpose::Existing).expect("there");
    let search = FileOperation::Search(SearchQuery { pattern: "*".to_owned(), glob: None });
    let permit = crate::kit::permit_below(Path::new("/proc"), &top, search).expect("allowed");
    let query = FindQuery { glob: "*".to_owned(), named: "/proc".into(), ignore: ignoring() };
    let found = place.gate.find(top, permit, &query, &all(), &mut |_| Flow::Continue);
    assert!(matches!(found, Err(SearchError::File(FileError::Special { .. }))), "{found:?}");
}

fn a_search_can_be_taken_back() {
    let place = TestDir::new();
    place.put("p/f", "needle");
    let cancelled = Without { hidden: "/nowhere".into(), kept_back: Vec::new(), cancelled: true };
    assert!(matches!(find(&place, "p", "*", &cancelled), Err(SearchError::Cancelled)));
    assert!(matches!(grep(&place, "p", &query("needle"), &cancelled), Err(SearchError::Cancelled)));
}

fn a_permit_is_for_one_pattern() {
    let place = TestDir::new();
    let located = place.locate("p", Purpose::Existing).expect("there");
    let search = FileOperation::Search(SearchQuery { pattern: "harmless".to_owned(), glob: None });
    let permit = place.decide(&located, search).expect("allowed");
    let result = place.gate.grep(located, permit, &query("secret"), &all(), &mut |_| Flow::Continue);
    assert!(matches!(result, Err(SearchError::File(FileError::WrongPermit { .. }))));
    let located = place.locate("p", Purpose::Existing).expect("there");
    let permit = place.decide(&located, FileOperation::Read).expect("allowed");
    let result = place.gate.grep(located, permit, &query("x"), &all(), &mut |_| Flow::Continue);
    assert!(matches!(result, Err(SearchError::File(FileError::WrongPermit { .. }))));
}

/// Imitates a search that looks at names and then opens them by name.
fn naively(place: &TestDir) -> bool {
    let is_directory = |path: &Path| fs::symlink_metadata(path).is_ok_and(|status| status.is_dir());
    let top = place.path("p/real");
    if !is_directory(&top) {
        return false;
    }
    let entries = fs::read_dir(&top).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| fs::read(entry.path()).is_ok_and(|content| content == b"TOPSECRET"))
}

fn no_search_leaks_in_a_race() {
    let place = TestDir::new();
    contest(&place);
    let start = Instant::now();
    let mut control = 0_usize;
    'control: for pause in PAUSES.iter().cycle() {
        let _attacker = Attacker::start(&place, *pause);
        for _ in 0..2_000 {
            control += 1;
            if naively(&place) {
                break 'control;
            }
        }
        assert!(start.elapsed() < Duration::from_secs(60), "the control did not leak");
    }
    println!("    control: walked by name, it leaked after {control} tries");
    let (mut found, mut searches) = (0_usize, 0_usize);
    for pause in PAUSES {
        let mut attacker = Attacker::start(&place, pause);
        for _ in 0..tries(2_500) {
            searches += 1;
            // No rule protects the secret here; only the way of walking the tree does.
            let (lines, _) = grep(&place, "p", &query("."), &all()).expect("searched");
            assert!(!lines.iter().any(|line| line.contains("TOPSECRET")), "it leaked: {lines:?}");
            found += usize::from(!lines.is_empty());
        }
        assert!(attacker.is_alive());
    }
    println!("    searches: 0 leaks in {searches}, {found} found something");
    assert!(found > 0, "the file was met");
}
