//! Indexes that the real git writes, and forged ones.

use std::path::Path;

use portcullis_exec_surface::Site;
use portcullis_exec_surface::git::{Content, Judgement, judge};
use proptest::prelude::*;

use crate::kit::{git, output};

fn judged(index: &[u8]) -> Judgement {
    let roots = [std::path::PathBuf::from("/w")];
    let site = Site::without_files(&roots[0], &roots);
    judge(Content::Index, Path::new("/w/.git/index"), None, index, &site)
}

fn is_refused(index: &[u8]) -> bool {
    matches!(judged(index), Judgement::Unreadable(_))
}

/// Creates an index of these files in this version, with git's tables if `with_tables`.
fn index(version: &str, names: &[&str], with_tables: bool) -> Vec<u8> {
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let done = output(git(home.path()).args(arguments));
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    run(&["init", "-q"]);
    for name in names {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }
    run(&["add", "."]);
    let tables = ["-c", "index.threads=2", "-c", "index.recordOffsetTable=true"];
    let tables: &[&str] = if with_tables { &tables } else { &[] };
    run(&[tables, &["update-index", "--index-version", version, "--force-write-index"]].concat());
    std::fs::read(home.path().join(".git/index")).unwrap()
}

/// Returns `text` with every `from` replaced by `to`, which is as long.
fn replaced(text: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut text = text.to_owned();
    let at: Vec<usize> =
        (0..text.len()).filter(|at| text.get(*at..*at + from.len()) == Some(from.as_bytes())).collect();
    assert!(!at.is_empty(), "{from} is not there");
    for at in at {
        text[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    text
}

#[test]
fn names_that_git_would_not_take_are_refused() {
    let long = vec!["y".repeat(200); 15].join("/");
    for version in ["2", "3", "4"] {
        for with_tables in [false, true] {
            let names = ["aa/bb", "xgit/hooks/pre-commit", "zz", &long];
            let whole = index(version, &names, with_tables);
            assert_eq!(judged(&whole), Judgement::Harmless, "version {version}");
            assert!(is_refused(&replaced(&whole, "aa/bb", "../bb")));
            assert!(is_refused(&replaced(&whole, "aa/bb", "/a/bb")));
            assert!(is_refused(&replaced(&whole, "aa/bb", "aa//b")));
            assert!(is_refused(&replaced(&whole, "xgit/hooks", ".git/hooks")));
            assert!(is_refused(&replaced(&whole, "xgit/hooks", ".GiT/hooks")));
            assert!(is_refused(&replaced(&whole, "aa/bb", "aa\0bb")), "a name that ends early");
        }
    }
}

#[test]
fn tables_that_lead_elsewhere_are_refused() {
    let whole = index("4", &["a/b", "a/c", "d"], true);
    for name in ["EOIE", "IEOT"] {
        let at = whole.windows(4).position(|part| part == name.as_bytes()).unwrap();
        for byte in 8..12 {
            let mut forged = whole.clone();
            forged[at + byte] ^= 4;
            assert!(is_refused(&forged), "{name} {byte}");
        }
    }
    for (from, to) in [("TREE", "link"), ("TREE", "evil"), ("DIRC", "DIRX")] {
        let home = index("2", &["a/b"], false);
        let Some(_) = home.windows(4).position(|part| part == from.as_bytes()) else { continue };
        assert!(is_refused(&replaced(&home, from, to)), "{to}");
    }
}

/// Git uses a table at its fixed position, even within another extension.
#[test]
fn a_table_within_another_extension_is_found() {
    let mut whole = index("2", &["a/b"], false);
    whole.truncate(whole.len() - 20);
    let mut hidden = b"EOIE\0\0\0\x18\0\0\0\x0c".to_vec();
    hidden.extend([7; 20]);
    whole.extend(b"FSMN");
    whole.extend(u32::try_from(hidden.len()).unwrap().to_be_bytes());
    whole.extend(&hidden);
    whole.extend([0; 20]);
    assert!(is_refused(&whole));
}

#[test]
fn nothing_is_no_index() {
    assert_eq!(judged(b""), Judgement::Harmless);
    assert!(is_refused(b"DIRC") && is_refused(b"DIRC\0\0\0\x02\xff\xff\xff\xff") && is_refused(b"text"));
}

/// Creates an index of version 4 whose entries each share a prefix of the previous name and continue with this text.
fn forged(entries: &[(usize, &[u8])]) -> Vec<u8> {
    let mut index = b"DIRC\0\0\0\x04".to_vec();
    index.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
    let mut length = 0;
    for (kept, rest) in entries {
        // Git's number of variable width: how many bytes are removed from the end of the previous name.
        let mut dropped = length - kept;
        let mut width = vec![u8::try_from(dropped % 128).unwrap()];
        while dropped >= 128 {
            dropped = dropped / 128 - 1;
            width.insert(0, 128 | u8::try_from(dropped % 128).unwrap());
        }
        length = kept + rest.len();
        index.extend([0; 60]);
        index.extend(u16::try_from(length.min(0xfff)).unwrap().to_be_bytes());
        index.extend(width);
        index.extend(*rest);
        index.push(0);
    }
    index.extend([0; 20]);
    index
}

#[test]
fn names_that_share_a_beginning_are_looked_at_once() {
    assert_eq!(judged(&forged(&[(0, b"a/b"), (2, b"c"), (1, b"b/c"), (3, b"x/y")])), Judgement::Harmless);
    for odd in
        [&[(0, b"a/.gix".as_slice()), (5, b"t")], &[(0, b".x"), (1, b"./x")], &[(0, b"a/x"), (0, b"/x")]]
    {
        assert!(is_refused(&forged(odd)), "{odd:?}");
    }
    assert!(is_refused(&forged(&[(0, &[b'a'; 256])])), "no file system takes this name");
    // 8 GB would be copied and checked if every name were built from scratch.
    let (deep, rest) = (b"a/".repeat(2_000_000), [b"b/".repeat(2048), b"c".to_vec()].concat());
    let mut entries: Vec<(usize, &[u8])> = vec![(0, deep.as_slice())];
    entries.extend(std::iter::repeat_n((deep.len(), rest.as_slice()), 2_000));
    assert_eq!(judged(&forged(&entries)), Judgement::Harmless);
}

proptest! {
    #[test]
    fn no_text_is_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..400), version in 2_u8..5) {
        let mut index = b"DIRC\0\0\0".to_vec();
        index.extend([version, 0, 0, 0, 1]);
        index.extend(bytes);
        // It terminates, and does not panic.
        let _judgement = judged(&index);
    }
}
