//! The npm packages: the extension for pi, and one with the programs for each processor, as esbuild and biome have it.

use std::fs;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::content::Content;
use super::pack::{Directories, File, tar_gz};
use super::target::{MAIN_PROGRAM, Target};
use crate::project;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const SCOPE: &str = "@portcullis";
/// Every archive of npm's has this directory.
const PREFIX: &str = "package/";

/// Returns the file name that `npm pack` would give.
fn file_name(package: &str) -> String {
    format!("portcullis-{package}-{VERSION}.tgz")
}

pub(super) fn extension_name() -> String {
    file_name("pi")
}

pub(super) fn program_name(target: Target) -> String {
    file_name(&package(target))
}

/// Returns the name of the package with the programs, without its scope.
pub(super) fn package(target: Target) -> String {
    format!("{}-{}", target.npm_system(), target.npm())
}

/// Returns the package with the programs for a target. npm installs it on no other system.
pub(super) fn program(target: Target, content: &Content) -> Result<Vec<u8>> {
    let mut files = content.programs.clone();
    files.extend(content.documents.iter().cloned());
    files.push(File::text("package.json", pretty(&manifest(target))?));
    let readme = format!("{}\n\nInstall `{SCOPE}/pi`, which needs this package.\n", description(target));
    files.push(File::text("README.md", readme));
    tar_gz(&files, Directories::Implied, PREFIX)
}

fn description(target: Target) -> String {
    let programs = format!("The programs of Portcullis for {} on {}.", target.system(), target.npm());
    if target.is_macos() { format!("{programs} Experimental: not run by its makers.") } else { programs }
}

fn manifest(target: Target) -> Value {
    json!({
        "name": format!("{SCOPE}/{}", package(target)),
        "version": VERSION,
        "description": description(target),
        "license": "MIT OR Apache-2.0",
        "os": [target.npm_system()],
        "cpu": [target.npm()],
        "bin": { MAIN_PROGRAM: format!("bin/{MAIN_PROGRAM}") },
        // A package manager that keeps packages packed has to unpack a program.
        "preferUnplugged": true,
    })
}

/// Returns the package of the extension, with the files that its manifest names.
pub(super) fn extension() -> Result<Vec<u8>> {
    let root = project::root().join("pi");
    let read = |name: &str| fs::read(root.join(name)).with_context(|| format!("reading `pi/{name}`"));
    let manifest: Value =
        serde_json::from_slice(&read("package.json")?).context("reading pi/package.json")?;
    check(&manifest)?;
    let mut files =
        vec![File::text("package.json", pretty(&manifest)?), File::text("README.md", read("README.md")?)];
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        files.push(File::text(name, fs::read(project::root().join(name))?));
    }
    for entry in fs::read_dir(root.join("src")).context("listing the extension's sources")? {
        let name = format!("src/{}", entry?.file_name().to_string_lossy());
        let text = read(&name)?;
        files.push(File::text(name, text));
    }
    tar_gz(&files, Directories::Implied, PREFIX)
}

/// Checks that the extension wants the programs of this very version, for every processor.
fn check(manifest: &Value) -> Result<()> {
    let wanted = manifest.get("optionalDependencies").and_then(Value::as_object);
    let wanted = wanted.context("pi/package.json has no optionalDependencies")?;
    let all = Target::ALL.map(|target| format!("{SCOPE}/{}", package(target)));
    let is_right = |name: &String| wanted.get(name).and_then(Value::as_str) == Some(VERSION);
    if wanted.len() != all.len() || !all.iter().all(is_right) {
        bail!("optionalDependencies of pi/package.json must be version {VERSION} of {}", all.join(", "));
    }
    if manifest.get("version").and_then(Value::as_str) != Some(VERSION) {
        bail!("the version of pi/package.json must be {VERSION}");
    }
    Ok(())
}

fn pretty(value: &Value) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value).context("writing a manifest")?;
    text.push(b'\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_wants_its_own_programs() {
        let own = fs::read(project::root().join("pi/package.json")).unwrap();
        let own: Value = serde_json::from_slice(&own).unwrap();
        check(&own).unwrap();
        let mut other = own.clone();
        other["optionalDependencies"]["@portcullis/linux-x64"] = json!("0.0.1");
        assert!(check(&other).is_err());
        other = own;
        other["version"] = json!("9.9.9");
        assert!(check(&other).is_err());
    }

    #[test]
    fn a_package_of_programs_is_for_one_system() {
        let manifest = manifest(Target::Aarch64);
        assert_eq!(manifest["name"], "@portcullis/linux-arm64");
        assert_eq!((&manifest["os"][0], &manifest["cpu"][0]), (&json!("linux"), &json!("arm64")));
        let manifest = super::manifest(Target::MacosX86_64);
        assert_eq!(manifest["name"], "@portcullis/darwin-x64");
        assert_eq!((&manifest["os"][0], &manifest["cpu"][0]), (&json!("darwin"), &json!("x64")));
        assert!(manifest["description"].as_str().unwrap().contains("xperimental: not run by its makers"));
    }
}
