//! Patterns on names that were chosen to confuse them: rows 24 and 26 of the attacks.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use portcullis_decision::path_text;
use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::{FileRight, FileRights, FileRule, Profile};
use portcullis_decision::{Base, Caller, Effect, RuleLayer, RuleSet};
use proptest::prelude::*;

/// Pieces of names with a meaning to globs, shells, terminals, Unicode or JSON.
const PIECES: [&[u8]; 34] = [
    b"[x]",
    b"[!x]",
    b"[]",
    b"[",
    b"]",
    b"a*b",
    b"*",
    b"**",
    b"?",
    b"{a,b}",
    b"{",
    b"}",
    b"!",
    b"\\",
    b"\\*",
    b"#",
    b"~",
    b"$HOME",
    b" ",
    b"\n",
    b"\t",
    b"\"",
    b"\xff",
    b"\xc3",
    b"\x1b[2J",
    "é".as_bytes(),
    "e\u{301}".as_bytes(),
    "．．".as_bytes(),
    "․․".as_bytes(),
    "\u{202e}".as_bytes(),
    "\u{200b}".as_bytes(),
    "∕".as_bytes(),
    b"...",
    b"x",
];

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

fn hostile() -> impl Strategy<Value = PathBuf> {
    let name =
        prop::collection::vec(prop::sample::select(PIECES.to_vec()), 1..4).prop_map(|pieces| pieces.concat());
    prop::collection::vec(name, 1..4)
        .prop_map(|names| path(&[b"/", names.join(&b'/').as_slice()].concat()))
        .prop_filter("`..` is no name", |path| path_text::normalize(path) == *path)
}

/// Returns the answer of a single rule for writing `path`.
fn ruled(pattern: FilePattern, path: &Path) -> Effect {
    let rule = FileRule {
        id: "r".to_owned(),
        pattern,
        rights: FileRights::ALL,
        effect: Effect::Deny,
        conceal: true,
        condition: String::new(),
        reason: String::new(),
        setting: String::new(),
    };
    let profile = Profile { files: vec![rule], ..Profile::default() };
    let layer = RuleLayer { name: "settings".to_owned(), profile, tightens: false };
    let base = Base {
        workspace: vec![PathBuf::from("/")],
        temp: PathBuf::from("/tmp"),
        closed: vec![],
        ..Base::default()
    };
    RuleSet::compile(vec![layer], base, &[]).file(path, FileRight::Write, Caller::Tool).effect
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn literal_patterns_are_taken_literally(one in hostile(), other in hostile()) {
        let covers = |pattern: FilePattern, path: &Path| ruled(pattern, path) == Effect::Deny;
        prop_assert!(covers(FilePattern::Exact(one.clone()), &one));
        prop_assert!(covers(FilePattern::Tree(one.clone()), &one.join("below")));
        prop_assert_eq!(covers(FilePattern::Exact(one.clone()), &other), one == other);
        prop_assert_eq!(covers(FilePattern::Tree(one.clone()), &other), other.starts_with(&one));
    }

    #[test]
    fn contract_text_says_which_file_is_meant(one in hostile()) {
        let text = path_text::encode(&one);
        prop_assert_eq!(path_text::decode(&text), Some(one.clone()));
        prop_assert_eq!(FilePattern::exact(&text).unwrap(), FilePattern::Exact(one));
    }

    #[test]
    fn a_star_spans_whatever_is_in_a_name(one in hostile()) {
        let mut name = one.into_os_string();
        name.push(".pem");
        let path = PathBuf::from(name);
        prop_assert_eq!(ruled(FilePattern::glob("*.pem").unwrap(), &path), Effect::Deny);
        prop_assert_eq!(ruled(FilePattern::glob("/**/*.pem").unwrap(), &path), Effect::Deny);
        prop_assert_eq!(ruled(FilePattern::name("/", "*.pem").unwrap(), &path), Effect::Deny);
        prop_assert_eq!(ruled(FilePattern::glob("*.pem").unwrap(), &path.join("below")), Effect::Deny);
    }
}

#[test]
fn what_only_looks_the_same_is_another_file() {
    for (denied, looks_like_it) in [
        ("/w/caf\u{e9}", "/w/cafe\u{301}"),
        ("/w/.env", "/w/\u{ff0e}env"),
        ("/w/key", "/w/k\u{435}y"),
        ("/w/key", "/w/key\u{200b}"),
        ("/w/txt.exe", "/w/\u{202e}exe.txt"),
    ] {
        let tree = || FilePattern::Tree(PathBuf::from(denied));
        assert_eq!(ruled(tree(), Path::new(denied)), Effect::Deny);
        assert_eq!(ruled(tree(), Path::new(looks_like_it)), Effect::Allow, "{looks_like_it:?}");
    }
}

#[test]
fn dots_of_other_scripts_climb_nowhere() {
    for dots in ["\u{ff0e}\u{ff0e}", "\u{2024}\u{2024}", "\u{2025}", ". .", "..\u{200b}", "\u{b7}\u{b7}"] {
        let inside = PathBuf::from(format!("/w/{dots}/etc/passwd"));
        assert_eq!(path_text::normalize(&inside), inside);
        assert_eq!(ruled(FilePattern::Tree(PathBuf::from("/w")), &inside), Effect::Deny, "{dots:?}");
        assert_eq!(ruled(FilePattern::Tree(PathBuf::from("/etc")), &inside), Effect::Allow, "{dots:?}");
    }
}

#[test]
fn a_name_with_glob_characters_is_denied_by_its_own_name() {
    for name in ["[x].env", "a*b", "a?b", "{a,b}", "!a", "a\\b", "**", "[!a]", "\\[x]"] {
        let own = Path::new("/w").join(name);
        assert_eq!(ruled(FilePattern::Exact(own.clone()), &own), Effect::Deny, "{name}");
        for other in ["x.env", "aXb", "a", "b", "ab", "[x]"] {
            let other = Path::new("/w").join(other);
            assert_eq!(ruled(FilePattern::Exact(own.clone()), &other), Effect::Allow, "{name} on {other:?}");
        }
        // As a glob each character needs a backslash.
        let escaped: String = name.chars().flat_map(|letter| ['\\', letter]).collect();
        assert_eq!(ruled(FilePattern::glob(&format!("/w/{escaped}")).unwrap(), &own), Effect::Deny, "{name}");
    }
}
