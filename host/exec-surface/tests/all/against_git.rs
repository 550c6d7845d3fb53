//! Compares the grammar with the real git: both parse the same.

use std::path::Path;

use portcullis_exec_surface::git::config_text::parse;
use proptest::prelude::*;

use crate::kit::{git, output};

/// Names and values.
type Listing = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// Returns what `git config --list` shows of a text; `None` if git refuses it.
fn read_by_git(home: &Path, text: &[u8]) -> Option<Listing> {
    let file = home.join("tried");
    std::fs::write(&file, text).unwrap();
    let shown = output(git(home).args(["config", "--list", "-z", "--file"]).arg(&file));
    if !shown.status.success() {
        return None;
    }
    let entries = shown.stdout.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    let split = |entry: &[u8]| match entry.iter().position(|byte| *byte == b'\n') {
        Some(end) => (entry[..end].to_vec(), Some(entry[end + 1..].to_vec())),
        None => (entry.to_vec(), None),
    };
    Some(entries.map(split).collect())
}

fn check(home: &Path, text: &[u8]) {
    let read = parse(text).ok();
    let ours =
        read.map(|entries| entries.into_iter().map(|entry| (entry.name, entry.value)).collect::<Vec<_>>());
    let shown = String::from_utf8_lossy(text);
    assert_eq!(ours, read_by_git(home, text), "{shown:?}");
}

#[test]
fn the_corpus_is_read_as_git_reads_it() {
    let home = tempfile::tempdir().unwrap();
    let corpus: &[&[u8]] = &[
        b"",
        b"\n\n",
        b"# only a comment",
        b"; x\n",
        b"[core]\n\tbare = false\n",
        b"[core] bare=true filemode\n",
        b"[core]bare",
        b"[core]\nbare\n",
        b"[core]\nbare =\n",
        b"[core]\nbare = \"\"\n",
        b"[CoRe]\nBaRe = TrUe\n",
        b"[remote \"Origin\"]\nURL = X\n",
        b"[remote.Origin]\nurl = x\n",
        b"[a.b.c]\nd = 1\n",
        b"[a.b \"c.D\"]\nd = 1\n",
        b"[.core]\nx = 1\n",
        b"[]\nx = 1\n",
        b"[ \"core\"]\nx = 1\n",
        b"[core ]\nx = 1\n",
        b"[core \"a\" ]\nx = 1\n",
        b"[core \t \r \"a\"]\nx = 1\n",
        b"[core\n\"a\"]\nx = 1\n",
        b"[core \"a\nb\"]\nx = 1\n",
        b"[core \"a\\\nb\"]\nx = 1\n",
        b"[core \"a\\\"b\\\\c\\d\"]\nx = 1\n",
        b"[core \"\"]\nx = 1\n",
        b"[core \"a]b\"]\nx = 1\n",
        b"[core \"a\"]b = 1\n",
        b"[core \"a\"x]\nb = 1\n",
        b"[core",
        b"[core \"a",
        b"[core_x]\na = 1\n",
        b"[core]\na_b = 1\n",
        b"[core]\n1a = 1\n",
        b"[core]\n-a = 1\n",
        b"[core]\na-1 = 1\n",
        b"[core]\na.b = 1\n",
        b"a = 1\n",
        b"a\n",
        b"[a]\nb = 1 ; c\n",
        b"[a]\nb = 1 # c\\\nc = 2\n",
        b"[a]\nb = \"1 ; c\" d\n",
        b"[a]\nb = 1 \\\n  2\n",
        b"[a]\nb = 1 \\\n\n",
        b"[a]\nb = 1\\\n\\\n\\\n2\n",
        b"[a]\nb = \\\n# c\nd = 1\n",
        b"[a]\nb = 1\\",
        b"[a]\nb = \\t\\n\\b\\\\\\\"x\n",
        b"[a]\nb = \\x\n",
        b"[a]\nb = \"x\n\"\n",
        b"[a]\nb = \"x\\\ny\"\n",
        b"[a]\nb = \"x",
        b"[a]\nb =  \t x \t y \t \n",
        b"[a]\nb = x \"\" \n",
        b"[a]\nb = \"x \" \n",
        b"[a]\nb = \" \" \" \" \n",
        b"[a]\r\nb = 1\r\n",
        b"[a]\rb = 1\r\r\nc = 2\r",
        b"[a]\nb = 1\rc = 2\n",
        b"[a]\nb\r= 1\n",
        b"[a]\nb = 1\\\r\n2\r\n",
        b"\xef\xbb\xbf[a]\nb = 1\n",
        b"\xef\xbb\xbf",
        b"\xef\xbb[a]\nb = 1\n",
        b"\xef\xbb",
        b"\n\xef\xbb\xbf[a]\nb = 1\n",
        b"[a]\nb = \xff\xfe\n[\xc3\xa4]\n",
        b"[a \"\xc3\xa4\xff\"]\nb = \xc3\xa4\n",
        b"[a]\x0bb = 1\n",
        b"[a]\nb = 1\x0c\n",
        b"[a]\nb == 1\n",
        b"[a]\n= 1\n",
        b"[a]\nb c = 1\n",
        b"[a]\nb # c\n",
        b"[a]\nb ; = 1\n",
        b"[a] # c\nb = 1\n",
        b"[a]; [b]\nb = 1\n",
        b"[a][b]c = 1\n",
        b"]\n",
        b"[a]]\n",
        b"[include]\npath = other\n[includeIf \"gitdir:/x/\"]\npath = y\n",
    ];
    for text in corpus {
        check(home.path(), text);
    }
}

#[test]
fn what_git_would_cut_short_is_refused() {
    assert!(parse(b"[a]\nb = 1\0evil\n").is_err());
    assert!(parse(b"[core \"x\0\"]\nb = 1\n").is_err());
    assert!(parse(&vec![b'\n'; (1 << 20) + 1]).is_err());
    assert!(parse(&vec![b'\n'; 1 << 20]).is_ok());
    assert_eq!(parse("a\n".repeat(100_000).as_bytes()).unwrap().len(), 100_000);
    assert!(parse("a\n".repeat(100_001).as_bytes()).is_err());
}

#[test]
fn lines_are_those_of_the_names() {
    let text = b"[a]\n\n# c\nb = 1 \\\n 2 \\\n 3\nc = 1\n[d] e = 1\nf\n";
    let lines: Vec<usize> = parse(text).unwrap().iter().map(|entry| entry.line).collect();
    assert_eq!(lines, [4, 7, 8, 9]);
    assert_eq!(parse(b"[a]\nb = 1\n  ?\n").unwrap_err().to_string(), "git cannot parse line 3");
    assert_eq!(parse(b"[a]\nb = \"1\n").unwrap_err().to_string(), "git cannot parse line 2");
}

/// Random texts of the pieces of configuration files.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "[", "]", "[core]", "[remote \"a\"]", "[a.b]", "\"", "\\", "\\\"", "\\n", "=", " = ", "\n", "\n\t",
            "\r\n", "\r", " ", "\t", "#", ";", ".", "-", "url", "Bare", "a", "0", "x y", "\\\n", "\u{feff}", "ä",
            "core.fsmonitor", "!", "_", "\u{b}",
        ])
        .prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::collection::vec(1_u8.., 1..3),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// As [`text`], but mostly without faults.
fn likely_text() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("[core]\n".to_owned()),
        "\\[[a-zA-Z.-]{0,6}( {1,2}\"([a-z\\]\\[#.]|\\\\[a-z\"\\\\]){0,6}\")?\\]\n?",
        "[ \t]{0,2}[a-zA-Z][a-zA-Z0-9-]{0,5}[ \t]{0,2}(=([ \ta-z;#!]|\\\\[nt\"\\\\\n]|\"[ a-z#;\\]]{0,4}\"){0,8})?(\r?\n)",
        "[ \t]{0,2}[#;][a-z\\\\\"=]{0,5}\n",
    ];
    prop::collection::vec(line, 0..8).prop_map(|lines| lines.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_texts_are_read_as_git_reads_them(text in prop_oneof![text(), likely_text(), likely_text()]) {
        let home = tempfile::tempdir().unwrap();
        check(home.path(), &text);
    }

    #[test]
    fn no_text_is_too_much(text in prop::collection::vec(any::<u8>(), 0..200)) {
        let _entries = parse(&text);
    }
}
