//! Embeds the pi extension, which the program can install by itself.

#![expect(clippy::expect_used, reason = "a build script stops the build")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names the output directory"));
    extension(&out);
}

fn extension(out: &Path) {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the package");
    let root = Path::new(&here).join("../../pi");
    println!("cargo::rerun-if-changed={}", root.join("src").display());
    println!("cargo::rerun-if-changed={}", root.join("package.json").display());
    println!("cargo::rerun-if-changed={}", root.join("README.md").display());
    let mut files: Vec<PathBuf> = vec![root.join("package.json"), root.join("README.md")];
    let source = std::fs::read_dir(root.join("src")).expect("the extension's sources lie in pi/src");
    files.extend(source.flatten().map(|entry| entry.path()));
    files.sort();

    let mut table = String::from("/// The files of the extension.\nconst EXTENSION: &[Embedded] = &[\n");
    let mut digest = Sha256::new();
    for file in &files {
        let name = file.strip_prefix(&root).expect("every file lies in pi/").display().to_string();
        digest.update(name.as_bytes());
        digest.update(std::fs::read(file).expect("every file of the extension can be read"));
        let path = file.canonicalize().expect("every file of the extension exists");
        writeln!(table, "    ({name:?}, include_str!({:?})),", path.display().to_string()).expect("a string");
    }
    table.push_str("];\n");
    let digest: String = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    writeln!(table, "/// Names this version of the extension.\nconst EXTENSION_DIGEST: &str = {digest:?};")
        .expect("a string");
    std::fs::write(out.join("extension.rs"), table).expect("the output directory can be written");
}
