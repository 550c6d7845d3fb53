//! Links among the fetched tools.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Makes `name` a link to `target`, replacing one that leads elsewhere.
pub(super) fn link(target: &Path, name: &Path) -> Result<()> {
    if fs::read_link(name).is_ok_and(|current| current == target) {
        return Ok(());
    }
    if name.symlink_metadata().is_ok() {
        fs::remove_file(name).with_context(|| format!("removing `{}`", name.display()))?;
    }
    symlink(target, name).with_context(|| format!("linking `{}`", name.display()))
}
