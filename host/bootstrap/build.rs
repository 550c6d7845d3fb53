//! Embeds the machine code of the shipped policies, those that run texts, and the program that git uses as `ssh` inside.

#![expect(clippy::expect_used, reason = "a build script stops the build")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names the output directory"));
    machine_code(&out);
    ["cedar", "rego"].into_iter().for_each(|name| compressed(&out, name));
    git_client(&out);
}

/// Builds the program from its one crate without dependencies. Cargo cannot embed one program in another.
fn git_client(out: &Path) {
    let sources = "../git-client/src";
    println!("cargo::rerun-if-changed={sources}");
    let built = out.join("git-client");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    if variable("CARGO_CFG_TARGET_OS") != "linux" {
        return std::fs::write(&built, []).expect("the output directory can be written");
    }
    let mut rustc = Command::new(std::env::var_os("RUSTC").expect("cargo names the compiler"));
    rustc.arg(format!("{sources}/main.rs")).arg("-o").arg(&built);
    rustc.args([
        "--edition",
        "2024",
        "--crate-name",
        "portcullis_git_client",
        "--target",
        &variable("TARGET"),
    ]);
    rustc.args(["-Copt-level=s", "-Cpanic=abort", "-Cstrip=symbols", "-Ccodegen-units=1"]);
    let linker = variable("RUSTC_LINKER");
    if !linker.is_empty() {
        rustc.arg(format!("-Clinker={linker}"));
    }
    rustc.args(variable("CARGO_ENCODED_RUSTFLAGS").split('\x1f').filter(|flag| !flag.is_empty()));
    assert!(rustc.status().expect("the compiler can be started").success(), "building the client of git");
}

/// Compresses a policy that runs texts: it is several times larger than the others, and few users need it.
fn compressed(out: &Path, name: &str) {
    let component = format!("../../policies/{name}/policy.wasm");
    println!("cargo::rerun-if-changed={component}");
    let component = std::fs::read(component).expect("the component is in the tree");
    let mut deflated = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    deflated.write_all(&component).expect("memory can be written");
    let deflated = deflated.finish().expect("memory can be written");
    std::fs::write(out.join(name).with_extension("deflate"), deflated)
        .expect("the output directory can be written");
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
