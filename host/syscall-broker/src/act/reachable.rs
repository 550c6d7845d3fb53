//! Names that become reachable for the user through a link or a moved directory.
//!
//! In a directory that a command itself has made, it may freely create names that the user's tools execute, because the
//! user has no reason to go there. Before such a directory takes a user's place, or a link in a user's place leads to
//! it, its content is searched; from then on it no longer counts as the command's own.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use portcullis_exec_surface::{Class, PACKAGES, Rule, Treatment, class_under};
use portcullis_sandbox::CallDetails;
use rustix::fs::{Dir, FileType, Mode, OFlags, openat, readlinkat};
use rustix::io::{Errno, dup};

use super::relative_links::{LINKS_AT_ONCE, LeadsOut};
use crate::broker::Broker;
use crate::identity::{Identity, Moving, Upwards, above, identify, look};
use crate::judge::{NameChange, SYMBOLIC_LINKS, ask, ask_about_reachable};
use crate::outcome::Stop;
use crate::pending::PendingCall;
use crate::proc_paths::is_proc;
use crate::repository::LEVELS;
use crate::resolved_name::{ResolvedName, change_for, has_packages, kind_of};
use crate::user_places::Reached;
use crate::worker::Worker;

/// The number of names that the search examines; if there are more, the user is asked.
const LOOKED_AT: usize = 50_000;
/// The number of symbolic links that the search follows, the same as in the kernel.
const LINKS: usize = 40;
/// Whether `new`, where a link or a moved directory is to be, is a user's place.
pub(super) fn is_users_place(broker: &Broker, new: &ResolvedName) -> bool {
    !has_packages(&new.path) && (broker.known.cover(new, None) || stands_users(broker, new))
}

/// Whether a directory or link exists there that was not made in this session.
pub(super) fn stands_users(broker: &Broker, place: &ResolvedName) -> bool {
    match look(&place.directory, &place.name) {
        Ok((found, FileType::Directory | FileType::Symlink)) => !broker.known.is_ours(&found),
        Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => false,
        // A name that cannot be examined may be the user's.
        Err(_) => true,
    }
}

/// Leads to a question about a link at `new` if that is a user's place and the link leads to names that the user's
/// tools execute. Returns the user's places that the link adds; an empty value if `doing` makes no link.
pub(super) fn permit_link(
    worker: &Worker,
    pending: &PendingCall,
    doing: &NameChange,
    new: &ResolvedName,
) -> Result<Reached, Stop> {
    let CallDetails::Symlink(target) = &doing.deed else { return Ok(Reached::default()) };
    if !is_users_place(worker.broker, new) {
        return Ok(Reached::default());
    }
    worker.must_be_alone()?;
    let mut search = Search::new(worker.broker, pending, None)?;
    search.link(new.directory.as_fd(), target.as_bytes(), &new.path)?;
    search.permit(pending, doing, new)
}

/// The same for a directory that moves to `new`, a user's place. The caller has judged the names in it under their new
/// paths; this function examines its links.
pub(super) fn permit_directory(
    worker: &Worker,
    pending: &PendingCall,
    doing: &NameChange,
    (old, new): (&ResolvedName, &ResolvedName),
    moving: &Moving<'_>,
) -> Result<Reached, Stop> {
    let mut search = Search::new(worker.broker, pending, Some(moving))?;
    let open = open_directory(old.directory.as_fd(), &old.name)?;
    search.reached.directories.push(moving.identity().clone());
    search.remember(Pending { open, path: new.path.clone(), is_judged: true })?;
    search.permit(pending, doing, new)
}

/// The same for a directory of the user that moves. Tools that search parent directories then find those of the new
/// place, and links that lead out of the directory get other targets.
pub(super) fn permit_surroundings(
    worker: &Worker,
    pending: &PendingCall,
    doing: &NameChange,
    new: &ResolvedName,
    (moving, links): (&Moving<'_>, &[LeadsOut]),
) -> Result<Reached, Stop> {
    let mut search = Search::new(worker.broker, pending, Some(moving))?;
    search.surroundings(new.directory.as_fd())?;
    search.is_unclear |= links.len() > LINKS_AT_ONCE;
    for LeadsOut { holder, target, path } in links.iter().filter(|link| !has_packages(&link.path)) {
        search.link(holder.as_fd(), target, path)?;
    }
    search.permit(pending, doing, new)
}

/// The end of a link.
enum End {
    Directory(OwnedFd),
    /// A file, or no file at all.
    NoDirectory,
    /// A directory in which commands create names without a judgement, or a path that means something else to the user.
    Unclear,
}

/// A directory whose names will be examined, as if its path were `path`.
struct Pending {
    open: OwnedFd,
    path: PathBuf,
    /// Whether its own names have been judged already; the targets of its links have not.
    is_judged: bool,
}

struct Search<'a> {
    broker: &'a Broker,
    root: BorrowedFd<'a>,
    moving: Option<&'a Moving<'a>>,
    pending: Vec<Pending>,
    /// The names that a rule matches, each with the rule.
    found: BTreeSet<(&'static str, PathBuf)>,
    is_unclear: bool,
    reached: Reached,
    seen: HashSet<Identity>,
    left: usize,
}

impl<'a> Search<'a> {
    fn new(
        broker: &'a Broker,
        pending: &'a PendingCall,
        moving: Option<&'a Moving<'a>>,
    ) -> Result<Self, Errno> {
        Ok(Self {
            broker,
            root: broker.processes.root(&pending.caller)?,
            moving,
            pending: Vec::new(),
            found: BTreeSet::new(),
            is_unclear: false,
            reached: Reached::default(),
            seen: HashSet::new(),
            left: LOOKED_AT,
        })
    }

    /// Examines all pending directories; leads to one question for each rule about the names that were found.
    ///
    /// An answer holds for the names that were found before the question. Commands continue while the user decides, and
    /// a name that they add behind the link meanwhile leads to another question.
    fn permit(
        mut self,
        pending: &PendingCall,
        doing: &NameChange,
        place: &ResolvedName,
    ) -> Result<Reached, Stop> {
        while let Some(Pending { open, path, is_judged }) = self.pending.pop() {
            self.directory(open.as_fd(), (&path, is_judged), LEVELS)?;
        }
        let is_lifted = |id: &str| self.broker.lifted.iter().any(|lifted| lifted == id);
        if self.is_unclear && !is_lifted(SYMBOLIC_LINKS) {
            ask(pending, doing, place, SYMBOLIC_LINKS)?;
        }
        let names: Vec<&[u8]> = self.found.iter().map(|(_, path)| path.as_os_str().as_bytes()).collect();
        let reachable = names.join(&0);
        let rules: BTreeSet<&str> = self.found.iter().map(|(rule, _)| *rule).collect();
        for rule in rules {
            ask_about_reachable(pending, doing, place, rule, reachable.clone())?;
        }
        Ok(self.reached)
    }

    /// Adds a directory to the pending ones, unless it was examined before.
    fn remember(&mut self, pending: Pending) -> Result<(), Errno> {
        if !self.seen.contains(&identify(&pending.open, c"")?) {
            self.pending.push(pending);
        }
        Ok(())
    }

    /// Examines the target of a link at `path`, in `holder`.
    fn link(&mut self, holder: BorrowedFd<'_>, target: &[u8], path: &Path) -> Result<(), Errno> {
        match self.follow(holder, target) {
            Ok(End::NoDirectory) => {}
            Ok(End::Directory(end)) if self.pending.len() < LINKS_AT_ONCE => self.end(end, path)?,
            Ok(End::Directory(_) | End::Unclear) | Err(_) => self.is_unclear = true,
        }
        Ok(())
    }

    /// Examines the directory that a link at `path` leads to.
    fn end(&mut self, end: OwnedFd, path: &Path) -> Result<(), Errno> {
        match self.territory(&self.path_of(end.as_fd())?) {
            Permission::Outside => {}
            Permission::Around | Permission::Unclear => self.is_unclear = true,
            Permission::Judged => {
                self.reached.directories.push(identify(&end, c"")?);
                self.surroundings(end.as_fd())?;
                self.remember(Pending { open: end, path: path.to_owned(), is_judged: false })?;
            }
        }
        Ok(())
    }

    /// Examines the outermost directory made by commands that contains `inner`: tools search parent directories of the
    /// one in which they start.
    fn surroundings(&mut self, inner: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut outermost = None;
        for found in Upwards::from(inner, self.moving) {
            let (open, identity) = found?;
            if self.broker.known.is_made(&identity) {
                outermost = Some((open, identity));
            }
        }
        let Some((open, identity)) = outermost else { return Ok(()) };
        self.reached.directories.push(identity);
        let path = self.path_of(open.as_fd())?;
        self.remember(Pending { open, path, is_judged: false })
    }

    fn directory(
        &mut self,
        directory: BorrowedFd<'_>,
        (path, is_judged): (&Path, bool),
        levels: usize,
    ) -> Result<(), Errno> {
        let identity = identify(directory, c"")?;
        if !self.seen.insert(identity) {
            return Ok(());
        }
        let Some(levels) = levels.checked_sub(1) else {
            self.is_unclear = true;
            return Ok(());
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(open) = openat(directory, c".", flags, Mode::empty()) else {
            // A directory that cannot be read cannot be judged. Closed ones are empty.
            self.is_unclear |= !self.broker.closed.contains(&self.path_of(directory)?);
            return Ok(());
        };
        for entry in Dir::read_from(&open)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let Some(left) = self.left.checked_sub(1) else {
                self.is_unclear = true;
                return Ok(());
            };
            self.left = left;
            let told = entry.file_type();
            let kind = if told == FileType::Unknown { kind_of(open.as_fd(), name)? } else { told };
            let path = path.join(OsStr::from_bytes(name.to_bytes()));
            // The user does not work inside package directories.
            if kind == FileType::Directory && name.to_bytes() != PACKAGES.as_bytes() {
                let below = open_directory(open.as_fd(), name)?;
                self.directory(below.as_fd(), (&path, is_judged), levels)?;
            } else if kind != FileType::Directory {
                self.file(&open, name, (&path, is_judged), kind)?;
            }
        }
        Ok(())
    }

    fn file(
        &mut self,
        holder: &OwnedFd,
        name: &CStr,
        (path, is_judged): (&Path, bool),
        kind: FileType,
    ) -> Result<(), Errno> {
        if !is_judged {
            let holds = |rule: &'static Rule| rule.anywhere == Treatment::Asked && self.broker.holds(rule);
            let class = self.broker.site(|site| class_under(path, change_for(kind), site, &holds));
            if let Class::Asked(rule) = class {
                self.found.insert((rule.id, path.to_owned()));
            }
        }
        if kind != FileType::Symlink {
            return Ok(());
        }
        let target = readlinkat(holder, name, Vec::new())?;
        self.link(holder.as_fd(), target.to_bytes(), path)
    }

    /// Follows a link in `holder` to its end, and records every name on the way at which commands can put another file.
    fn follow(&mut self, holder: BorrowedFd<'_>, target: &[u8]) -> Result<End, Errno> {
        let mut here = dup(if target.starts_with(b"/") { self.root } else { holder })?;
        let mut left: VecDeque<Vec<u8>> = components(target).collect();
        let mut links = LINKS;
        while let Some(name) = left.pop_front() {
            if name == b".." {
                here = above(&here, self.moving)?;
                continue;
            }
            let there = self.path_of(here.as_fd())?.join(OsStr::from_bytes(&name));
            let territory = self.territory(&there);
            if is_proc(&here) || territory == Permission::Unclear {
                return Ok(End::Unclear);
            }
            let name = std::ffi::CString::new(name).map_err(|_nul| Errno::INVAL)?;
            let (found, kind) = match look(&here, &name) {
                Ok((found, kind)) => (Some(found), kind),
                Err(Errno::NOENT) => (None, FileType::Unknown),
                Err(error) => return Err(error),
            };
            let is_users = found.is_some_and(|found| !self.broker.known.is_made(&found));
            let is_way = matches!(kind, FileType::Directory | FileType::Symlink);
            // A directory or link of the user becomes a user's place when a command removes it, so it is not recorded
            // here.
            if territory == Permission::Judged && !(is_users && is_way) {
                self.reached.names.push((identify(&here, c"")?, name.to_bytes().to_vec()));
            }
            match kind {
                FileType::Directory => here = open_directory(here.as_fd(), &name)?,
                FileType::Symlink => {
                    links = links.checked_sub(1).ok_or(Errno::LOOP)?;
                    let target = readlinkat(&here, &name, Vec::new())?.into_bytes();
                    if target.starts_with(b"/") {
                        here = dup(self.root)?;
                    }
                    components(&target).rev().for_each(|name| left.push_front(name));
                }
                FileType::RegularFile
                | FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => return Ok(End::NoDirectory),
            }
        }
        Ok(End::Directory(here))
    }

    fn territory(&self, path: &Path) -> Permission {
        let contains_judged = || self.broker.judged.iter().any(|place| place.starts_with(path));
        let is_special = ["/proc", "/sys", "/dev"].iter().any(|top| path.starts_with(top));
        if is_special || self.broker.is_free(path) {
            Permission::Unclear
        } else if self.broker.is_judged(path) {
            if has_packages(path) { Permission::Unclear } else { Permission::Judged }
        } else if self.broker.judged.iter().any(|place| place == path) {
            Permission::Judged
        } else if contains_judged() {
            Permission::Around
        } else {
            Permission::Outside
        }
    }

    fn path_of(&self, open: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
        Ok(PathBuf::from(OsStr::from_bytes(&self.broker.processes.path_of(open)?)))
    }
}

/// The permissions of commands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permission {
    /// Names are judged there.
    Judged,
    /// Commands may not change anything there.
    Outside,
    /// Commands may not change anything there, but further below.
    Around,
    /// Commands may create any name there, or the path means something else to the user.
    Unclear,
}

fn open_directory(holder: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(holder, name, flags, Mode::empty())
}

/// Returns the components of a path without `.`.
fn components(path: &[u8]) -> impl DoubleEndedIterator<Item = Vec<u8>> + '_ {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".").map(<[u8]>::to_vec)
}
