//! Resolves the path of a command to the directory that holds the name, and to the name's canonical path.
//!
//! The walk starts at the caller's own root, directory or descriptor, which the kernel provides through `/proc`, so it
//! crosses the mounts that the caller sees. Paths that cannot be resolved here are left to the kernel: it returns the
//! right error, and Landlock refuses what the broker does not do.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use portcullis_sandbox::Access;
use portcullis_sandbox::kernel_files::{DEVICES, is_for_root_alone};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, StatxFlags, openat2, readlinkat, statx};
use rustix::io;

use crate::broker::Broker;
use crate::proc_paths::{CallerFile, is_proc, own};
use crate::process::Caller;
use crate::resolved_name::{LastLink, ResolvedName};

const PROC: &[u8] = b"/proc/";
/// As many symbolic links as the kernel follows.
const LINKS: usize = 40;
/// The longest file name.
const NAME_BYTES: usize = 255;

/// The target of a path.
pub(crate) enum PathTarget {
    /// A name in a directory.
    Name(ResolvedName),
    /// An open file descriptor of the caller.
    Descriptor(i32),
    /// A place where the kernel decides.
    Elsewhere,
}

/// The directory where the walk continues.
enum Base<'a> {
    Root(BorrowedFd<'a>),
    Open(OwnedFd),
}

impl AsFd for Base<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Root(root) => *root,
            Self::Open(open) => open.as_fd(),
        }
    }
}

impl Broker {
    /// Resolves a caller's path; `directory` is the descriptor that a relative path starts from.
    ///
    /// # Errors
    /// `ENOENT` if a directory on the way does not exist. It is not left to the kernel: another process may be about to
    /// create the directory, and the kernel would then find it and Landlock would refuse the call.
    pub(crate) fn resolve(
        &self,
        caller: &Caller,
        directory: i32,
        path: &CStr,
        last: LastLink,
    ) -> io::Result<PathTarget> {
        match self.try_resolve(caller, directory, path, last) {
            // Only the kernel knows what `/proc/self` is to the caller.
            Err(io::Errno::NOENT) if !path.to_bytes().starts_with(PROC) => Err(io::Errno::NOENT),
            found => Ok(found.unwrap_or(PathTarget::Elsewhere)),
        }
    }

    fn try_resolve(
        &self,
        caller: &Caller,
        directory: i32,
        path: &CStr,
        last: LastLink,
    ) -> io::Result<PathTarget> {
        let mut text = path.to_bytes().to_vec();
        let mut base = None;
        let is_from_root = text.starts_with(b"/") && own(&text).is_none();
        for _ in 0..LINKS {
            match own(&text) {
                Some((CallerFile::Descriptor(number), None)) => return Ok(PathTarget::Descriptor(number)),
                Some((CallerFile::Descriptor(number), Some(rest))) => {
                    base = Some(self.start(caller, number)?);
                    text = rest.to_vec();
                }
                Some((CallerFile::Directory, rest)) => {
                    base = Some(self.start(caller, libc::AT_FDCWD)?);
                    text = rest.unwrap_or(b".").to_vec();
                }
                None if text.starts_with(b"/") => base = Some(Base::Root(self.processes.root(caller)?)),
                None => {}
            }
            let from = match base.take() {
                Some(from) => from,
                None => self.start(caller, directory)?,
            };
            let Some((way, name, as_directory)) = split(&text) else { return Ok(PathTarget::Elsewhere) };
            let holder = match from {
                Base::Open(open) if way.is_empty() => open,
                from @ (Base::Root(_) | Base::Open(_)) => open_directory(from.as_fd(), way)?,
            };
            if last == LastLink::Follow
                && !as_directory
                && let Ok(link) = readlinkat(&holder, OsStr::from_bytes(name), Vec::with_capacity(256))
            {
                // The target of another process's link reveals something about that process.
                if is_proc(&holder) {
                    self.check_in_sight(caller, &holder)?;
                }
                text = link.into_bytes();
                base = Some(Base::Open(holder));
                continue;
            }
            let name = CString::new(name).map_err(|_nul| io::Errno::INVAL)?;
            if !is_from_root {
                self.check_mount(caller, &holder)?;
            }
            return self.place(holder, name, as_directory);
        }
        Ok(PathTarget::Elsewhere)
    }

    /// Checks that a directory is in the caller's mounts. One that the host has passed in by mistake is in other
    /// mounts, where a path means another file: the broker does not act on it.
    pub(crate) fn check_mount(&self, caller: &Caller, open: &OwnedFd) -> io::Result<()> {
        let mount = mount_of(open)?;
        if caller.has_mount(mount) {
            return Ok(());
        }
        let path = self.processes.path_of(open)?;
        let same = open_path(self.processes.root(caller)?, &path, OFlags::empty())?;
        if mount_of(&same)? != mount {
            return Err(io::Errno::XDEV);
        }
        caller.note_mount(mount);
        Ok(())
    }

    fn place(&self, directory: OwnedFd, name: CString, as_directory: bool) -> io::Result<PathTarget> {
        let mut path = self.processes.path_of(&directory)?;
        // Links in these directories lead to the caller's own files, or to devices: only the kernel knows which.
        let is_the_kernels = |top: &[u8]| path == top || path.starts_with(&[top, b"/"].concat());
        if [b"/proc".as_slice(), b"/sys", b"/dev"].into_iter().any(is_the_kernels) || !path.starts_with(b"/")
        {
            return Ok(PathTarget::Elsewhere);
        }
        if path != b"/" {
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
        let path = PathBuf::from(OsStr::from_bytes(&path));
        Ok(PathTarget::Name(ResolvedName { directory, name, path, as_directory }))
    }

    fn start(&self, caller: &Caller, directory: i32) -> io::Result<Base<'static>> {
        let link = match directory {
            libc::AT_FDCWD => "cwd".to_owned(),
            number => format!("fd/{number}"),
        };
        Ok(Base::Open(self.processes.open_link_to_directory(caller, &link)?))
    }

    /// Resolves the path of a directory, for a file that has no name yet (O_TMPFILE).
    pub(crate) fn resolve_directory(
        &self,
        caller: &Caller,
        directory: i32,
        path: &CStr,
    ) -> io::Result<(OwnedFd, PathBuf)> {
        let text = path.to_bytes();
        let base = match text.starts_with(b"/") {
            true => Base::Root(self.processes.root(caller)?),
            false => self.start(caller, directory)?,
        };
        let open = open_directory(base.as_fd(), text)?;
        self.check_mount(caller, &open)?;
        let path = PathBuf::from(OsStr::from_bytes(&self.processes.path_of(&open)?));
        Ok((open, path))
    }

    /// Returns true if commands may create anything at the path without judgement.
    pub(crate) fn is_free(&self, path: &Path) -> bool {
        if let Some(places) = &self.places {
            return self.is_changeable(path) && path.starts_with(places.temp());
        }
        let is_shared_with_nobody = ["/tmp", "/dev/shm"].iter().any(|place| path.starts_with(place));
        (is_shared_with_nobody || self.names.is_own(path)) && !self.is_judged(path)
    }

    /// Returns true if names in `path` are judged here; elsewhere the kernel decides.
    pub(crate) fn is_judged(&self, path: &Path) -> bool {
        let is_in_one = self.judged.iter().any(|place| path != place && path.starts_with(place));
        let is_fixed = || !self.fixed.is_empty() && depth(&self.fixed, path) > depth(&self.judged, path);
        is_in_one && !is_fixed() && self.is_changeable(path)
    }

    /// Returns true if a mask hides the path: no question may reveal its content.
    pub(crate) fn is_masked(&self, path: &Path) -> bool {
        !self.hidden.is_empty() && depth(&self.hidden, path) > depth(&self.judged, path)
    }

    /// Returns true if the project lies at or below this path.
    pub(crate) fn holds_workspace(&self, path: &Path) -> bool {
        self.roots.first().is_some_and(|workspace| workspace.starts_with(path))
    }

    /// Returns true if places let commands change the path; where there are mounts, the mounts decide.
    pub(crate) fn is_changeable(&self, path: &Path) -> bool {
        self.places.as_ref().is_none_or(|places| places.access(path) == Access::ReadWrite)
    }

    /// Returns true if the path is hidden by its place and not by a mount. Of processes, commands see their own.
    pub(crate) fn is_hidden(&self, caller: &Caller, path: &Path) -> bool {
        let Some(places) = &self.places else { return false };
        match path.strip_prefix("/proc") {
            Ok(below) => self.is_of_another(caller, below),
            Err(_) if DEVICES.iter().any(|device| path == Path::new(device)) => false,
            Err(_) => places.access(path) == Access::Hidden,
        }
    }

    /// Returns true if a path below `/proc` is about a process of another command or of none, or about the network.
    fn is_of_another(&self, caller: &Caller, below: &Path) -> bool {
        let mut names = below.iter().map(|name| name.to_str().unwrap_or_default());
        let first = names.next().unwrap_or_default();
        match first.parse::<i32>() {
            Ok(process) => {
                let own = self.processes.command(caller);
                own.is_none() || own != self.processes.command_of(process) || names.any(|name| name == "net")
            }
            Err(_) => first.is_empty() || is_for_root_alone(first),
        }
    }

    /// Returns true if the path must keep its name because a place begins at or below it; with mounts, the kernel
    /// ensures it.
    pub(crate) fn is_pinned(&self, path: &Path) -> bool {
        self.places.as_ref().is_some_and(|places| places.is_pinned(path))
    }
}

/// Returns the number of components of the deepest of `places` that holds `path`, or is it.
fn depth(places: &[PathBuf], path: &Path) -> Option<usize> {
    let holding = places.iter().filter(|place| path.starts_with(place));
    holding.map(|place| place.components().count()).max()
}

fn mount_of(open: &OwnedFd) -> io::Result<u64> {
    Ok(statx(open, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?.stx_mnt_id)
}

fn open_directory(start: BorrowedFd<'_>, way: &[u8]) -> io::Result<OwnedFd> {
    open_path(start, way, OFlags::DIRECTORY)
}

fn open_path(start: BorrowedFd<'_>, way: &[u8], kind: OFlags) -> io::Result<OwnedFd> {
    let end = way.iter().position(|byte| *byte != b'/').unwrap_or(way.len());
    let way = way.get(end..).filter(|way| !way.is_empty()).unwrap_or(b".");
    let flags = OFlags::PATH | OFlags::CLOEXEC | kind;
    openat2(start, OsStr::from_bytes(way), flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)
}

/// Splits a path into its directory, its last name, and whether a slash follows; `None` if there is no name to act on.
fn split(text: &[u8]) -> Option<(&[u8], &[u8], bool)> {
    let end = text.iter().rposition(|byte| *byte != b'/')? + 1;
    let (named, slashes) = text.split_at_checked(end)?;
    let begin = named.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let (way, name) = named.split_at_checked(begin)?;
    let usable = name != b"." && name != b".." && name.len() <= NAME_BYTES;
    usable.then_some((way, name, !slashes.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_as_the_kernel_does() {
        let check = |text: &str, expected: Option<(&str, &str, bool)>| {
            let found = split(text.as_bytes());
            let expected = expected.map(|(way, name, slash)| (way.as_bytes(), name.as_bytes(), slash));
            assert_eq!(found, expected, "{text}");
        };
        check("a", Some(("", "a", false)));
        check("a/b", Some(("a/", "b", false)));
        check("/a", Some(("/", "a", false)));
        check("//a//b//", Some(("//a//", "b", true)));
        for text in ["", "/", "//", ".", "a/..", "a/./", &"x".repeat(256)] {
            check(text, None);
        }
    }
}
