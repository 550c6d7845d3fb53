//! Opens paths with openat2(2), and names descriptors by `/proc`.

use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, ResolveFlags, Statx, StatxAttributes, StatxFlags, Uid,
};
use rustix::io::Errno;
use rustix::path::DecInt;

use super::last::Last;
use super::status::{Status, kind};
use crate::operation::{Identity, Inode, Time};

/// The longest path in bytes, including the NUL at its end; PATH_MAX of Linux.
const PATH_MAX: usize = 4096;

/// The flag with which a file is created without a name.
pub(crate) const UNNAMED: Option<OFlags> = Some(OFlags::TMPFILE);

/// A file or directory, opened with `O_PATH`: its content is not accessible.
#[derive(Debug)]
pub(crate) struct Handle(OwnedFd);

/// A directory, opened with `O_PATH`.
#[derive(Debug)]
pub(crate) struct Directory(OwnedFd);

impl Handle {
    /// Returns the canonical path and the metadata.
    pub(crate) fn place(&self, descriptors: &Descriptors) -> Result<(PathBuf, Status), Errno> {
        Ok((descriptors.name_of(self.0.as_fd())?, self.status()?))
    }

    /// Returns the metadata.
    pub(crate) fn status(&self) -> Result<Status, Errno> {
        Status::read(&self.0)
    }

    /// Returns a descriptor of something on the same mount.
    pub(crate) fn volume(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Returns the descriptor if this is a directory whose names can be looked up.
    pub(crate) fn directory(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }

    /// Returns the directory that was opened as one.
    pub(crate) fn into_directory(self) -> Result<Directory, Errno> {
        Ok(Directory(self.0))
    }
}

impl Directory {
    /// Opens one name in a directory, without following a link.
    pub(crate) fn open(directory: impl AsFd, name: &OsStr, _path: &Path) -> Result<Self, Errno> {
        open_with(directory, name, OFlags::DIRECTORY).map(Self)
    }

    /// Returns the canonical path and the metadata.
    pub(crate) fn place(&self, descriptors: &Descriptors) -> Result<(PathBuf, Status), Errno> {
        Ok((descriptors.name_of(self.0.as_fd())?, Status::read(&self.0)?))
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The directory `/proc/self/fd`, in which the kernel lists the file descriptors of this process.
#[derive(Debug)]
pub(crate) struct Descriptors(OwnedFd);

impl Descriptors {
    /// Opens the directory, and checks that it belongs to procfs and is not an ordinary directory.
    pub(crate) fn open() -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let list = rustix::fs::openat(CWD, "/proc/self/fd", flags, Mode::empty())?;
        match rustix::fs::fstatfs(&list)?.f_type {
            rustix::fs::PROC_SUPER_MAGIC => Ok(Self(list)),
            _ => Err(Errno::NOSYS),
        }
    }

    /// Returns true if an open file is at the canonical path `path` now.
    pub(crate) fn is_at(&self, file: impl AsFd, path: &Path) -> bool {
        self.name_of(file.as_fd()).is_ok_and(|name| name == path)
    }

    /// Returns the current path of an open file, as the kernel reports it.
    fn name_of(&self, file: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
        // A path that the kernel reports is never longer than PATH_MAX.
        let mut room = [MaybeUninit::uninit(); PATH_MAX];
        let (name, _) = rustix::fs::readlinkat_raw(&self.0, DecInt::from_fd(file), &mut room)?;
        if name.len() == PATH_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        // Sockets and pipes have names such as `pipe:[1]`.
        if name.first() != Some(&b'/') {
            return Err(Errno::NOENT);
        }
        Ok(PathBuf::from(OsString::from_vec(name.to_vec())))
    }

    /// Gives a name to an open file that has none.
    pub(crate) fn link(&self, file: BorrowedFd<'_>, directory: impl AsFd, name: &OsStr) -> Result<(), Errno> {
        // Use the entry in /proc: linking a descriptor itself needs a capability, see open(2) on O_TMPFILE.
        rustix::fs::linkat(&self.0, DecInt::from_fd(file), directory, name, AtFlags::SYMLINK_FOLLOW)
    }

    /// Opens the same file again, with other access rights.
    pub(crate) fn reopen(&self, file: &Handle, flags: OFlags) -> Result<OwnedFd, Errno> {
        // NONBLOCK and NOCTTY: if the file is not a regular one after all, opening it has no side effect.
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        rustix::fs::openat(&self.0, DecInt::from_fd(&file.0), flags, Mode::empty())
    }
}

/// Opens a path in the host's view with `O_PATH`.
///
/// openat2 exists since Linux 5.6. Without RESOLVE_BENEATH or RESOLVE_IN_ROOT, concurrent renames cannot make it fail.
pub(crate) fn open_on_host(path: &Path, last: Last) -> Result<Handle, Errno> {
    rustix::fs::openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC | last.flags(),
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS,
    )
    .map(Handle)
}

/// Opens a path with `O_PATH`, as if `root` were `/`.
///
/// Fails with `EAGAIN` if there is a concurrent rename.
pub(crate) fn open_in_root(root: BorrowedFd<'_>, path: &Path, last: Last) -> Result<Handle, Errno> {
    rustix::fs::openat2(
        root,
        path,
        OFlags::PATH | OFlags::CLOEXEC | last.flags(),
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS | ResolveFlags::IN_ROOT,
    )
    .map(Handle)
}

/// Opens a directory with `O_PATH`, if no part of its path is a link.
pub(crate) fn open_without_links(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve)
}

/// Opens one name in a directory, without following a link. `path` is its canonical path.
pub(crate) fn open_name(directory: impl AsFd, name: &OsStr, _path: &Path) -> Result<Handle, Errno> {
    open_with(directory, name, OFlags::empty()).map(Handle)
}

fn open_with(directory: impl AsFd, name: &OsStr, extra: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC | extra;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

impl Last {
    fn flags(self) -> OFlags {
        match self {
            Self::Followed => OFlags::empty(),
            Self::Itself => OFlags::NOFOLLOW,
            Self::Directory => OFlags::DIRECTORY,
        }
    }
}

impl Status {
    /// Returns the metadata of an open file.
    pub(crate) fn read(file: impl AsFd) -> Result<Self, Errno> {
        rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS).map(Self::from)
    }

    /// Returns the metadata of one name in a directory, without following a link.
    pub(crate) fn of_name(directory: impl AsFd, name: &OsStr) -> Result<Self, Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        rustix::fs::statx(directory, name, flags, StatxFlags::BASIC_STATS).map(Self::from)
    }
}

impl From<Statx> for Status {
    fn from(statx: Statx) -> Self {
        let mode = u32::from(statx.stx_mode);
        let time =
            |time: rustix::fs::StatxTimestamp| Time { seconds: time.tv_sec, nanoseconds: time.tv_nsec };
        Self {
            kind: kind(FileType::from_raw_mode(mode)),
            mode: mode & 0o7777,
            links: statx.stx_nlink,
            owner: statx.stx_uid,
            group: statx.stx_gid,
            is_mount: statx.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
                || !statx.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT),
            identity: Identity {
                inode: Inode { device: (statx.stx_dev_major, statx.stx_dev_minor), number: statx.stx_ino },
                size: statx.stx_size,
                modified: time(statx.stx_mtime),
                changed: time(statx.stx_ctime),
            },
        }
    }
}

/// Returns true if the files of a device are on a disk: virtual file systems have devices without a driver.
pub(crate) fn is_disk(device: (u32, u32)) -> bool {
    device.0 != 0
}

/// Returns false: Linux distinguishes case, except in directories whose owner made them otherwise.
pub(crate) fn ignores_case(_directory: &Path) -> bool {
    false
}

/// Gives a file to a user.
pub(super) fn give(file: impl AsFd, owner: Uid, group: Gid) -> Result<(), Errno> {
    rustix::fs::chownat(file, c"", Some(owner), Some(group), AtFlags::EMPTY_PATH)
}

/// Returns a number that others cannot guess.
pub(crate) fn random() -> Result<u64, Errno> {
    let mut random = [0; 8];
    // getrandom(2) never returns fewer bytes for such a small request.
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(random))
}

/// Returns true if `name` ends like the name that the kernel reports for a removed file.
pub(crate) fn looks_removed(name: &Path) -> bool {
    name.as_os_str().as_bytes().ends_with(b" (deleted)")
}
