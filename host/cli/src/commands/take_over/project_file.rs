//! Writes a file of a project. An agent may replace parts of its path by links at any moment.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use anyhow::{Context as _, bail};
use portcullis_bootstrap::process_env::random_name;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// Replaces a file in a project, or removes it if `text` is `None`. Links below the project are not followed, because a
/// checked path could lead elsewhere by the time it is written.
pub(crate) fn replace(project: &Path, file: &Path, text: Option<&str>) -> anyhow::Result<()> {
    let writing = || format!("writing `{}`; no part of it below the project may be a link", file.display());
    let inside = file.strip_prefix(project).context("a project's file lies in the project")?;
    let name = inside.file_name().context("a file has a name")?;
    let directory = directory(project, inside.parent().unwrap_or(Path::new(""))).with_context(writing)?;
    let Some(text) = text else {
        return rustix::fs::unlinkat(&directory, name, AtFlags::empty()).with_context(writing);
    };
    if let Ok(there) = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)
        && rustix::fs::FileType::from_raw_mode(there.st_mode) != rustix::fs::FileType::RegularFile
    {
        bail!("`{}` is no plain file; replace it by one, or remove it", file.display());
    }
    let fresh = format!(".portcullis-{}", random_name()?);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut new = File::from(
        rustix::fs::openat(&directory, &fresh, flags, Mode::from_raw_mode(0o600)).with_context(writing)?,
    );
    let written = new.write_all(text.as_bytes()).and_then(|()| new.sync_all()).and_then(|()| {
        Ok(rustix::fs::renameat_with(&directory, &fresh, &directory, name, RenameFlags::empty())?)
    });
    if written.is_err() {
        let _leftover = rustix::fs::unlinkat(&directory, &fresh, AtFlags::empty());
    }
    written.with_context(writing)
}

/// Opens a directory of a project without following links below the project. A missing directory is made.
fn directory(project: &Path, inside: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let mut open = rustix::fs::openat(CWD, project, flags, Mode::empty())?;
    for part in inside {
        match rustix::fs::mkdirat(open.as_fd(), part, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        open = rustix::fs::openat(open.as_fd(), part, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(open)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_below_the_project_are_not_followed() {
        let top = tempfile::tempdir().unwrap();
        let (project, outside) = (top.path().join("project"), top.path().join("outside"));
        fs::create_dir_all(&project).unwrap();
        fs::create_dir_all(&outside).unwrap();
        let file = project.join(".pi/portcullis.json");
        replace(&project, &file, Some("one")).unwrap();
        replace(&project, &file, Some("two")).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        fs::remove_file(&file).unwrap();
        symlink(outside.join("profile"), &file).unwrap();
        assert!(replace(&project, &file, Some("three")).is_err());
        fs::remove_dir_all(project.join(".pi")).unwrap();
        symlink(&outside, project.join(".pi")).unwrap();
        assert!(replace(&project, &file, Some("four")).is_err());
        assert!(replace(&project, &file, None).is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        fs::remove_file(project.join(".pi")).unwrap();
        replace(&project, &file, Some("five")).unwrap();
        replace(&project, &file, None).unwrap();
        assert_eq!(fs::read_dir(project.join(".pi")).unwrap().count(), 0);
    }
}
