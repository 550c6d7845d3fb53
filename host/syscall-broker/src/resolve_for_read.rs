//! Resolves the path of a command to a file that is opened for reading.
//!
//! The file is held by an O_PATH descriptor and judged by the canonical path that the kernel reports for it. The kernel
//! does not look the path up again, because it could then lead to another file.

use std::collections::VecDeque;
use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat, statat};
use rustix::io::{self, Errno};

use crate::broker::Broker;
use crate::proc_paths::{CallerFile, is_proc, names_of, own};
use crate::process::Caller;
use crate::resolved_name::LastLink;

/// As many symbolic links as the kernel follows.
const LINKS: usize = 40;
/// The inode number of the top directory of every procfs.
const TOP_OF_PROC: u64 = 1;

/// The target of a path.
pub(crate) enum FoundFile {
    /// A file of any type, opened with O_PATH.
    PathTarget(OwnedFd),
    /// An open file descriptor of the caller.
    Descriptor(i32),
}

impl Broker {
    /// Resolves a caller's path. It fails with the kernel's error.
    pub(crate) fn find(
        &self,
        caller: &Caller,
        directory: i32,
        path: &CStr,
        last: LastLink,
    ) -> io::Result<FoundFile> {
        let mut text = path.to_bytes();
        if text.is_empty() {
            return Err(Errno::NOENT);
        }
        let root = self.processes.root(caller)?;
        let start = match own(text) {
            Some((CallerFile::Descriptor(number), None)) => return Ok(FoundFile::Descriptor(number)),
            Some((CallerFile::Descriptor(number), Some(rest))) => {
                text = rest;
                Some(self.processes.open_link(caller, &format!("fd/{number}"))?)
            }
            Some((CallerFile::Directory, rest)) => {
                text = rest.unwrap_or(b".");
                Some(self.processes.open_link(caller, "cwd")?)
            }
            None if text.starts_with(b"/") => None,
            None => Some(self.open_start(caller, directory)?),
        };
        let from = start.as_ref().map_or(root, AsFd::as_fd);
        let walk = || PathWalk { broker: self, caller, root, links: LINKS }.walk(from, text, last);
        let found = match open_node(from, text, last) {
            // The path may lead through `/proc/self`, which means the broker here, or through a magic link of procfs.
            Err(Errno::NOENT | Errno::LOOP) if !ends_nowhere(from, text) => walk()?,
            // An absolute link has led to this process's own `/proc`, where more is visible than in the caller's.
            Ok(open) if self.check_mount(caller, &open).is_err() => walk()?,
            // Entries of this process there are not the caller's.
            Ok(open) if self.places.is_some() && is_proc(&open) => walk()?,
            found => FoundFile::PathTarget(found?),
        };
        if let FoundFile::PathTarget(open) = &found {
            // A name in mounts that are not the caller's means another file.
            self.check_mount(caller, open).map_err(|_foreign| Errno::ACCESS)?;
            self.check_in_sight(caller, open)?;
        }
        Ok(found)
    }

    /// Checks that a file is visible to the caller by its name.
    pub(crate) fn check_seen(&self, caller: &Caller, open: &OwnedFd) -> io::Result<()> {
        self.check_mount(caller, open)?;
        self.check_in_sight(caller, open)
    }

    /// Fails for a file that mounts would hide.
    pub(crate) fn check_in_sight(&self, caller: &Caller, open: &OwnedFd) -> io::Result<()> {
        if self.places.is_none() {
            return Ok(());
        }
        let text = self.processes.path_of(open)?;
        // A procfs of another session, a container or the host shows processes that cannot be attributed here.
        let is_foreign_proc = is_proc(open) && !text.starts_with(b"/proc/") && text != b"/proc";
        let is_hidden = is_foreign_proc || names_of(&text).any(|path| self.is_hidden(caller, path));
        if is_hidden { Err(Errno::ACCESS) } else { Ok(()) }
    }

    fn open_start(&self, caller: &Caller, directory: i32) -> io::Result<OwnedFd> {
        if directory == libc::AT_FDCWD {
            return self.processes.open_link(caller, "cwd");
        }
        let link = format!("fd/{directory}");
        self.processes.open_link(caller, &link).map_err(|error| match error {
            Errno::NOENT => Errno::BADF,
            error => error,
        })
    }
}

fn open_node(from: BorrowedFd<'_>, text: &[u8], last: LastLink) -> io::Result<OwnedFd> {
    let begin = text.iter().position(|byte| *byte != b'/').unwrap_or(text.len());
    let way = text.get(begin..).filter(|way| !way.is_empty()).unwrap_or(b".");
    let kind = if last == LastLink::Keep { OFlags::NOFOLLOW } else { OFlags::empty() };
    let flags = OFlags::PATH | OFlags::CLOEXEC | kind;
    openat2(from, OsStr::from_bytes(way), flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)
}

/// Returns true if the parent directory exists and the last name does not: the common case of a missing file, which
/// needs no second lookup.
fn ends_nowhere(from: BorrowedFd<'_>, text: &[u8]) -> bool {
    let end = text.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let Some((way, name)) = text.split_at_checked(end) else { return false };
    if name.is_empty() || name == b".." {
        return false;
    }
    let holder = open_node(from, way, LastLink::Follow);
    holder.is_ok_and(|holder| {
        let status = statat(&holder, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW);
        status.err() == Some(Errno::NOENT) && !is_proc(&holder)
    })
}

/// A walk, name by name, in which links of procfs have the caller's meaning.
struct PathWalk<'a> {
    broker: &'a Broker,
    caller: &'a Caller,
    root: BorrowedFd<'a>,
    links: usize,
}

impl PathWalk<'_> {
    fn walk(mut self, from: BorrowedFd<'_>, text: &[u8], last: LastLink) -> io::Result<FoundFile> {
        let mut here = reopen(from)?;
        let mut left: VecDeque<OsString> = names(text).collect();
        while let Some(name) = left.pop_front() {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let next = openat(&here, &name, flags, Mode::empty())?;
            let is_link = FileType::from_raw_mode(fstat(&next)?.st_mode) == FileType::Symlink;
            if !is_link || left.is_empty() && last == LastLink::Keep {
                here = next;
                continue;
            }
            self.links = self.links.checked_sub(1).ok_or(Errno::LOOP)?;
            let target = match self.own_process(&here, &name)? {
                Some(target) => target,
                None if is_proc(&here) => match self.link_of_proc(&here, &name)? {
                    LinkTarget::Descriptor(number) if left.is_empty() => {
                        return Ok(FoundFile::Descriptor(number));
                    }
                    // The target of a descriptor with more names behind it has been handled by its text before.
                    LinkTarget::Descriptor(_) => return Err(Errno::ACCESS),
                    LinkTarget::Path(path) => path,
                },
                None => readlinkat(&here, &name, Vec::new())?.into_bytes(),
            };
            if target.starts_with(b"/") {
                here = reopen(self.root)?;
            }
            for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
                left.push_front(name);
            }
        }
        Ok(FoundFile::PathTarget(here))
    }

    /// Returns the target of `self` and `thread-self` as the caller sees them.
    fn own_process(&self, here: &OwnedFd, name: &OsStr) -> io::Result<Option<Vec<u8>>> {
        if name != "self" && name != "thread-self" || !is_proc(here) || fstat(here)?.st_ino != TOP_OF_PROC {
            return Ok(None);
        }
        let (process, thread) = self.broker.processes.own_numbers(self.caller).ok_or(Errno::SRCH)?;
        let text = if name == "self" { process.to_string() } else { format!("{process}/task/{thread}") };
        Ok(Some(text.into_bytes()))
    }

    /// Returns the target of a link in procfs. It is followed by its text, like any other link, because the file that
    /// is found in the end is judged.
    fn link_of_proc(&self, here: &OwnedFd, name: &OsStr) -> io::Result<LinkTarget> {
        let path = self.broker.processes.path_of(here)?;
        // The target reveals something about the process that the link belongs to; links at the top lead to the
        // caller's own.
        if fstat(here)?.st_ino != TOP_OF_PROC {
            self.broker.check_in_sight(self.caller, here)?;
        }
        let number = || std::str::from_utf8(name.as_bytes()).ok()?.parse::<i32>().ok();
        if let Some((process, _)) = self.broker.processes.own_numbers(self.caller)
            && path.ends_with(format!("/{process}/fd").as_bytes())
            && let Some(number) = number()
        {
            return Ok(LinkTarget::Descriptor(number));
        }
        let text = readlinkat(here, name, Vec::new())?.into_bytes();
        let is_file_of_another = path.ends_with(b"/fd") || path.ends_with(b"/map_files");
        // A pipe or socket can only be opened here by the process that holds it.
        if is_file_of_another && !text.starts_with(b"/") {
            return Err(Errno::ACCESS);
        }
        Ok(LinkTarget::Path(text))
    }
}

enum LinkTarget {
    Path(Vec<u8>),
    Descriptor(i32),
}

fn reopen(open: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    io::fcntl_dupfd_cloexec(open, 3)
}

/// Splits a path into names; a trailing slash requires a directory.
fn names(text: &[u8]) -> impl Iterator<Item = OsString> + '_ {
    let is_name = |name: &&[u8]| !name.is_empty();
    let names = text.split(|byte| *byte == b'/').filter(is_name);
    let at_end = text.ends_with(b"/").then_some(b".".as_slice());
    names.chain(at_end).map(|name| OsString::from_vec(name.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_fall_into_names() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(names(text.as_bytes()).collect::<Vec<_>>(), expected, "{text}");
        };
        check("/a//b", &["a", "b"]);
        check("a/", &["a", "."]);
        check("../a/.", &["..", "a", "."]);
        check("/", &["."]);
    }

    #[test]
    fn what_is_not_there_is_told_from_what_is_not_understood() {
        let place = tempfile::tempdir().expect("a directory");
        let open = std::fs::File::open(place.path()).expect("open");
        std::os::unix::fs::symlink("/proc/none", place.path().join("link")).expect("a link");
        for (text, nowhere) in [("x", true), ("x/y", false), ("link", false), ("x/", false)] {
            assert_eq!(ends_nowhere(open.as_fd(), text.as_bytes()), nowhere, "{text}");
        }
    }
}
