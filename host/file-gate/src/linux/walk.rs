//! Walking a directory tree on descriptors: each step opens one name below a directory that is open already, and
//! follows no link, so nothing can lead elsewhere.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use portcullis_decision::request::PathKind;
use rustix::fs::{Dir, FileType, OFlags};
use rustix::io::Errno;

use crate::search::{Flow, IgnoreFiles, SearchEnd, SearchError, SearchGuard};
use crate::system::ignores::{Ignores, Texts};
use crate::system::kernel::{self, Descriptors, Status, failure};
use crate::system::locate::{self, Root};
use crate::system::located::Located;
use crate::view::View;

/// Deepest directory below the start: each level keeps a descriptor, of which a process has 1024 as a rule.
const DEEPEST: usize = 256;
/// Names that one walk looks at; a process that makes names for ever must not keep it going.
const NAMES: u64 = 4_000_000;
/// Longest ignore file that counts.
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

/// A name that the walk came to.
pub(crate) struct Step<'a> {
    /// The directory that has the name.
    pub(crate) directory: &'a OwnedFd,
    pub(crate) name: &'a OsStr,
    /// Canonical.
    pub(crate) path: &'a Path,
    /// Relative to the start.
    pub(crate) relative: &'a Path,
    pub(crate) kind: PathKind,
    /// The device of the directory.
    pub(crate) device: (u32, u32),
}

/// A directory on the way down.
struct Level {
    directory: OwnedFd,
    path: PathBuf,
    relative: PathBuf,
    device: (u32, u32),
    names: std::vec::IntoIter<(OsString, PathKind)>,
}

/// What is done at each name that no rule and no ignore file leaves out, and whether an override of the caller's
/// settles the ignore files' question before.
pub(crate) trait Visitor {
    /// Whether the caller itself leaves a name out or wants it in any case; none: the ignore files say.
    fn wants(&self, path: &Path, is_directory: bool) -> Option<bool>;

    /// Looks at a name.
    fn visit(&mut self, step: &Step<'_>, end: &mut SearchEnd) -> Result<Flow, SearchError>;
}

impl Walk<'_> {
    /// Visits everything below `located`, which is the open directory `start`, in the order of the names' bytes.
    pub(crate) fn run(
        mut self,
        located: &Located,
        start: &OwnedFd,
        visitor: &mut dyn Visitor,
    ) -> Result<SearchEnd, SearchError> {
        let mut ignores = Ignores::new(self.files, &located.canonical);
        self.enter_parents(&located.canonical, &mut ignores);
        let status = Status::of(start).map_err(|errno| failure("look at", &located.canonical, errno))?;
        let mut left = NAMES;
        let opened = self.descriptors.reopen(start.as_fd(), OFlags::RDONLY | OFlags::DIRECTORY);
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
            let step = Step {
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

    /// Opens the directory that `step` names; none where that is no part of the tree any more, or no file system
    /// of files.
    fn below(&mut self, step: &Step<'_>, depth: usize, left: &mut u64) -> Option<Level> {
        if depth >= DEEPEST {
            return None;
        }
        let opened = kernel::open_name(step.directory, step.name, OFlags::DIRECTORY).ok()?;
        let device = Status::of(&opened).ok()?.identity.inode.device;
        if device != step.device && !matches!(kernel::is_kernel_interface(&opened), Ok(false)) {
            return None;
        }
        // Moved since its name was read: what is below it has other paths, which nobody judged.
        if self.descriptors.name_of(opened.as_fd()).ok()? != step.path {
            return None;
        }
        let level = self.descriptors.reopen(opened.as_fd(), OFlags::RDONLY | OFlags::DIRECTORY).and_then(
            |directory| self.level(directory, step.path.to_owned(), step.relative.to_owned(), device, left),
        );
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
                // Some file systems do not say.
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

    /// Goes through the directories above `start`, whose ignore files count below it, too.
    fn enter_parents(&self, start: &Path, ignores: &mut Ignores) {
        let mut above: Vec<&Path> = start.ancestors().skip(1).collect();
        above.reverse();
        for path in above {
            // Where a directory cannot be opened its rules do not count, as with the programs themselves.
            let located = locate::existing(self.descriptors, self.root, self.view, path, OFlags::DIRECTORY);
            let directory = located.as_ref().ok().filter(|located| located.canonical == path);
            let directory = directory.and_then(Located::file);
            let texts = directory.map(|directory| self.texts_above(directory, path)).unwrap_or_default();
            ignores.enter(path, &texts);
        }
    }

    fn texts_above(&self, directory: &OwnedFd, path: &Path) -> Texts {
        let has = |name: &str| Status::of_name(directory, OsStr::new(name)).is_ok();
        Texts {
            own: self.text(directory, path, self.files.own_name),
            ignore: self.text(directory, path, ".ignore"),
            git: self.text(directory, path, ".gitignore"),
            exclude: self.exclude(directory, path),
            is_repository: has(".git") || self.files.also_repository.iter().any(|name| has(name)),
        }
    }

    fn exclude(&self, directory: &OwnedFd, path: &Path) -> Option<Vec<u8>> {
        let git = kernel::open_name(directory, OsStr::new(".git"), OFlags::DIRECTORY).ok()?;
        let info = kernel::open_name(&git, OsStr::new("info"), OFlags::DIRECTORY).ok()?;
        self.text(&info, &path.join(".git/info"), "exclude")
    }

    /// The content of an ignore file, if it may be read: what it hides shows what is in it.
    fn text(&self, directory: &OwnedFd, path: &Path, name: &str) -> Option<Vec<u8>> {
        if name.is_empty() {
            return None;
        }
        let mut path = path.join(name);
        let mut file = kernel::open_name(directory, OsStr::new(name), OFlags::empty()).ok()?;
        let mut status = Status::of(&file).ok()?;
        if status.kind == PathKind::Symlink {
            let located =
                locate::existing(self.descriptors, self.root, self.view, &path, OFlags::empty()).ok()?;
            path.clone_from(&located.canonical);
            file = located.file()?.try_clone().ok()?;
            status = Status::of(&file).ok()?;
        }
        if status.kind != PathKind::File || !matches!(kernel::is_kernel_interface(&file), Ok(false)) {
            return None;
        }
        let may_be_read = || status.links < 2 || self.guard.may_read_linked(status.identity.inode);
        if !self.guard.may_enter(&path, PathKind::File) || !may_be_read() {
            return None;
        }
        let file = self.descriptors.reopen(file.as_fd(), OFlags::RDONLY).ok()?;
        let mut text = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(std::fs::File::from(file), LONGEST_IGNORE_FILE), &mut text)
            .ok()?;
        Some(text)
    }
}
