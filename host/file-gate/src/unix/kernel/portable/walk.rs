//! Walks a path name by name, and follows links by their text.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_decision::request::PathKind;
use rustix::fs::{CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

use super::handle::Handle;
use super::open;
use crate::system::kernel::calls::link_target;
use crate::system::kernel::interfaces::is_kernel_interface;
use crate::system::kernel::last::Last;
use crate::system::kernel::status::Status;

/// The most links in one path, as on Linux, see path_resolution(7). macOS allows 32.
const LINKS: usize = 40;
/// The longest path that is walked, in bytes, with the links in it; PATH_MAX of Linux. That of macOS is shorter.
const PATH_MAX: usize = 4096;

/// Opens an absolute path.
pub(super) fn open(path: &Path, last: Last) -> Result<Handle, Errno> {
    Walk::start(path, last, Links::Followed)?.run()
}

/// Opens an absolute path to a directory, if no part of it is a link.
pub(super) fn open_without_links(path: &Path) -> Result<Handle, Errno> {
    Walk::start(path, Last::Directory, Links::Refused)?.run()
}

/// Fails with `ENOENT` unless the file with this metadata is at the canonical path `path`.
pub(super) fn require_at(known: &Status, path: &Path) -> Result<(), Errno> {
    let found = match Walk::start(path, Last::Itself, Links::Refused)?.run() {
        Ok(found) => found,
        Err(Errno::LOOP | Errno::NOTDIR | Errno::NOENT) => return Err(Errno::NOENT),
        Err(errno) => return Err(errno),
    };
    if found.path == path && found.status.is_same_file(known) { Ok(()) } else { Err(Errno::NOENT) }
}

/// The treatment of links before the last name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    Followed,
    Refused,
}

/// A directory between the root and the current name.
struct Level {
    directory: Arc<OwnedFd>,
    path: PathBuf,
}

/// A walk from the root to the file of a path.
pub(super) struct Walk {
    /// The directories from the root to the current one; never empty.
    levels: Vec<Level>,
    /// The names that are still to come, last first. An empty name stands for a slash at the end.
    names: Vec<OsString>,
    last: Last,
    links: Links,
    /// The number of links that may still be followed.
    left: usize,
    /// The file of the last name, unless it is the current directory.
    found: Option<Handle>,
}

impl Walk {
    pub(super) fn start(path: &Path, last: Last, links: Links) -> Result<Self, Errno> {
        if !path.is_absolute() {
            return Err(Errno::INVAL);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, "/", flags, Mode::empty())?;
        let levels = vec![Level { directory: Arc::new(root), path: PathBuf::from("/") }];
        let mut walk = Self { levels, names: Vec::new(), last, links, left: LINKS, found: None };
        walk.push(path)?;
        Ok(walk)
    }

    /// Puts the names of `path` before those that are still to come.
    fn push(&mut self, path: &Path) -> Result<(), Errno> {
        let bytes = path.as_os_str().as_bytes();
        let waiting: usize = self.names.iter().map(|name| name.len() + 1).sum();
        if bytes.is_empty() {
            return Err(Errno::NOENT);
        }
        if bytes.len() + waiting >= PATH_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        let wants_directory = bytes.ends_with(b"/");
        if wants_directory && self.names.is_empty() {
            self.names.push(OsString::new());
        }
        let names = bytes.split(|&byte| byte == b'/').filter(|name| !name.is_empty());
        self.names.extend(names.rev().map(|name| OsStr::from_bytes(name).to_owned()));
        Ok(())
    }

    fn run(mut self) -> Result<Handle, Errno> {
        while self.advance()? {}
        self.end()
    }

    /// Takes the next name; returns false if there is none.
    pub(super) fn advance(&mut self) -> Result<bool, Errno> {
        let Some(name) = self.names.pop() else { return Ok(false) };
        self.found = match name.as_bytes() {
            b"" | b"." => None,
            b".." => {
                // The directory by which the walk came, which is the one above: links were followed by hand.
                if self.levels.len() > 1 {
                    self.levels.pop();
                }
                None
            }
            _ => self.step(&name)?,
        };
        Ok(true)
    }

    /// Returns the file to which the names led.
    pub(super) fn end(mut self) -> Result<Handle, Errno> {
        let found = match self.found.take() {
            Some(found) => found,
            None => self.current()?,
        };
        if self.last == Last::Directory && found.status.kind != PathKind::Directory {
            return Err(Errno::NOTDIR);
        }
        Ok(found)
    }

    fn level(&self) -> Result<&Level, Errno> {
        self.levels.last().ok_or(Errno::NOENT)
    }

    /// Returns the current directory.
    fn current(&self) -> Result<Handle, Errno> {
        let level = self.level()?;
        let status = Status::read(&level.directory)?;
        let file = Some(rustix::io::fcntl_dupfd_cloexec(&level.directory, 0)?);
        let parent = Arc::clone(&level.directory);
        Ok(Handle { parent, name: OsString::from("."), path: level.path.clone(), status, file })
    }

    /// Enters a directory or finds a file; returns `None` after following a link.
    fn step(&mut self, name: &OsStr) -> Result<Option<Handle>, Errno> {
        let level = self.level()?;
        let spelled = level.path.join(name);
        let found = open::handle(&level.directory, name, &spelled)?;
        let is_last = self.names.is_empty();
        match found.status.kind {
            PathKind::Symlink if !is_last || self.last != Last::Itself => {
                self.follow(name)?;
                Ok(None)
            }
            PathKind::Directory => {
                let path = level.path.join(listed_name(&level.directory, name, &found.status)?);
                match &found.file {
                    Some(file) => {
                        let directory = Arc::new(rustix::io::fcntl_dupfd_cloexec(file, 0)?);
                        let path = path.clone();
                        self.levels.push(Level { directory, path });
                    }
                    None if is_last => {}
                    None => return Err(Errno::ACCESS),
                }
                Ok(Some(Handle { path, ..found }))
            }
            PathKind::File | PathKind::Symlink | PathKind::Other | PathKind::Missing if is_last => {
                let path = level.path.join(listed_name(&level.directory, name, &found.status)?);
                Ok(Some(Handle { path, ..found }))
            }
            PathKind::File | PathKind::Symlink | PathKind::Other | PathKind::Missing => Err(Errno::NOTDIR),
        }
    }

    /// Continues with the target of the link `name`.
    fn follow(&mut self, name: &OsStr) -> Result<(), Errno> {
        if self.links == Links::Refused {
            return Err(Errno::LOOP);
        }
        self.left = self.left.checked_sub(1).ok_or(Errno::LOOP)?;
        let directory = &self.level()?.directory;
        // The links of the kernel's own file systems do not lead where their text says.
        if is_kernel_interface(directory)? && !is_relative_name(directory, name)? {
            return Err(Errno::LOOP);
        }
        let Some(target) = link_target(directory, name)? else {
            // It is no link any more.
            self.names.push(name.to_owned());
            return Ok(());
        };
        if target.is_absolute() {
            self.levels.truncate(1);
        }
        self.push(&target)
    }
}

/// Returns true if the target of a link is one name in the same directory, as of `/proc/self`.
fn is_relative_name(directory: &OwnedFd, name: &OsStr) -> Result<bool, Errno> {
    let target = link_target(directory, name)?;
    Ok(target.is_some_and(|target| target.is_relative() && target.components().count() == 1))
}

/// Returns the name of a file as its directory lists it.
///
/// On a file system that ignores case or composition, a file can be opened by names that it does not have. Rules are
/// about the name that it has.
fn listed_name(directory: &OwnedFd, name: &OsStr, status: &Status) -> Result<OsString, Errno> {
    let mut others = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let listed = OsStr::from_bytes(entry.file_name().to_bytes());
        if listed == name {
            return Ok(name.to_owned());
        }
        if entry.ino() == status.identity.inode.number {
            others.push(listed.to_owned());
        }
    }
    // Several names of one file cannot be told apart, so it counts as missing.
    match others.as_slice() {
        [only] => Ok(only.clone()),
        [] | [_, _, ..] => Err(Errno::NOENT),
    }
}
