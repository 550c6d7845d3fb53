//! Finds the names of a file (hard links) in given places, and the symbolic links there.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use portcullis_decision::request::PathKind;
use rustix::fs::{Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::FileError;
use crate::operation::{Inode, Names};
use crate::search::Flow;
use crate::system::kernel::{self, Status, failure};
use crate::system::locate::Root;
use crate::system::located::Located;

/// Maximum number of names to examine for one file. Few projects have more; names beyond it stay unknown.
const NAMES: usize = 1_000_000;
/// Maximum number of names to examine for files to keep back: places with secrets are small.
const KEPT_BACK: usize = 100_000;
/// Deepest directory below a place; each level keeps a descriptor.
const DEEPEST: usize = 256;

/// Finds the names of a located file at and below `tops`.
///
/// A name is counted by its directory, so a directory that moves meanwhile is not counted twice. A link that is
/// created, removed or renamed meanwhile changes the file's time of change, which makes the answer incomplete.
pub(crate) fn names(root: Root<'_>, located: &Located, tops: &[PathBuf]) -> Result<Names, FileError> {
    let file = located.file().ok_or_else(|| FileError::NotFound { path: located.text.clone() })?;
    let look = || file.status().map_err(|errno| failure("look at", &located.canonical, errno));
    let before = look()?;
    let wanted = before.identity.inode;
    let mut known: HashSet<(Inode, OsString)> = HashSet::new();
    let mut paths = Vec::new();
    let links = usize::try_from(before.links).unwrap_or(usize::MAX);
    Places { root, spared: Spared::None, left: NAMES, closed: None }.visit(tops, &mut |at| {
        let is_it = at.number == wanted.number
            && at.directory_inode.device == wanted.device
            && at.status().is_ok_and(|status| status.identity.inode == wanted);
        if is_it && known.insert((at.directory_inode, at.name.to_owned())) {
            paths.push(at.path.join(at.name));
        }
        if known.len() >= links { Flow::Stop } else { Flow::Continue }
    });
    root.still_stands()?;
    let is_complete = known.len() >= links && look()?.identity == before.identity;
    Ok(Names { paths, is_complete, count: before.links, identity: before.identity })
}

/// Finds the files at and below `tops` that have several names, in the host's own view, each with one of them. Leaves
/// out the directory `spared`, and paths that cannot be examined.
#[must_use]
pub fn linked(tops: &[PathBuf], spared: Option<&Path>) -> HashMap<Inode, PathBuf> {
    let mut found = HashMap::new();
    let spared = spared.map_or(Spared::None, Spared::Path);
    Places { root: Root::Host, spared, left: KEPT_BACK, closed: None }.visit(tops, &mut |at| {
        if let Ok(status) = at.status()
            && status.kind == PathKind::File
            && status.links > 1
        {
            found.insert(status.identity.inode, at.path.join(at.name));
        }
        Flow::Continue
    });
    found
}

/// Finds the symbolic links at and below `tops`, in the host's own view, among the first `most` names. Leaves out
/// directories called `spared`, and paths of other users that cannot be examined.
///
/// # Errors
/// A directory that this user owns and cannot search: what is in it can be used again as soon as it is opened.
pub fn symbolic(tops: &[PathBuf], spared: &str, most: usize) -> Result<Vec<PathBuf>, PathBuf> {
    let mut found = Vec::new();
    let spared = Spared::Name(OsStr::new(spared));
    let mut places = Places { root: Root::Host, spared, left: most, closed: None };
    places.visit(tops, &mut |at| {
        if at.is_link() {
            found.push(at.path.join(at.name));
        }
        Flow::Continue
    });
    if let Some(closed) = places.closed {
        return Err(closed);
    }
    // A place may lie in another.
    found.sort();
    found.dedup();
    Ok(found)
}

/// A name that is no directory.
struct At<'a> {
    directory: BorrowedFd<'a>,
    directory_inode: Inode,
    path: &'a Path,
    name: &'a OsStr,
    /// Of its inode, as the directory has it.
    number: u64,
    /// As the directory has it; some file systems do not say.
    kind: FileType,
}

impl At<'_> {
    fn status(&self) -> Result<Status, Errno> {
        Status::of_name(self.directory, self.name)
    }

    fn is_link(&self) -> bool {
        let looks_so = || rustix::fs::readlinkat(self.directory, self.name, Vec::new()).is_ok();
        self.kind == FileType::Symlink || self.kind == FileType::Unknown && looks_so()
    }
}

/// Visits places; paths that cannot be examined are skipped.
struct Places<'a> {
    root: Root<'a>,
    spared: Spared<'a>,
    /// The number of names left to examine.
    left: usize,
    /// A directory that this user owns and cannot search.
    closed: Option<PathBuf>,
}

/// The permissions with which the owner of a directory can search it.
const SEARCHED: u32 = 0o500;

/// Directories that are not searched.
#[derive(Debug, Clone, Copy)]
enum Spared<'a> {
    None,
    /// All of this name.
    Name(&'a OsStr),
    /// The one at this path.
    Path(&'a Path),
}

impl Spared<'_> {
    fn holds(self, directory: &Path, name: &OsStr) -> bool {
        match self {
            Self::None => false,
            Self::Name(spared) => name == spared,
            Self::Path(spared) => spared.file_name() == Some(name) && spared.parent() == Some(directory),
        }
    }
}

/// A directory on the way down, with its subdirectories that are still to visit.
struct Level {
    directory: OwnedFd,
    path: PathBuf,
    below: Vec<OsString>,
}

impl Places<'_> {
    fn visit(&mut self, tops: &[PathBuf], take: &mut dyn FnMut(&At<'_>) -> Flow) {
        for top in tops {
            if self.top(top, take) == Flow::Stop {
                return;
            }
        }
    }

    fn top(&mut self, top: &Path, take: &mut dyn FnMut(&At<'_>) -> Flow) -> Flow {
        let readable = OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let (Some(above), Some(name)) = (top.parent(), top.file_name()) else { return Flow::Continue };
        let Ok(above) = self.root.open_directory(above) else { return Flow::Continue };
        let Ok(status) = Status::of_name(&above, name) else { return Flow::Continue };
        if status.kind != PathKind::Directory {
            let Ok(directory) = Status::read(&above) else { return Flow::Continue };
            let path = top.parent().unwrap_or(top);
            let number = status.identity.inode.number;
            let directory_inode = directory.identity.inode;
            let kind = FileType::Unknown;
            return take(&At { directory: above.as_fd(), directory_inode, path, name, number, kind });
        }
        self.note_closed(&status, top);
        let Ok(first) = open(&above, name, readable) else { return Flow::Continue };
        let mut levels = match self.level(first, top.to_owned(), take) {
            Ok(first) => vec![first],
            Err(flow) => return flow,
        };
        loop {
            let depth = levels.len();
            let Some(level) = levels.last_mut() else { return Flow::Continue };
            let Some(name) = level.below.pop() else {
                levels.pop();
                continue;
            };
            if depth >= DEEPEST {
                continue;
            }
            let path = level.path.join(&name);
            let Ok(directory) = open(&level.directory, &name, readable) else {
                if let Ok(status) = Status::of_name(&level.directory, &name) {
                    self.note_closed(&status, &path);
                }
                continue;
            };
            match self.level(directory, path, take) {
                Ok(level) => levels.push(level),
                Err(Flow::Stop) => return Flow::Stop,
                Err(Flow::Continue) => {}
            }
        }
    }

    /// Notes a directory that its owner can open for himself at any time.
    fn note_closed(&mut self, status: &Status, path: &Path) {
        let user = rustix::process::geteuid();
        let is_closed = status.kind == PathKind::Directory
            && status.mode & SEARCHED != SEARCHED
            && status.owner == user.as_raw()
            && !user.is_root();
        if is_closed {
            self.closed.get_or_insert_with(|| path.to_owned());
        }
    }

    /// Takes every name of a directory; the directories among them are still to come.
    fn level(
        &mut self,
        directory: OwnedFd,
        path: PathBuf,
        take: &mut dyn FnMut(&At<'_>) -> Flow,
    ) -> Result<Level, Flow> {
        let status = Status::read(&directory).map_err(|_| Flow::Continue)?;
        self.note_closed(&status, &path);
        let directory_inode = status.identity.inode;
        let mut below = Vec::new();
        for entry in Dir::read_from(&directory).map_err(|_| Flow::Continue)? {
            let entry = entry.map_err(|_| Flow::Continue)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            self.left = self.left.checked_sub(1).ok_or(Flow::Stop)?;
            let (number, kind) = (entry.ino(), entry.file_type());
            let at = At { directory: directory.as_fd(), directory_inode, path: &path, name, number, kind };
            let is_directory = match kind {
                FileType::Directory => true,
                // Some file systems do not say.
                FileType::Unknown => at.status().is_ok_and(|status| status.kind == PathKind::Directory),
                FileType::RegularFile
                | FileType::Symlink
                | FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice => false,
            };
            if is_directory && !self.spared.holds(&path, name) {
                below.push(name.to_owned());
            } else if !is_directory && take(&at) == Flow::Stop {
                return Err(Flow::Stop);
            }
        }
        Ok(Level { directory, path, below })
    }
}

fn open(directory: impl AsFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | flags;
    let opened = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    // The kernel's own file systems contain no ordinary files, and can be endless.
    if kernel::is_kernel_interface(&opened)? { Err(Errno::NOTSUP) } else { Ok(opened) }
}
