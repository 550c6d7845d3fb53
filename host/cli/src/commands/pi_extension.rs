//! Installs the pi extension that is embedded in this program.

mod hosts;

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context as _, bail};
use portcullis_bootstrap::process_env::{ProcessEnv, random_name};
use portcullis_bootstrap::streams::say;
use portcullis_command_line::args::PiExtension;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::Page;
use serde::Serialize;
use serde_json::Value;

/// A file of the extension: its path in the extension's directory, and its text.
type Embedded = (&'static str, &'static str);

include!(concat!(env!("OUT_DIR"), "/extension.rs"));

/// File that marks the directories created by this program.
const MARK: &str = ".portcullis";

/// Runs the subcommand: installs, removes or locates the extension.
pub(crate) fn run(action: &PiExtension) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    let place = place(&around);
    let done = match action {
        PiExtension::Path => place.display().to_string(),
        PiExtension::Install => {
            install(&around)?;
            for old in super::migrate::extensions::find(&around.agent_directory, &around.cwd) {
                say(&format!("portcullis: {}", old.warning()));
            }
            format!("installed in {}; plain `pi` has it from its next start", place.display())
        }
        PiExtension::Remove => {
            if place.exists() {
                remove(&place)?;
                format!("removed {}", place.display())
            } else {
                format!("nothing is installed in {}", place.display())
            }
        }
    };
    let mut page = Page::new(&around);
    page.line(&done);
    page.print()?;
    Ok(Exit::Done)
}

/// Installs the extension for plain `pi`, to start this program by default.
pub(crate) fn install(around: &ProcessEnv) -> anyhow::Result<()> {
    let place = place(around);
    let program = around.executable.to_str().with_context(|| {
        format!("`{}` is not text, so pi cannot be told of it; move the program", around.executable.display())
    })?;
    put(&place)?;
    hosts::record(&around.state, &place, program)
}

/// The extension as it is installed for plain `pi`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Installed {
    /// Its directory.
    pub(crate) place: PathBuf,
    /// Its version, as its own `package.json` names it.
    pub(crate) version: Option<String>,
    /// Whether it is the extension of this program.
    pub(crate) is_current: bool,
    /// The program that it starts.
    pub(crate) host: Option<PathBuf>,
}

/// Returns the directory of the installed extension.
pub(crate) fn place(around: &ProcessEnv) -> PathBuf {
    around.agent_directory.join("extensions/portcullis")
}

/// Returns the installed extension, or `None` if there is none.
pub(crate) fn installed(around: &ProcessEnv) -> Option<Installed> {
    let place = place(around);
    let text = |file: &str, key: &str| -> Option<String> {
        let value: Value = serde_json::from_slice(&fs::read(place.join(file)).ok()?).ok()?;
        value.get(key)?.as_str().map(str::to_owned)
    };
    place.symlink_metadata().is_ok().then(|| Installed {
        version: text("package.json", "version"),
        is_current: is_whole(&place),
        host: hosts::recorded(&around.state, &place),
        place: place.clone(),
    })
}

/// Unpacks the extension below `data`, in a directory for this exact version, and returns the directory.
pub(crate) fn unpack(data: &Path) -> anyhow::Result<PathBuf> {
    let place = data.join("extension").join(EXTENSION_DIGEST);
    // Do not replace it needlessly: another process may be starting from it.
    if !is_whole(&place) {
        put(&place)?;
    }
    Ok(place)
}

/// Writes the extension to `place`. Replaces an earlier version from this program.
fn put(place: &Path) -> anyhow::Result<()> {
    let parent = place.parent().context("the extension needs a directory to lie in")?;
    fs::create_dir_all(parent).with_context(|| format!("making `{}`", parent.display()))?;
    // Use a hidden name: pi takes every directory here for an extension, even an incomplete one.
    let fresh = parent.join(format!(".portcullis-{}", random_name()?));
    let written = write(&fresh).and_then(|()| replace(&fresh, place));
    if written.is_err() {
        // Remaining files are hidden and harmless.
        let _leftover = fs::remove_dir_all(&fresh);
    }
    written
}

fn write(directory: &Path) -> anyhow::Result<()> {
    for (name, text) in EXTENSION {
        let file = directory.join(name);
        let above = file.parent().unwrap_or(directory);
        fs::create_dir_all(above).with_context(|| format!("making `{}`", above.display()))?;
        fs::write(&file, text).with_context(|| format!("writing `{}`", file.display()))?;
    }
    fs::write(directory.join(MARK), EXTENSION_DIGEST)
        .with_context(|| format!("writing `{}`", directory.join(MARK).display()))
}

/// Returns true if a directory holds exactly this version of the extension.
fn is_whole(place: &Path) -> bool {
    EXTENSION
        .iter()
        .all(|(name, text)| fs::read(place.join(name)).is_ok_and(|there| there == text.as_bytes()))
}

/// Moves `fresh` to `place`. An existing directory is replaced atomically, because pi can start at any time.
fn replace(fresh: &Path, place: &Path) -> anyhow::Result<()> {
    let context = || format!("moving the extension to `{}`", place.display());
    if place.symlink_metadata().is_err() {
        return fs::rename(fresh, place).with_context(context);
    }
    check_ours(place)?;
    exchange(fresh, place).with_context(context)?;
    fs::remove_dir_all(fresh)
        .with_context(|| format!("removing the old extension, now `{}`", fresh.display()))
}

#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    let aside = one.with_extension("old");
    fs::rename(other, &aside)?;
    fs::rename(one, other)?;
    fs::rename(aside, one)
}

/// Removes a directory that this program created; refuses any other.
pub(crate) fn remove(place: &Path) -> anyhow::Result<()> {
    check_ours(place)?;
    fs::remove_dir_all(place).with_context(|| format!("removing `{}`", place.display()))
}

fn check_ours(place: &Path) -> anyhow::Result<()> {
    let ours = place.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) && place.join(MARK).is_file();
    if !ours {
        bail!("`{}` was not put there by portcullis; move it away first", place.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn put_twice_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("extensions/portcullis");
        put(&place).unwrap();
        fs::write(place.join("old.ts"), "left over").unwrap();
        put(&place).unwrap();
        assert!(place.join("src/index.ts").is_file());
        assert!(!place.join("old.ts").exists());
        remove(&place).unwrap();
        assert_eq!(fs::read_dir(directory.path().join("extensions")).unwrap().count(), 0);
    }

    #[test]
    fn what_is_not_ours_stays() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("portcullis");
        fs::create_dir(&place).unwrap();
        fs::write(place.join("index.ts"), "mine").unwrap();
        assert!(put(&place).is_err());
        assert_eq!(fs::read_to_string(place.join("index.ts")).unwrap(), "mine");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
