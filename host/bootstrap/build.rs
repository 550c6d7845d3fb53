//! Embeds the machine code of the shipped policies.

#![expect(clippy::expect_used, reason = "a build script stops the build")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names the output directory"));
    machine_code(&out);
}

/// Writes the table of machine code from the files that `cargo xtask` puts beside the programs of this profile.
///
/// Without such files the table is empty, and the program compiles a shipped policy when it first needs it.
fn machine_code(out: &Path) {
    // OUT_DIR is PROFILE/build/PACKAGE-HASH/out.
    let profile = out.ancestors().nth(3).expect("cargo's output directory lies in the profile's");
    let directory = profile.join("precompiled");
    std::fs::create_dir_all(&directory).expect("the output directory can be written");
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "cwasm"));
    files.sort();
    let mut table =
        String::from("/// The machine code of shipped policies.\nconst MACHINE_CODE: &[Embedded] = &[\n");
    for file in &files {
        let digest = file.file_stem().and_then(|stem| stem.to_str()).expect("a digest is text");
        let path = file.display().to_string();
        writeln!(table, "    Embedded::in_this_program({digest:?}, include_bytes!({path:?})),")
            .expect("a string");
    }
    table.push_str("];\n");
    std::fs::write(out.join("machine_code.rs"), table).expect("the output directory can be written");
}
