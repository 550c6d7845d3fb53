//! Paths in a moved directory that lead elsewhere after the move.
//!
//! Rules over names may treat the old and the new place alike, and git may read a file in both as the same kind: a
//! relative path in it that leads up and out of the directory still changes its meaning. So every directory that gets
//! another parent is searched for the files that git reads such paths from. The search reads only names, and the
//! content of those few files.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use portcullis_exec_surface::git::{self, climbs, may_lead};
use portcullis_exec_surface::{Change, Class, Rule, Treatment, class_under};
use portcullis_sandbox::CallDetails;
use rustix::fs::{Dir, FileType, Mode, OFlags, openat, readlinkat};
use rustix::io::{Errno, dup};

use crate::content::permit_judged;
use crate::judge::{NameChange, ask};
use crate::outcome::Stop;
use crate::pending::PendingCall;
use crate::repository::{LEVELS, read};
use crate::resolved_name::{ResolvedName, kind_of, normalize};
use crate::worker::Worker;

/// The number of names that the search examines; a directory with more of them cannot be moved to another parent.
const LOOKED_AT: usize = 1_000_000;
/// The number of directories that may wait for the search; each is an open file descriptor.
pub(super) const LINKS_AT_ONCE: usize = 256;

/// A symbolic link in a moved directory that leads out of it, and so elsewhere after the move.
pub(super) struct LeadsOut {
    pub(super) holder: OwnedFd,
    pub(super) target: Vec<u8>,
    /// Its path after the move.
    pub(super) path: PathBuf,
}

/// Judges the paths that lead elsewhere once the directory `old` has the name `new`, and returns the links among them.
pub(super) fn permit_leading(
    worker: &Worker,
    pending: &PendingCall,
    old: &ResolvedName,
    new: &ResolvedName,
) -> Result<Vec<LeadsOut>, Stop> {
    // Git resolves paths relative to the parent of a directory named `.git`, and relative to any other directory
    // itself.
    let is_git = |place: &ResolvedName| place.name.to_bytes().eq_ignore_ascii_case(b".git");
    if old.path.parent() == new.path.parent() && !is_git(old) && !is_git(new) {
        return Ok(Vec::new());
    }
    let (top, left) = (&old.path, LOOKED_AT);
    let mut leading =
        Leading { worker, pending, top, old: top.clone(), new: new.path.clone(), left, links: Vec::new() };
    leading.below(old.directory.as_fd(), &old.name, LEVELS)?;
    Ok(leading.links)
}

struct Leading<'a> {
    worker: &'a Worker,
    pending: &'a PendingCall,
    /// The directory that moves.
    top: &'a Path,
    /// The path of the examined name, before and after the move.
    old: PathBuf,
    new: PathBuf,
    left: usize,
    links: Vec<LeadsOut>,
}

impl Leading<'_> {
    fn below(&mut self, holder: BorrowedFd<'_>, name: &CStr, levels: usize) -> Result<(), Stop> {
        let levels = levels.checked_sub(1).ok_or(Errno::NAMETOOLONG)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A directory that cannot be read cannot be judged, so this error refuses the move.
        let open = openat(holder, name, flags, Mode::empty())?;
        for entry in Dir::read_from(&open)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.left = self.left.checked_sub(1).ok_or(Errno::ACCESS)?;
            let told = entry.file_type();
            let kind = if told == FileType::Unknown { kind_of(open.as_fd(), name)? } else { told };
            let component = OsStr::from_bytes(name.to_bytes());
            if kind == FileType::RegularFile && !may_lead(component) {
                continue;
            }
            self.old.push(component);
            self.new.push(component);
            match kind {
                FileType::Directory => self.below(open.as_fd(), name, levels)?,
                FileType::RegularFile => self.file(open.as_fd(), name)?,
                FileType::Symlink => self.link(open.as_fd(), name)?,
                FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => {}
            }
            self.old.pop();
            self.new.pop();
        }
        Ok(())
    }

    fn file(&self, holder: BorrowedFd<'_>, name: &CStr) -> Result<(), Stop> {
        let Class::Judged(rule, content) = self.class(Change::Install) else { return Ok(()) };
        if !content.leads() {
            return Ok(());
        }
        let text = read(holder, name, content)?.ok_or(Errno::NOENT)?;
        let paths = (self.old.as_path(), self.new.as_path());
        let judgement = self.worker.broker.site(|site| git::judge_moved(content, paths, &text, site));
        permit_judged(self.pending, &judgement, (rule, &text), &self.place(holder, name)?)
    }

    /// Records a link if it leads out of the moved directory. Links within a repository belong to the user; they lead
    /// elsewhere as well, unless their target moves along.
    fn link(&mut self, holder: BorrowedFd<'_>, name: &CStr) -> Result<(), Stop> {
        let target = readlinkat(holder, name, Vec::new())?;
        let target = OsStr::from_bytes(target.to_bytes());
        let aim = self.old.parent().unwrap_or(Path::new("/")).join(target);
        if !climbs(target.as_bytes()) || normalize(&aim).starts_with(self.top) {
            return Ok(());
        }
        // Each entry holds a file descriptor; one more than can be examined is enough to detect that there are too
        // many.
        if self.links.len() <= LINKS_AT_ONCE {
            let (holder, path) = (dup(holder)?, self.new.clone());
            self.links.push(LeadsOut { holder, target: target.as_bytes().to_vec(), path });
        }
        match self.class(Change::Symlink) {
            Class::Asked(rule) => {
                let doing = NameChange::new(Change::Symlink, CallDetails::Symlink(target.to_owned()));
                ask(self.pending, &doing, &self.place(holder, name)?, rule.id)
            }
            Class::Denied(_) => Err(Errno::ACCESS.into()),
            Class::Free | Class::Walk | Class::Completes(_) | Class::Judged(..) => Ok(()),
        }
    }

    /// Returns how git treats the examined name at its old place.
    fn class(&self, change: Change) -> Class {
        let broker = self.worker.broker;
        let holds = |rule: &'static Rule| rule.anywhere == Treatment::Judged && broker.holds(rule);
        broker.site(|site| class_under(&self.old, change, site, &holds))
    }

    /// Returns the place of the examined name after the move.
    fn place(&self, holder: BorrowedFd<'_>, name: &CStr) -> Result<ResolvedName, Errno> {
        let directory = dup(holder)?;
        Ok(ResolvedName { directory, name: name.to_owned(), path: self.new.clone(), as_directory: false })
    }
}
