//! The content of every package, whatever its format.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::compile::{self, Profile};
use super::pack::{File, gzip};
use super::target::{MAIN_PROGRAM, PROGRAMS, Target};
use super::{licences, linked, macho, sbom, sums, tools};
use crate::project;
use crate::run::quiet;

/// The profile of AppArmor, with a place for the paths of the program.
const APPARMOR: &str = include_str!("apparmor");
/// Shells with completions, and the file in which each looks for them, below `share`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/portcullis"),
    ("zsh", "zsh/site-functions/_portcullis"),
    ("fish", "fish/vendor_completions.d/portcullis.fish"),
];

/// The parts of a package for one target.
#[derive(Debug)]
pub(super) struct Content {
    /// The programs, below `bin`.
    pub(super) programs: Vec<File>,
    /// Completions and manual pages, below `share`.
    pub(super) share: Vec<File>,
    /// The licence texts and the SBOM, by file name.
    pub(super) documents: Vec<File>,
    /// The SBOM: the linked crates, as CycloneDX.
    pub(super) sbom: Vec<u8>,
}

impl Content {
    /// Collects the built programs of a target, with completions, manual pages and licences.
    pub(super) fn collect(target: Target, profile: Profile, build_directory: &Path) -> Result<Self> {
        let built = compile::directory(target, profile, build_directory);
        let mut programs = Vec::new();
        let mut program_sums = BTreeMap::new();
        for (name, _) in PROGRAMS {
            let file = built.join(name);
            let bytes = fs::read(&file).with_context(|| format!("reading `{}`", file.display()))?;
            if target.is_macos() {
                macho::check(&bytes, target).with_context(|| format!("checking `{}`", file.display()))?;
            }
            program_sums.insert(name, sums::sum(&bytes));
            programs.push(File::program(format!("bin/{name}"), bytes));
        }
        let crates = linked::crates(target)?;
        let sbom = sbom::of(&crates, &program_sums)?;
        let mut documents = vec![
            File::text("THIRD-PARTY-LICENSES", licences::texts(&crates)?),
            File::text("sbom.cdx.json", sbom.clone()),
        ];
        for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let text = fs::read(project::root().join(name)).with_context(|| format!("reading `{name}`"))?;
            documents.push(File::text(name, text));
        }
        // No emulator runs a program for macOS. Pages and completions are the same everywhere.
        let writer = if target.is_macos() { Target::of_this_machine()? } else { target };
        let writing = compile::directory(writer, profile, build_directory).join(MAIN_PROGRAM);
        Ok(Self { programs, share: share(writer, &writing)?, documents, sbom })
    }
}

/// Returns the profile of AppArmor for programs at one of these paths, which are given without the first slash.
pub(super) fn apparmor(paths: &[&str]) -> String {
    let path = match paths {
        [only] => (*only).to_owned(),
        several => format!("{{{}}}", several.join(",")),
    };
    APPARMOR.replace("@PATH@", &format!("/{path}"))
}

/// Returns completions and manual pages, which the program writes.
fn share(target: Target, program: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    for (shell, path) in COMPLETIONS {
        let script = quiet(tools::runner(target, program)?.args(["completions", shell]))
            .with_context(|| format!("writing the completions of {shell}"))?;
        files.push(File::text(format!("share/{path}"), script));
    }
    let pages = program.with_extension("manual");
    if pages.exists() {
        fs::remove_dir_all(&pages).context("removing old manual pages")?;
    }
    fs::create_dir(&pages).context("making a directory for manual pages")?;
    quiet(tools::runner(target, program)?.arg("manual").arg(&pages)).context("writing manual pages")?;
    for entry in fs::read_dir(&pages)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push(File::text(format!("share/man/man1/{name}.gz"), gzip(&fs::read(&path)?)?));
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_names_the_program() {
        let profile = apparmor(&["usr/bin/portcullis"]);
        assert!(profile.contains("profile portcullis /usr/bin/portcullis flags=(unconfined)"), "{profile}");
        let several = apparmor(&["a", "b"]);
        assert!(several.contains("profile portcullis /{a,b} flags"), "{several}");
    }
}
