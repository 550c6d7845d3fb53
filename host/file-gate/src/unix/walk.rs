//! Walks a directory tree by descriptors.
//!
//! Each step opens one name in an open directory and does not follow links, so the walk cannot leave the tree.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use portcullis_decision::request::PathKind;
use rustix::fs::{Dir, FileType, OFlags};
use rustix::io::Errno;

use crate::search::{Flow, IgnoreFiles, SearchEnd, SearchError, SearchGuard};
use crate::system::ignores::{Ignores, Texts};
use crate::system::kernel::{self, Descriptors, Directory, Handle, Last, Status, failure};
use crate::system::locate::{self, Root};
use crate::system::located::{Located, Target};
use crate::view::View;

/// The deepest directory below the start. Each level keeps a file descriptor, and the usual limit of a process is 1024.
const DEEPEST: usize = 256;
/// The most names that one walk visits; a process that keeps creating names must not keep it running forever.
const NAMES: u64 = 4_000_000;
/// The longest part of an ignore file that is read, in bytes.
const LONGEST_IGNORE_FILE: u64 = 1 << 20;

/// A walk below one directory.
pub(crate) struct Walk<'a> {
    pub(crate) descriptors: &'a Descriptors,
    pub(crate) root: Root<'a>,
    pub(crate) view: View,
    pub(crate) guard: &'a dyn SearchGuard,
    pub(crate) files: &'a IgnoreFiles,
    pub(crate) end: SearchEnd,
}

/// A name that the walk has reached.
pub(crate) struct WalkedName<'a> {
    /// The directory that contains the name.
    pub(crate) directory: &'a OwnedFd,
    pub(crate) name: &'a OsStr,
    /// The canonical path.
    pub(crate) path: &'a Path,
    /// The path relative to the start.
    pub(crate) relative: &'a Path,
    pub(crate) kind: PathKind,
    /// The device of the directory.
    pub(crate) device: (u32, u32),
}

/// A directory between the start and the current name.
struct Level {
    directory: OwnedFd,
    path: PathBuf,
    relative: PathBuf,
    device: (u32, u32),
    names: std::vec::IntoIter<(OsString, PathKind)>,
}

/// The action of a walk for each name that no rule and no ignore file leaves out.
pub(crate) trait Visitor {
    /// Returns whether the caller includes or leaves out a name; `None` if the ignore files decide.
    fn wants(&self, path: &Path, is_directory: bool) -> Option<bool>;

    /// Processes a name.
    fn visit(&mut self, step: &WalkedName<'_>, end: &mut SearchEnd) -> Result<Flow, SearchError>;
}

impl Walk<'_> {
    /// Visits all names below `located`, whose open directory is `start`, in byte order.
    pub(crate) fn run(
        mut self,
        located: &Located,
        start: &Handle,
        visitor: &mut dyn Visitor,
    ) -> Result<SearchEnd, SearchError> {
        let mut ignores = Ignores::new(self.files, &located.canonical);
        self.enter_parents(&located.canonical, &mut ignores);
        let status = start.status().map_err(|errno| failure("look at", &located.canonical, errno))?;
        let mut left = NAMES;
        let opened = self.descriptors.reopen(start, OFlags::RDONLY | OFlags::DIRECTORY);
        let mut levels = Vec::new();
        match opened.and_then(|directory| {
            self.level(
                directory,
                located.canonical.clone(),
                PathBuf::new(),
                status.identity.inode.device,
                &mut left,
            )
        }) {
            Ok(level) => {
                self.enter(&level, &mut ignores);
                ignores.started();
                levels.push(level);
            }
            Err(errno) => self.end.failures.push((located.canonical.clone(), errno.into())),
        }
        loop {
            let depth = levels.len();
            let Some(level) = levels.last_mut() else { return Ok(self.end) };
            if self.guard.is_cancelled() {
                return Err(SearchError::Cancelled);
            }
            if left == 0 {
                return Err(SearchError::TooMany { path: located.text.clone(), limit: NAMES });
            }
            let Some((name, kind)) = level.names.next() else {
                levels.pop();
                ignores.leave();
                continue;
            };
            let (path, relative) = (level.path.join(&name), level.relative.join(&name));
            let is_directory = kind == PathKind::Directory;
            let is_left_out = match visitor.wants(&path, is_directory) {
                Some(wanted) => !wanted,
                None => ignores.is_ignored(&path, is_directory),
            };
            if is_left_out || !self.guard.may_enter(&path, kind) {
                continue;
            }
            let step = WalkedName {
                directory: &level.directory,
                name: &name,
                path: &path,
                relative: &relative,
                kind,
                device: level.device,
            };
            if visitor.visit(&step, &mut self.end)? == Flow::Stop {
                return Ok(self.end);
            }
            if is_directory && let Some(below) = self.below(&step, depth, &mut left) {
                self.enter(&below, &mut ignores);
                levels.push(below);
            }
        }
    }

    /// Opens the directory of `step`.
    ///
    /// Returns `None` if it is no longer part of the tree, or is an interface of the kernel.
    fn below(&mut self, step: &WalkedName<'_>, depth: usize, left: &mut u64) -> Option<Level> {
        if depth >= DEEPEST {
            return None;
        }
        let opened = kernel::open_name(step.directory, step.name, step.path).ok()?;
        let status = opened.status().ok()?;
        if status.kind != PathKind::Directory {
            return None;
        }
        let device = status.identity.inode.device;
        if device != step.device && !matches!(kernel::is_kernel_interface(opened.volume()), Ok(false)) {
            return None;
        }
        // If it was moved since its name was read, the files below it have other paths, which were not decided about.
        if opened.place(self.descriptors).ok()?.0 != step.path {
            return None;
        }
        let level =
            self.descriptors.reopen(&opened, OFlags::RDONLY | OFlags::DIRECTORY).and_then(|directory| {
                self.level(directory, step.path.to_owned(), step.relative.to_owned(), device, left)
            });
        level.map_err(|errno| self.end.failures.push((step.path.to_owned(), errno.into()))).ok()
    }

    fn level(
        &self,
        directory: OwnedFd,
        path: PathBuf,
        relative: PathBuf,
        device: (u32, u32),
        left: &mut u64,
    ) -> Result<Level, Errno> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if *left == 0 || self.guard.is_cancelled() {
                break;
            }
            *left -= 1;
            let mut kind = kernel::kind(entry.file_type());
            if entry.file_type() == FileType::Unknown {
                // Some file systems do not report the type.
                let Ok(status) = Status::of_name(&directory, name) else { continue };
                kind = status.kind;
            }
            names.push((name.to_owned(), kind));
        }
        names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Level { directory, path, relative, device, names: names.into_iter() })
    }

    fn enter(&self, level: &Level, ignores: &mut Ignores) {
        let names = level.names.as_slice();
        let has =
            |name: &str| names.binary_search_by(|(known, _)| known.as_os_str().cmp(OsStr::new(name))).is_ok();
        let text = |name: &str| if has(name) { self.text(&level.directory, &level.path, name) } else { None };
        let texts = Texts {
            own: text(self.files.own_name),
            ignore: text(".ignore"),
            git: text(".gitignore"),
            exclude: if has(".git") { self.exclude(&level.directory, &level.path) } else { None },
            is_repository: has(".git") || self.files.also_repository.iter().any(|name| has(name)),
        };
        ignores.enter(&level.path, &texts);
    }

    /// Enters the directories above `start`, whose ignore files also apply below it.
    fn enter_parents(&self, start: &Path, ignores: &mut Ignores) {
        let mut above: Vec<&Path> = start.ancestors().skip(1).collect();
        above.reverse();
        for path in above {
            // The rules of a directory that cannot be opened do not count, as in the search programs themselves.
            let located = locate::existing(self.descriptors, self.root, self.view, path, Last::Directory);
            let directory = located.as_ref().ok().filter(|located| located.canonical == path);
            let directory = directory.and_then(Located::file).and_then(Handle::directory);
            let texts = directory.map(|directory| self.texts_above(directory, path)).unwrap_or_default();
            ignores.enter(path, &texts);
        }
    }

    fn texts_above(&self, directory: impl AsFd + Copy, path: &Path) -> Texts {
        let has = |name: &str| Status::of_name(directory, OsStr::new(name)).is_ok();
        Texts {
            own: self.text(directory, path, self.files.own_name),
            ignore: self.text(directory, path, ".ignore"),
            git: self.text(directory, path, ".gitignore"),
            exclude: self.exclude(directory, path),
            is_repository: has(".git") || self.files.also_repository.iter().any(|name| has(name)),
        }
    }

    fn exclude(&self, directory: impl AsFd, path: &Path) -> Option<Vec<u8>> {
        let (git, info) = (path.join(".git"), path.join(".git/info"));
        let git = Directory::open(directory, OsStr::new(".git"), &git).ok()?;
        let opened = Directory::open(&git, OsStr::new("info"), &info).ok()?;
        self.text(&opened, &info, "exclude")
    }

    /// Returns the content of an ignore file, if it may be read: the names that it hides reveal its content.
    fn text(&self, directory: impl AsFd, path: &Path, name: &str) -> Option<Vec<u8>> {
        if name.is_empty() {
            return None;
        }
        let mut path = path.join(name);
        let mut file = kernel::open_name(directory, OsStr::new(name), &path).ok()?;
        let mut status = file.status().ok()?;
        if status.kind == PathKind::Symlink {
            let located =
                locate::existing(self.descriptors, self.root, self.view, &path, Last::Followed).ok()?;
            let Target::Opened(target) = located.target else { return None };
            (path, file) = (located.canonical, target);
            status = file.status().ok()?;
        }
        if status.kind != PathKind::File || !matches!(kernel::is_kernel_interface(file.volume()), Ok(false)) {
            return None;
        }
        let may_be_read = || status.links < 2 || self.guard.may_read_linked(status.identity.inode);
        if !self.guard.may_enter(&path, PathKind::File) || !may_be_read() {
            return None;
        }
        let file = self.descriptors.reopen(&file, OFlags::RDONLY).ok()?;
        let mut text = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(std::fs::File::from(file), LONGEST_IGNORE_FILE), &mut text)
            .ok()?;
        Some(text)
    }
}
