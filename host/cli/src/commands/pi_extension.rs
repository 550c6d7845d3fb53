//! The extension that this program carries, and where it is put.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::args::PiExtension;
use crate::exit::Exit;
use crate::page::Page;
use crate::surroundings::{Surroundings, random_name};

/// A file of the extension: its path below the extension's directory, and its text.
type Embedded = (&'static str, &'static str);

include!(concat!(env!("OUT_DIR"), "/extension.rs"));

/// In every directory that this program made, and in no other.
const MARK: &str = ".portcullis";
/// Says which program the extension starts when nothing else says so.
const HOST_FILE: &str = "host.json";

/// Installs, removes or names the extension.
pub(crate) fn run(action: &PiExtension) -> crate::Outcome {
    let around = Surroundings::read()?;
    let place = around.agent_directory.join("extensions/portcullis");
    let done = match action {
        PiExtension::Path => place.display().to_string(),
        PiExtension::Install => {
            let program = around.executable.to_str().with_context(|| {
                format!(
                    "`{}` is not text, so pi cannot be told of it; move the program",
                    around.executable.display()
                )
            })?;
            put(&place)?;
            let host = serde_json::json!({ "host": program });
            fs::write(place.join(HOST_FILE), format!("{host}\n"))
                .with_context(|| format!("writing `{}`", place.join(HOST_FILE).display()))?;
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

/// Puts the extension below `data`, under a name for this very version of it, and returns its directory.
pub(crate) fn unpack(data: &Path) -> anyhow::Result<PathBuf> {
    let place = data.join("extension").join(EXTENSION_DIGEST);
    // Others may be starting from it at this moment.
    if !is_whole(&place) {
        put(&place)?;
    }
    Ok(place)
}

/// Writes the extension to `place`, replacing what an earlier version of this program put there.
fn put(place: &Path) -> anyhow::Result<()> {
    let parent = place.parent().context("the extension needs a directory to lie in")?;
    fs::create_dir_all(parent).with_context(|| format!("making `{}`", parent.display()))?;
    // pi takes every directory here for an extension, so the half-written one is hidden from it.
    let fresh = parent.join(format!(".portcullis-{}", random_name()?));
    let written = write(&fresh).and_then(|()| replace(&fresh, place));
    if written.is_err() {
        // What is left of it is hidden and harmless.
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

/// Whether a directory holds just this version of the extension.
fn is_whole(place: &Path) -> bool {
    EXTENSION
        .iter()
        .all(|(name, text)| fs::read(place.join(name)).is_ok_and(|there| there == text.as_bytes()))
}

/// Puts `fresh` in the place of what is there, in one step where something is: pi must not start in between.
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

/// Removes a directory that this program made; anything else is left alone.
fn remove(place: &Path) -> anyhow::Result<()> {
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
