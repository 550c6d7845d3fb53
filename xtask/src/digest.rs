//! The digest in a shipped component, which identifies the sources that it was built from.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use wasm_encoder::{CustomSection, Encode, Section};
use wasmparser::{Parser, Payload};

const SECTION: &str = "portcullis:source-digest";
/// Directories that do not affect the component: `0.2` is the contract after the one of the shipped policies.
/// Components and text files are ignored as well.
const NOT_COMPILED: [&str; 3] = ["tests", "target", "0.2"];

/// Returns the digest of all files below `folders` and of `facts`, in hexadecimal.
///
/// File names are relative to `root`, so the digest is the same in every clone.
pub(crate) fn of_sources(root: &Path, folders: &[&str], facts: &str) -> Result<String> {
    let mut files = Vec::new();
    for folder in folders {
        list(&root.join(folder), &mut files)?;
    }
    files.sort();
    let mut hasher = Sha256::new();
    for file in files {
        let text = fs::read(&file).with_context(|| format!("reading `{}`", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        // The length separates the end of one file from the start of the next.
        hasher.update(format!("{name}\n{}\n", text.len()));
        hasher.update(text);
    }
    hasher.update(facts);
    Ok(hasher.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _infallible = write!(text, "{byte:02x}");
        text
    }))
}

/// Returns the component with the digest added.
pub(crate) fn mark(mut component: Vec<u8>, digest: &str) -> Vec<u8> {
    let section = CustomSection { name: SECTION.into(), data: digest.as_bytes().into() };
    component.push(Section::id(&section));
    section.encode(&mut component);
    component
}

/// Returns the digest in a component, if it has one.
pub(crate) fn read(component: &[u8]) -> Result<Option<String>> {
    // Ignore the sections of modules inside the component.
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload.context("reading the component")?;
        if matches!(payload, Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) {
            depth += 1;
        } else if matches!(payload, Payload::End(_)) {
            depth = depth.saturating_sub(1);
        } else if let Payload::CustomSection(section) = payload
            && depth == 0
            && section.name() == SECTION
        {
            return Ok(Some(String::from_utf8_lossy(section.data()).into_owned()));
        }
    }
    Ok(None)
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("listing `{}`", folder.display()))? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            let path = entry.path();
            if !path.extension().is_some_and(|ending| ending == "wasm" || ending == "md") {
                files.push(path);
            }
        } else if !NOT_COMPILED.iter().any(|name| entry.file_name() == *name) {
            list(&entry.path(), files)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_gives_back_its_mark() {
        let empty = wasm_encoder::Component::new().finish();
        assert_eq!(read(&empty).unwrap(), None);
        assert_eq!(read(&mark(empty, "abc")).unwrap().as_deref(), Some("abc"));
    }

    #[test]
    fn a_mark_inside_an_inner_module_does_not_count() {
        let mut inner = wasm_encoder::Module::new();
        inner.section(&CustomSection { name: SECTION.into(), data: b"abc".as_slice().into() });
        let mut outer = wasm_encoder::Component::new();
        outer.section(&wasm_encoder::ModuleSection(&inner));
        assert_eq!(read(&outer.finish()).unwrap(), None);
    }

    #[test]
    fn every_change_of_name_content_or_facts_changes_the_digest() {
        let root = std::env::temp_dir().join(format!("xtask-digest-{}", std::process::id()));
        let of = |facts| of_sources(&root, &["a"], facts).unwrap();
        fs::create_dir_all(root.join("a/tests")).unwrap();
        fs::write(root.join("a/one"), "x").unwrap();
        let first = of("");
        assert_ne!(first, of("facts"));
        fs::write(root.join("a/tests/case"), "not compiled").unwrap();
        assert_eq!(first, of(""));
        fs::rename(root.join("a/one"), root.join("a/two")).unwrap();
        let renamed = of("");
        fs::write(root.join("a/two"), "y").unwrap();
        let changed = of("");
        fs::remove_dir_all(&root).unwrap();
        assert!(first != renamed && renamed != changed);
    }
}
