//! Writes the table of characters whose skeleton is ASCII.
//!
//! The table of `unicode-security` holds a pointer for each of its 6,300 characters, and the loader would write all of
//! them at each start of the program. Numbers need no loading.

#![expect(clippy::expect_used, reason = "a build script stops the build")]

use std::fmt::Write as _;
use std::path::PathBuf;

use unicode_security::confusable_detection::skeleton;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let mut table =
        String::from("/// First and last character of each range.\nconst LOOKS_ASCII: &[(u32, u32)] = &[\n");
    for (first, last) in ranges() {
        writeln!(table, "    ({first:#x}, {last:#x}),").expect("a string");
    }
    table.push_str("];\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names the output directory"));
    std::fs::write(out.join("looks_ascii.rs"), table).expect("the output directory can be written");
}

fn ranges() -> Vec<(u32, u32)> {
    let looks_ascii =
        |character: &char| skeleton(character.encode_utf8(&mut [0; 4])).all(|part| part.is_ascii());
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in ('\0'..=char::MAX).filter(looks_ascii).map(u32::from) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}
