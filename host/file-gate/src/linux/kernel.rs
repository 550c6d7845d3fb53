//! The system calls of this crate, each with the reason why it is safe to use.

use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use portcullis_decision::path_text;
use portcullis_decision::request::{FileFacts, PathKind};
use rustix::fs::{
    AtFlags, CWD, FileType, FsWord, Gid, Mode, OFlags, ResolveFlags, Statx, StatxAttributes, StatxFlags, Uid,
};
use rustix::io::Errno;
use rustix::path::DecInt;

use crate::FileError;
use crate::operation::{Identity, Inode, Time};

/// The longest path in bytes, including the NUL at its end; PATH_MAX of Linux.
const PATH_MAX: usize = 4096;

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

    /// Returns the current path of an open file, as the kernel reports it.
    pub(crate) fn name_of(&self, file: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
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
    pub(crate) fn link(&self, file: BorrowedFd<'_>, directory: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
        // Use the entry in /proc: linking a descriptor itself needs a capability, see open(2) on O_TMPFILE.
        rustix::fs::linkat(&self.0, DecInt::from_fd(file), directory, name, AtFlags::SYMLINK_FOLLOW)
    }

    /// Opens the same file again, with other access rights.
    pub(crate) fn reopen(&self, file: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
        // NONBLOCK and NOCTTY: if the file is not a regular one after all, opening it has no side effect.
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        rustix::fs::openat(&self.0, DecInt::from_fd(file), flags, Mode::empty())
    }
}

/// Opens a path in the host's view with `O_PATH`.
///
/// openat2 exists since Linux 5.6. Without RESOLVE_BENEATH or RESOLVE_IN_ROOT, concurrent renames cannot make it fail.
pub(crate) fn open_on_host(path: &Path, extra: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC | extra,
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS,
    )
}

/// Opens a path with `O_PATH`, as if `root` were `/`.
///
/// Fails with `EAGAIN` if there is a concurrent rename.
pub(crate) fn open_in_root(root: BorrowedFd<'_>, path: &Path, extra: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat2(
        root,
        path,
        OFlags::PATH | OFlags::CLOEXEC | extra,
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS | ResolveFlags::IN_ROOT,
    )
}

/// Opens one name in a directory with `O_PATH`, without following a link.
pub(crate) fn open_name(directory: &OwnedFd, name: &OsStr, extra: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC | extra;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

/// Returns the target of a symbolic link; `None` if the name is not a link.
pub(crate) fn link_target(directory: &OwnedFd, name: &OsStr) -> Result<Option<PathBuf>, Errno> {
    match rustix::fs::readlinkat(directory, name, Vec::new()) {
        Ok(target) => Ok(Some(PathBuf::from(OsString::from_vec(target.into_bytes())))),
        Err(Errno::INVAL) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// The metadata of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub(crate) kind: PathKind,
    pub(crate) mode: u32,
    pub(crate) links: u32,
    pub(crate) owner: u32,
    pub(crate) group: u32,
    /// True if a mount begins here. Kernels before 5.8 do not report it, which counts as true.
    pub(crate) is_mount: bool,
    pub(crate) identity: Identity,
}

impl Status {
    /// Returns the metadata of an open file.
    pub(crate) fn read(file: impl AsFd) -> Result<Self, Errno> {
        rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS).map(Self::from)
    }

    /// Returns the metadata of one name in a directory, without following a link.
    pub(crate) fn of_name(directory: &OwnedFd, name: &OsStr) -> Result<Self, Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        rustix::fs::statx(directory, name, flags, StatxFlags::BASIC_STATS).map(Self::from)
    }

    /// Returns the facts for policies.
    pub(crate) fn facts(&self) -> FileFacts {
        FileFacts {
            size: u32::try_from(self.identity.size).unwrap_or(u32::MAX),
            links: self.links,
            owner: self.owner,
            mode: self.mode,
        }
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

/// Returns the kind of a file in the terms of requests.
pub(crate) fn kind(file_type: FileType) -> PathKind {
    match file_type {
        FileType::RegularFile => PathKind::File,
        FileType::Directory => PathKind::Directory,
        FileType::Symlink => PathKind::Symlink,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => PathKind::Other,
    }
}

/// File systems that expose the kernel, although their files look regular.
///
/// `/proc/self/environ` is not a link and contains secrets, `/sys` and cgroups contain control files. The numbers are
/// from linux/magic.h and the sources of each file system.
const KERNEL_INTERFACES: &[FsWord] = &[
    rustix::fs::PROC_SUPER_MAGIC,
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x6165_676c, // pstore
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0xcafe_4a11, // bpf
    0x6265_6570, // configfs
    0xde5e_81e4, // efivarfs
    0x4249_4e4d, // binfmt_misc
    0x6e73_6673, // nsfs
    0x0765_5821, // resctrl
    0x6573_5543, // fusectl
    0x6e66_7364, // nfsd
    0x6759_6969, // rpc_pipefs
    0x1cd1,      // devpts
];

/// Returns true if a file belongs to a file system that exposes or controls the kernel.
pub(crate) fn is_kernel_interface(file: impl AsFd) -> Result<bool, Errno> {
    Ok(KERNEL_INTERFACES.contains(&rustix::fs::fstatfs(file)?.f_type))
}

/// Returns true if the files of a device are on a disk: virtual file systems have devices without a driver.
pub(crate) fn is_disk(device: (u32, u32)) -> bool {
    device.0 != 0
}

/// Returns true if a file is on a read-only mount.
pub(crate) fn is_on_read_only_mount(file: impl AsFd) -> Result<bool, Errno> {
    Ok(rustix::fs::fstatvfs(file)?.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// Gives a file that root has just created to the owner of its directory.
///
/// Root acts there for that user, who could not access the file otherwise.
pub(crate) fn hand_over(made: impl AsFd, directory: &OwnedFd) -> Result<(), Errno> {
    let (own, around) = (Status::read(&made)?, Status::read(directory)?);
    if own.owner != ROOT || around.owner == ROOT {
        return Ok(());
    }
    let (owner, group) = (Uid::from_raw(around.owner), Gid::from_raw(around.group));
    rustix::fs::chownat(made, c"", Some(owner), Some(group), AtFlags::EMPTY_PATH)
}

const ROOT: u32 = 0;

/// Converts an error of the kernel into an error of this crate.
pub(crate) fn failure(doing: &'static str, path: &Path, errno: Errno) -> FileError {
    let path = path_text::encode(path);
    match errno {
        Errno::NOENT => FileError::NotFound { path },
        Errno::NOTDIR => FileError::NotADirectory { path },
        Errno::ISDIR => FileError::IsDirectory { path },
        Errno::LOOP => FileError::Loop { path },
        Errno::NOSYS => FileError::Unsupported,
        // Concurrent renames kept interrupting the walk of the path.
        Errno::AGAIN => FileError::Moved { path },
        Errno::ACCESS | Errno::PERM | Errno::ROFS => {
            FileError::Denied { doing, path, source: io::Error::from(errno) }
        }
        _ => FileError::Io { doing, path, source: io::Error::from(errno) },
    }
}

/// Returns true if `name` ends like the name that the kernel reports for a removed file.
pub(crate) fn looks_removed(name: &Path) -> bool {
    name.as_os_str().as_bytes().ends_with(b" (deleted)")
}
