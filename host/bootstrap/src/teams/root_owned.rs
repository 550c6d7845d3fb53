//! Whether the machine's membership file is the administrator's.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};

/// The owner that a file of root seems to have in a user namespace that does not map root.
const OVERFLOW: u32 = 65_534;
/// The permission of groups and others to write.
const OTHERS_WRITE: u32 = 0o022;

/// Checks that only root can change a file, and replace it in its directory.
///
/// # Errors
/// With what to do, if another user could.
pub(super) fn ensure_root_owned(file: &Path) -> anyhow::Result<()> {
    let directory = file.parent().unwrap_or_else(|| Path::new("/"));
    let own = rustix::process::geteuid().as_raw();
    for path in [directory, file] {
        let about = std::fs::metadata(path).with_context(|| format!("reading `{}`", path.display()))?;
        let is_roots = about.uid() == 0 || about.uid() == OVERFLOW && own != OVERFLOW;
        if !is_roots || about.mode() & OTHERS_WRITE != 0 {
            let path = path.display();
            bail!(
                "`{path}` must belong to root, and no other user may write it; run: chown root: {path} && chmod go-w {path}"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_that_others_can_write_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("team.toml");
        std::fs::write(&file, "").unwrap();
        let set =
            |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        set(&file, 0o644);
        set(directory.path(), 0o755);
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(ensure_root_owned(&file).is_ok(), is_root, "control: a file of this user");
        for (path, mode) in [(file.as_path(), 0o664), (&file, 0o646), (directory.path(), 0o777)] {
            set(path, mode);
            assert!(ensure_root_owned(&file).unwrap_err().to_string().contains("chown root:"), "{mode:o}");
            set(path, 0o755);
        }
    }
}
