//! Where a private home lies, and the locks in it.

use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};

/// The directory of all private homes in the state directory.
pub(super) const HOMES: &str = "homes";
/// The directory in one that commands see as the home.
pub(super) const HOME: &str = "home";
/// The file with the path of the project.
pub(super) const PROJECT: &str = "project";

/// Returns the directory of a project's private home.
pub(super) fn place(state: &Path, project: &Path) -> PathBuf {
    state.join(HOMES).join(name_of(project))
}

/// Returns the name of a project's directory in the state directory.
pub(crate) fn name_of(project: &Path) -> String {
    let digest = Sha256::digest(project.as_os_str().as_bytes());
    let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let name = project.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().filter(|letter| letter.is_ascii_alphanumeric()).take(24).collect();
    format!("{name}-{digest}")
}

/// Opens a file to be locked.
pub(crate) fn lock(path: &Path) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options.open(path).with_context(|| format!("opening `{}`", path.display()))
}
