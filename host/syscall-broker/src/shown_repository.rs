//! Recognises a repository that commands can read as a whole.
//!
//! The user's git reads without the sandbox's mounts. So everything that it would read from such a repository must be
//! inside it and readable here: this process sees the same mounts as commands, and has their rights.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, accessat, openat2, statat};
use rustix::io::Errno;

use crate::repository::for_each_name;

/// The largest number of object files to examine. Git packs them when there are some thousands.
const LOOKED_AT: usize = 50_000;
/// The depth of directories with objects: `objects`, and `pack` in it.
const LEVELS: usize = 2;
/// Files that make git take objects or settings from elsewhere.
const ELSEWHERE: [&str; 3] = ["objects/info/alternates", "objects/info/http-alternates", "commondir"];

/// Returns true if there is a repository at this very path, with a working tree or without, and all its objects lie in
/// it and can be read.
pub(crate) fn is_readable_repository(path: &Path) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let open = |path: &Path| openat2(CWD, path, flags, Mode::empty(), resolve);
    let is_readable = |directory: OwnedFd| {
        let has = |name: &str| statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        let mut left = LOOKED_AT;
        has("HEAD")
            && has("refs")
            && !ELSEWHERE.into_iter().any(has)
            && can_be_read(directory.as_fd(), c"objects", LEVELS, &mut left).is_ok()
    };
    // Git takes the directory itself only where it finds no `.git` in it.
    match open(&path.join(".git")) {
        Ok(directory) => is_readable(directory),
        Err(Errno::NOENT) => open(path).is_ok_and(is_readable),
        Err(_) => false,
    }
}

/// Fails unless everything in a directory is a file or a directory that can be read.
fn can_be_read(
    holder: BorrowedFd<'_>,
    name: &CStr,
    levels_left: usize,
    left: &mut usize,
) -> Result<(), Errno> {
    for_each_name(holder, name, |directory, name| {
        *left = left.checked_sub(1).ok_or(Errno::ACCESS)?;
        let status = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match (FileType::from_raw_mode(status.st_mode), levels_left.checked_sub(1)) {
            (FileType::RegularFile, _) => accessat(directory, name, Access::READ_OK, AtFlags::empty()),
            (FileType::Directory, Some(levels_left)) => can_be_read(directory, name, levels_left, left),
            _ => Err(Errno::ACCESS),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    /// Makes a repository in a new directory.
    fn repository(root: &Path, name: &str) -> PathBuf {
        let top = root.join(name);
        for directory in ["objects/ab", "objects/pack", "objects/info", "refs/heads"] {
            fs::create_dir_all(top.join(directory)).expect("a directory");
        }
        for file in ["HEAD", "objects/ab/cdef", "objects/pack/pack-1.pack"] {
            fs::write(top.join(file), "x").expect("a file");
        }
        top
    }

    #[test]
    fn a_whole_repository_is_readable() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path().canonicalize().expect("its path");
        assert!(is_readable_repository(&repository(&root, "bare")));
        repository(&root, "tree/.git");
        assert!(is_readable_repository(&root.join("tree")));
        assert!(!is_readable_repository(&root) && !is_readable_repository(&root.join("none")));
        symlink(root.join("bare"), root.join("link")).expect("a link");
        assert!(!is_readable_repository(&root.join("link")));
    }

    #[test]
    fn one_that_takes_objects_from_elsewhere_is_not() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path().canonicalize().expect("its path");
        let check = |name: &str, attack: &dyn Fn(&Path)| {
            let top = repository(&root, name);
            attack(&top);
            assert!(!is_readable_repository(&top), "{name}");
        };
        let write = |path: PathBuf| fs::write(path, "/x").expect("a file");
        check("lends", &|top| write(top.join("objects/info/alternates")));
        check("lends by http", &|top| write(top.join("objects/info/http-alternates")));
        check("a worktree", &|top| write(top.join("commondir")));
        check("linked objects", &|top| {
            fs::rename(top.join("objects"), top.join("o")).expect("renamed");
            symlink("o", top.join("objects")).expect("a link");
        });
        check("linked packs", &|top| {
            fs::rename(top.join("objects/pack"), top.join("p")).expect("renamed");
            symlink("../p", top.join("objects/pack")).expect("a link");
        });
        check("a linked pack", &|top| symlink("/x", top.join("objects/pack/a.pack")).expect("a link"));
        check("another in it", &|top| write(top.join(".git")));
    }
}
