//! The trust files of the user and the machine, which say whose packs are accepted.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use portcullis_packs::{StoreError, TRUST_MAX, Trust, read_text};

use crate::teams;

/// Name of a trust file.
const TRUST: &str = "trust.toml";
/// The keys that may sign releases of this program, as an `allowed_signers` file.
const RELEASE_SIGNERS: &str = "release_signers";
/// The directory of the machine's settings.
const MACHINE: &str = "/etc/portcullis";

/// Returns the user's trust file.
pub fn user_file(agent_directory: &Path) -> PathBuf {
    agent_directory.join("sandbox").join(TRUST)
}

/// Returns the path of the user's file with the keys that may sign releases.
pub fn release_signers(agent_directory: &Path) -> PathBuf {
    agent_directory.join("sandbox").join(RELEASE_SIGNERS)
}

/// Returns the machine's trust file.
pub fn machine_file() -> PathBuf {
    Path::new(MACHINE).join(TRUST)
}

/// Returns the signers files that the trust files name.
///
/// A process that can write one of these decides whose packs are accepted. For an invalid trust file, returns those
/// before the mistake.
pub fn signers(agent_directory: &Path) -> Vec<PathBuf> {
    let mut named = Vec::new();
    for file in [user_file(agent_directory), machine_file()] {
        let Ok(text) = read_text(&file, TRUST_MAX) else { continue };
        let found = std::cell::RefCell::new(Vec::new());
        let note = |name: &str| {
            found.borrow_mut().push(file.with_file_name(name));
            Ok(String::new())
        };
        // Ignore errors: readers of the trust file report them.
        drop(Trust::parse(&text, &note));
        named.extend(found.into_inner());
    }
    named
}

/// Reads both files and the trust of the team's bundle: the machine's file overrides the bundle, which overrides the
/// user's file.
///
/// # Errors
/// When one of them exists but cannot be used.
pub fn read(agent_directory: &Path) -> anyhow::Result<Trust> {
    let user = read_file(&user_file(agent_directory))?;
    let machine = read_file(&machine_file())?;
    Ok(user.under(teams::trust(agent_directory)?).under(machine))
}

/// Reads one file; a missing file trusts no publisher.
pub fn read_file(file: &Path) -> anyhow::Result<Trust> {
    let text = match read_text(file, TRUST_MAX) {
        Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => String::new(),
        text => text.with_context(|| format!("reading `{}`", file.display()))?,
    };
    parse(file, &text)
}

/// Parses the text of a trust file. Files that it names lie beside it.
pub fn parse(file: &Path, text: &str) -> anyhow::Result<Trust> {
    let signers = |name: &str| {
        let path = file.parent().unwrap_or_else(|| Path::new("/")).join(name);
        read_text(&path, TRUST_MAX).map_err(std::io::Error::other)
    };
    Trust::parse(text, &signers)
        .with_context(|| format!("the trust file `{}` cannot be used", file.display()))
}
