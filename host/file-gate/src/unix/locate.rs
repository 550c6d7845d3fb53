//! Resolves paths to descriptors, without reading, writing or deciding anything.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use portcullis_decision::path_text;
use portcullis_decision::request::PathKind;
use rustix::io::Errno;

use crate::FileError;
use crate::system::kernel::{self, Descriptors, Directory, Handle, Last, Status, failure};
use crate::system::located::{Located, Slot, Target};
use crate::view::{RootView, View};

/// How often a walk is retried after a concurrent rename.
///
/// A hostile command that keeps renaming can make a path fail, but cannot redirect it.
const WALKS: usize = 256;

/// The most links in one path, as in the kernel itself, see path_resolution(7).
const LINKS: usize = 40;

/// The root of a walk.
#[derive(Clone, Copy)]
pub(crate) enum Root<'a> {
    /// The host's `/`.
    Host,
    /// The root of the sandbox.
    Session(&'a dyn RootView),
}

impl Root<'_> {
    /// Opens a directory.
    pub(crate) fn open_directory(self, path: &Path) -> Result<Directory, FileError> {
        let opened = self.open(path, Last::Directory)?;
        opened.into_directory().map_err(|errno| failure("open", path, errno))
    }

    /// Opens a path, without access to the content.
    pub(crate) fn open(self, path: &Path, last: Last) -> Result<Handle, FileError> {
        if !path.is_absolute() {
            return Err(failure("open", path, Errno::INVAL));
        }
        match self {
            Self::Host => kernel::open_on_host(path, last).map_err(|errno| failure("open", path, errno)),
            Self::Session(view) => {
                for _ in 0..WALKS {
                    let root = view.root().map_err(FileError::ViewEnded)?;
                    match kernel::open_in_root(root, path, last) {
                        Err(Errno::AGAIN) => std::thread::yield_now(),
                        other => return other.map_err(|errno| failure("open", path, errno)),
                    }
                }
                Err(failure("open", path, Errno::AGAIN))
            }
        }
    }

    /// Checks that the sandbox still exists, so that everything opened before was seen with all mounts in place.
    pub(crate) fn still_stands(self) -> Result<(), FileError> {
        match self {
            Self::Host => Ok(()),
            Self::Session(view) => view.root().map(|_| ()).map_err(FileError::ViewEnded),
        }
    }
}

/// Checks the canonical path and the metadata of a file that was opened as `path`; fails if it was removed.
fn canonical(
    root: Root<'_>,
    place: Result<(PathBuf, Status), Errno>,
    path: &Path,
) -> Result<(PathBuf, Status), FileError> {
    let moved = || FileError::Moved { path: path_text::encode(path) };
    let (name, status) = place.map_err(|errno| match errno {
        Errno::NOENT => moved(),
        errno => failure("look at", path, errno),
    })?;
    if status.links == 0 {
        return Err(moved());
    }
    // The kernel appends ` (deleted)` to the name of a removed file, but an existing file may have such a name.
    if kernel::looks_removed(&name) {
        let there = root.open(&name, Last::Itself).map_err(|_| moved())?;
        let there = there.status().map_err(|_| moved())?;
        if there.identity.inode != status.identity.inode {
            return Err(moved());
        }
    }
    Ok((name, status))
}

/// Locates an existing file, following every link.
pub(crate) fn existing(
    descriptors: &Descriptors,
    root: Root<'_>,
    view: View,
    path: &Path,
    last: Last,
) -> Result<Located, FileError> {
    let file = root.open(path, last)?;
    let (name, status) = canonical(root, file.place(descriptors), path)?;
    root.still_stands()?;
    let mut located = Located::new(view, name, Target::Opened(file));
    located.kind = status.kind;
    located.facts = status.facts();
    located.on_disk = kernel::is_disk(status.identity.inode.device);
    Ok(located)
}

/// Locates a name to write to.
///
/// The links are followed here and not by the kernel, so that a dangling link leads to the name that would be created.
pub(crate) fn for_writing(
    descriptors: &Descriptors,
    root: Root<'_>,
    view: View,
    path: &Path,
) -> Result<Located, FileError> {
    let slot = Walk { descriptors, root, path, steps: LINKS }.slot()?;
    let mut canonical = slot.parent_path.clone();
    canonical.extend(&slot.missing);
    canonical.push(&slot.name);
    let status = slot.file.as_ref().map(Handle::status).transpose();
    let status = status.map_err(|errno| failure("look at", path, errno))?;
    let mount = slot.file.as_ref().map_or(slot.parent.as_fd(), Handle::volume);
    let read_only = kernel::is_on_read_only_mount(mount);
    let read_only = read_only.map_err(|errno| failure("look at", path, errno))?;
    root.still_stands()?;
    let mut located = Located::new(view, canonical, Target::Slot(slot));
    located.read_only = read_only;
    if let Some(status) = status {
        located.kind = status.kind;
        located.facts = status.facts();
    }
    Ok(located)
}

/// A walk to a name that may be missing.
struct Walk<'a> {
    descriptors: &'a Descriptors,
    root: Root<'a>,
    /// The path as given, for messages.
    path: &'a Path,
    /// The number of links that may still be followed.
    steps: usize,
}

/// The result of looking up one name.
enum LookedUp {
    Nothing,
    Link(PathBuf),
    File(Handle),
}

/// Directories that are created for one file: each of them is judged.
const MOST_MISSING: usize = 256;

impl Walk<'_> {
    fn slot(mut self) -> Result<Slot, FileError> {
        let mut path = self.path.to_owned();
        // The names below `path` whose directories have not been found yet, deepest first.
        let mut below: Vec<OsString> = Vec::new();
        loop {
            let (directory, name) = self.split(&path, !below.is_empty())?;
            let parent = match self.root.open_directory(&directory) {
                Ok(parent) => parent,
                // The directory will be created later; continue with its parent.
                Err(FileError::NotFound { .. }) => {
                    if below.len() >= MOST_MISSING {
                        return Err(failure("create the directories of", self.path, Errno::NAMETOOLONG));
                    }
                    below.push(name);
                    path = directory;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let (parent_path, _) = canonical(self.root, parent.place(self.descriptors), self.path)?;
            self.refuse_kernel_interface(&parent)?;
            match self.look(&parent, &parent_path, &name)? {
                LookedUp::Link(target) => {
                    // A link is relative to the canonical path, in which `..` has the meaning that the kernel gives it.
                    // The walk starts at the root again: from `parent`, RESOLVE_IN_ROOT would treat it as the root, and
                    // without that flag an absolute link would lead to the host's.
                    path = parent_path.join(target);
                    self.step()?;
                }
                LookedUp::File(file) if below.is_empty() => {
                    return Ok(Slot { parent, parent_path, missing: Vec::new(), name, file: Some(file) });
                }
                // The name was missing when it was looked up as a directory.
                LookedUp::File(_) => return Err(FileError::Moved { path: path_text::encode(self.path) }),
                LookedUp::Nothing => {
                    let slot = slot_of_missing(parent, parent_path, name, below);
                    self.require_plain_spelling(&slot)?;
                    return Ok(slot);
                }
            }
        }
    }

    /// Splits a path into its directory and its last name; a directory may end with slashes.
    fn split(&self, path: &Path, wants_directory: bool) -> Result<(PathBuf, OsString), FileError> {
        let mut bytes = path.as_os_str().as_bytes();
        while wants_directory && bytes.len() > 1 && bytes.ends_with(b"/") {
            bytes = bytes.get(..bytes.len() - 1).unwrap_or_default();
        }
        let start = bytes.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        let (directory, name) = bytes.split_at_checked(start).unwrap_or_default();
        if matches!(name, b"" | b"." | b"..") {
            let path = path_text::encode(self.path);
            return Err(if wants_directory {
                FileError::NotFound { path }
            } else {
                FileError::IsDirectory { path }
            });
        }
        Ok((PathBuf::from(OsStr::from_bytes(directory)), OsStr::from_bytes(name).to_owned()))
    }

    fn look(&mut self, parent: &Directory, parent_path: &Path, name: &OsStr) -> Result<LookedUp, FileError> {
        let path = parent_path.join(name);
        let failed = |errno| failure("look at", self.path, errno);
        loop {
            match kernel::link_target(parent, name) {
                Ok(Some(target)) => return Ok(LookedUp::Link(target)),
                Err(Errno::NOENT) => return Ok(LookedUp::Nothing),
                Ok(None) => {}
                Err(errno) => return Err(failed(errno)),
            }
            match kernel::open_name(parent, name, &path) {
                Ok(file) if file.status().map_err(failed)?.kind != PathKind::Symlink => {
                    return Ok(LookedUp::File(file));
                }
                // The name became a link, or was removed, after the first look.
                Ok(_) | Err(Errno::NOENT) => self.step()?,
                Err(errno) => return Err(failed(errno)),
            }
        }
    }

    fn step(&mut self) -> Result<(), FileError> {
        self.steps = self.steps.checked_sub(1).ok_or_else(|| failure("open", self.path, Errno::LOOP))?;
        Ok(())
    }

    /// Fails if a new hidden name has capital letters or other scripts where case does not count.
    ///
    /// Rules on names are about bytes: `.ENVRC` would become the `.envrc` that another program obeys. An existing name
    /// has the canonical spelling that its directory lists.
    fn require_plain_spelling(&self, slot: &Slot) -> Result<(), FileError> {
        let mut names = slot.missing.iter().chain([&slot.name]);
        if names.all(|name| is_plain(name)) || !kernel::ignores_case(&slot.parent_path) {
            return Ok(());
        }
        Err(FileError::Spelling { path: path_text::encode(self.path) })
    }

    /// Fails if the directory is an interface of the kernel.
    ///
    /// The links in `/proc` do not lead where their text says, so they must not be followed by hand.
    fn refuse_kernel_interface(&self, directory: &Directory) -> Result<(), FileError> {
        match kernel::is_kernel_interface(directory) {
            Ok(false) => Ok(()),
            Ok(true) => Err(FileError::Special { path: path_text::encode(self.path) }),
            Err(errno) => Err(failure("look at", self.path, errno)),
        }
    }
}

/// Returns true if a name is not hidden, or has one spelling only.
fn is_plain(name: &OsStr) -> bool {
    let name = name.as_bytes();
    !name.starts_with(b".") || !name.iter().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii())
}

/// Returns the slot of a missing name. `below` are the names below `name`, deepest first.
fn slot_of_missing(parent: Directory, parent_path: PathBuf, name: OsString, below: Vec<OsString>) -> Slot {
    let mut names = vec![name];
    names.extend(below.into_iter().rev());
    let name = names.pop().unwrap_or_default();
    Slot { parent, parent_path, missing: names, name, file: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_names_with_several_spellings() {
        for (name, expected) in [
            (".envrc", true),
            (".ENVRC", false),
            (".Git", false),
            (".\u{17f}sh", false),
            (".github", true),
            ("Makefile", true),
            ("README.md", true),
            ("a.B", true),
        ] {
            assert_eq!(is_plain(OsStr::new(name)), expected, "{name}");
        }
    }
}
