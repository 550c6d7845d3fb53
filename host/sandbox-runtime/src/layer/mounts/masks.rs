//! Masks: the mounts that cover hidden places, and some files.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Component, Path};

use portcullis_sandbox::{MountStep, Opening, Owner, PathKind, Stage};
use portcullis_sys::mount::{Attributes, Reach, add_attributes};
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, ResolveFlags, Uid, chmod, chownat, fchmod, fstat, mkdirat, openat, openat2,
    unlinkat,
};
use rustix::io::{self, Errno};
use rustix::mount::{MountAttrFlags, UnmountFlags, unmount};

use super::super::failure::{During, Failure};
use super::super::mount_calls::{attach, copy_opened, new_filesystem};

/// Where the common mask is mounted while copies are made: before Linux 6.15 only attached mounts can be copied. It is
/// unmounted before anything else is mounted.
const FOR_A_MOMENT: &str = "/tmp";

/// The mode of mount points, and of directories on the way to them.
const ENTERED: Mode = Mode::from_raw_mode(0o755);

/// One mount for each hidden or replaced place, in the order of the steps.
pub(super) struct Masks(Vec<OwnedFd>);

impl Masks {
    /// Makes the masks for all steps that hide or replace something.
    pub(super) fn prepare(steps: &[MountStep]) -> Result<Self, Failure> {
        let common = Common::make().during(Stage::NewFilesystem)?;
        let masks = steps.iter().filter_map(|step| common.mask(step)).collect::<Result<_, _>>();
        common.detach().during(Stage::NewFilesystem)?;
        masks.map(Self)
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = OwnedFd> {
        self.0.into_iter()
    }
}

/// A resolver configuration; all DNS queries are redirected, whatever server they go to. It adds no domain to names.
const RESOLVER: &[u8] = b"nameserver 127.0.0.1\noptions ndots:0\n";

/// The names that the sandbox has by itself.
const HOSTS: &[u8] = b"127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n";

/// The name of the file of names.
const HOSTS_NAME: &str = "hosts";

/// The common masks, copied for all places that are hidden completely: an empty directory, and a file that cannot be
/// opened; also the replacements of files.
struct Common {
    directory: OwnedFd,
    file: OwnedFd,
    resolver: OwnedFd,
    hosts: OwnedFd,
}

impl Common {
    fn make() -> io::Result<Self> {
        let root = small_filesystem()?;
        mkdirat(&root, "directory", Mode::from_raw_mode(0o755))?;
        drop(create_file(&root, Path::new("file"), Mode::empty())?);
        for (name, text) in [("resolver", RESOLVER), (HOSTS_NAME, HOSTS)] {
            let file = create_file(&root, Path::new(name), Mode::WUSR)?;
            io::write(&file, text)?;
            // Readable also for users as whom commands act, and whatever the caller's umask is.
            fchmod(&file, Mode::RUSR | Mode::RGRP | Mode::ROTH)?;
        }
        add_attributes(&root, Reach::One, Attributes::READ_ONLY).map_err(number_of)?;
        attach(&root, Path::new(FOR_A_MOMENT))?;
        let open = |name: &str| openat(&root, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        Ok(Self {
            directory: open("directory")?,
            file: open("file")?,
            resolver: open("resolver")?,
            hosts: open(HOSTS_NAME)?,
        })
    }

    fn detach(&self) -> io::Result<()> {
        unmount(FOR_A_MOMENT, UnmountFlags::DETACH)
    }

    fn mask(&self, step: &MountStep) -> Option<Result<OwnedFd, Failure>> {
        Some(match step {
            MountStep::HideDirectory { path, openings } if openings.is_empty() => {
                copy_opened(&self.directory).during_at(Stage::CopyMounts, path)
            }
            MountStep::HideDirectory { path, openings } => {
                with_names(openings).during_at(Stage::NewFilesystem, path)
            }
            MountStep::HideFile { path } => copy_opened(&self.file).during_at(Stage::CopyMounts, path),
            MountStep::Resolver { path } if path.ends_with(HOSTS_NAME) => {
                copy_opened(&self.hosts).during_at(Stage::CopyMounts, path)
            }
            MountStep::Resolver { path } => copy_opened(&self.resolver).during_at(Stage::CopyMounts, path),
            MountStep::Prepare { .. }
            | MountStep::Pin { .. }
            | MountStep::Devices { .. }
            | MountStep::Processes
            | MountStep::Temp { .. }
            | MountStep::Own { .. }
            | MountStep::Show { .. } => return None,
        })
    }
}

fn with_names(openings: &[Opening]) -> io::Result<OwnedFd> {
    let root = small_filesystem()?;
    make_names(&root, openings)?;
    add_attributes(&root, Reach::One, Attributes::READ_ONLY).map_err(number_of)?;
    Ok(root)
}

fn small_filesystem() -> io::Result<OwnedFd> {
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    new_filesystem("tmpfs", &[("mode", "0755"), ("size", "256k")], attributes)
}

/// Creates mount points and closed directories; existing names stay.
fn make_names(root: &OwnedFd, openings: &[Opening]) -> io::Result<()> {
    openings.iter().try_for_each(|opening| make_name(root, opening, &make_directory))
}

/// Like [`make_names`], in a directory of the sandbox's own, where commands may have replaced them. The new names
/// belong to `owner`.
pub(super) fn make_own_names(root: &OwnedFd, openings: &[Opening], owner: Option<Owner>) -> io::Result<()> {
    let make = |parent: &OwnedFd, name: &Path, mode: Mode| {
        let made = match mkdirat(parent, name, mode) {
            Err(Errno::EXIST) => match reopen(parent, name) {
                Ok(there) => return set_mode(&there, mode),
                Err(_) => {
                    unlinkat(parent, name, AtFlags::empty())?;
                    mkdirat(parent, name, mode)
                }
            },
            made => made,
        };
        made?;
        let Some(Owner { uid, gid }) = owner else { return Ok(()) };
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        chownat(parent, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
    };
    openings.iter().try_for_each(|opening| make_name(root, opening, &make))
}

fn make_name(
    root: &OwnedFd,
    opening: &Opening,
    make_directory: &dyn Fn(&OwnedFd, &Path, Mode) -> io::Result<()>,
) -> io::Result<()> {
    let mut parent = reopen(root, Path::new("."))?;
    let mut names = opening.path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(Path::new(name)),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    });
    let Some(last) = names.next_back() else { return Err(Errno::INVAL) };
    for name in names {
        make_directory(&parent, name, ENTERED)?;
        parent = reopen(&parent, name)?;
    }
    if opening.kind == PathKind::Directory {
        return make_directory(&parent, last, if opening.is_closed { Mode::empty() } else { ENTERED });
    }
    match create_file(&parent, last, Mode::RUSR | Mode::WUSR) {
        Ok(_) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
    }
}

fn make_directory(parent: &OwnedFd, name: &Path, mode: Mode) -> io::Result<()> {
    match mkdirat(parent, name, mode) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Sets the mode of a directory that another sandbox had closed, or had not. All other modes are the tools' own.
fn set_mode(directory: &OwnedFd, mode: Mode) -> io::Result<()> {
    let there = Mode::from_raw_mode(fstat(directory)?.st_mode & 0o777);
    if there == mode || !there.is_empty() && !mode.is_empty() {
        return Ok(());
    }
    // The descriptor is one of a path alone, which fchmod(2) does not take.
    chmod(format!("/proc/self/fd/{}", directory.as_raw_fd()), mode)
}

/// The session's temporary directory may contain links that an earlier command made; they are not followed.
fn reopen(parent: &OwnedFd, name: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(parent, name, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
}

fn create_file(parent: &OwnedFd, name: &Path, mode: Mode) -> io::Result<OwnedFd> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, mode)
}

fn number_of(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use rustix::fs::CWD;

    use super::*;

    fn open(path: &Path) -> OwnedFd {
        openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).expect("a directory")
    }

    fn opening(path: &str, kind: PathKind) -> Opening {
        Opening { path: path.into(), kind, is_closed: false }
    }

    #[test]
    fn names_are_made_once_and_stay() {
        let root = tempfile::tempdir().expect("a directory");
        let openings = [opening("a/b/c", PathKind::Directory), opening("a/f", PathKind::File)];
        for _ in 0..2 {
            make_names(&open(root.path()), &openings).expect("made");
        }
        assert!(root.path().join("a/b/c").is_dir());
        assert!(root.path().join("a/f").is_file());
    }

    #[test]
    fn links_are_replaced_and_not_followed() {
        let root = tempfile::tempdir().expect("a directory");
        let outside = tempfile::tempdir().expect("a directory");
        std::os::unix::fs::symlink(outside.path(), root.path().join("a")).expect("a link");
        std::fs::write(root.path().join("file"), "").expect("a file");
        let openings = [opening("a/b", PathKind::Directory), opening("file/c", PathKind::Directory)];
        assert!(make_names(&open(root.path()), &openings).is_err());
        make_own_names(&open(root.path()), &openings, None).expect("made");
        assert!(!outside.path().join("b").exists());
        assert!(root.path().join("a/b").is_dir() && root.path().join("file/c").is_dir());
    }
}
