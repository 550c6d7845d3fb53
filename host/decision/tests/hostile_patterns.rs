//! Random patterns: a text is refused or compiles, and never panics.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;

use portcullis_decision::pattern::{FilePattern, HostPattern, name_matches};
use proptest::prelude::*;

/// Pieces with and without a meaning in patterns.
fn text(most: usize) -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{", "}", "[", "]", ",", "*", "**", "**/", "?", "!", "^", "-", "\\", "/", ".", "..", "a", "ab", "é",
        "\u{202e}", "\0", "{a,b}", "[!a-z]", "[]-a]", "{,", "{{{{{{{{", "}}}}}}}}", "(?i)", "(", ")", "+",
        "|", "$", " ", "\n",
    ]);
    prop::collection::vec(piece, 0..most).prop_map(|pieces| pieces.concat())
}

/// The same piece repeated, which nests or repeats as deeply as a pattern may be long.
fn repeated() -> impl Strategy<Value = String> {
    (text(4), 1..400_usize, text(4)).prop_map(|(piece, times, rest)| {
        let mut all = piece.repeat(times);
        all.push_str(&rest);
        all
    })
}

fn try_out(text: &str) {
    for pattern in [FilePattern::glob(text), FilePattern::name("/p", text), FilePattern::tree(text)] {
        let Ok(pattern) = pattern else { continue };
        let matcher = pattern.matcher();
        for path in ["/", "/p", "/p/a", "/p/{a}", "/é/\u{202e}/b"] {
            let _whichever = matcher.matches(Path::new(path));
        }
        // A policy's pattern is compiled again in the broker.
        let sent = serde_json::to_string(&pattern).expect("a pattern is text");
        let received: FilePattern = serde_json::from_str(&sent).expect("what was accepted is accepted again");
        assert_eq!(received, pattern);
    }
    let _whichever = HostPattern::parse(text);
    let _whichever = name_matches(text, "CARGO_TARGET_DIR");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(text in text(60)) {
        try_out(&text);
    }

    #[test]
    fn no_repetition_panics(text in repeated()) {
        try_out(&text);
    }
}

#[test]
fn every_depth_of_braces_is_refused_or_compiles() {
    for depth in 0..=510 {
        try_out(&format!("{}a{}", "{".repeat(depth), "}".repeat(depth)));
        try_out(&format!("{}a,b{}", "{a,".repeat(depth), "}".repeat(depth)));
    }
}
