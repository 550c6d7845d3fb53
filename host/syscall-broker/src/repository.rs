//! Examines a directory before it becomes a git repository, as if it were one already.
//!
//! Files that are judged by content are replaced by a fresh copy that no other process has ever had open: the writer
//! may still hold the original open, or have it mapped, and could change it after the examination.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use portcullis_exec_surface::git::{self, Content, Judgement};
use portcullis_exec_surface::{Change, Class, EXAMINED, Rule, Site, class_under};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, Uid, fchmod,
    fchown, fstat, futimens, linkat, openat, statat, unlinkat,
};
use rustix::io::Errno;

/// The largest number of names that are examined in a directory that becomes a repository.
const LOOKED_AT: usize = 50_000;
/// Directories of a repository in which no name has a meaning of its own, and git writes; in lower case.
const WRITTEN: [&str; 11] = [
    "annex",
    "fsmonitor--daemon",
    "lfs",
    "logs",
    "lost-found",
    "notes_merge_worktree",
    "objects",
    "refs",
    "reftable",
    "rr-cache",
    "svn",
];
/// The largest depth of directories that is examined. They can be far deeper than fits a path, or the stack.
pub(crate) const LEVELS: usize = 256;

/// Checks that a directory may become a repository: every file in it that git reads must be harmless, and is replaced
/// by a copy. `path` is the directory's path; `roots` are those of [`Site::roots`], and `lifted` are the ids of
/// disabled rules. The caller holds the [`NameOrder`](portcullis_sandbox::NameOrder).
///
/// # Errors
/// If something in the directory does harm, or cannot be judged.
pub fn examine_repository(
    directory: BorrowedFd<'_>,
    path: &Path,
    roots: &[PathBuf],
    lifted: &[String],
) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let own_descriptors = openat(CWD, "/proc/self/fd", flags, Mode::empty())?;
    let examiner = Examiner { roots, lifted, own_descriptors: own_descriptors.as_fd() };
    Ok(examiner.examine(path, directory)?)
}

/// The context of an examination.
#[derive(Clone, Copy)]
pub(crate) struct Examiner<'a> {
    pub(crate) roots: &'a [PathBuf],
    /// Ids of disabled rules on names.
    pub(crate) lifted: &'a [String],
    /// `/proc/self/fd`.
    pub(crate) own_descriptors: BorrowedFd<'a>,
}

impl Examiner<'_> {
    /// Examines the directory `holder`, whose path is `directory`, as if it were a repository.
    pub(crate) fn examine(self, directory: &Path, holder: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut walk = Walk::new(self, directory);
        for_each_name(holder, c".", |holder, name| walk.at(holder, name, directory))
    }

    /// Examines the directory `name` in `holder`, as if it had the path `path` in `repository`.
    pub(crate) fn examine_part(
        self,
        repository: &Path,
        (holder, name): (BorrowedFd<'_>, &CStr),
        path: &Path,
    ) -> Result<(), Errno> {
        Walk::new(self, repository).below(holder, name, path)
    }

    fn holds(self, rule: &Rule) -> bool {
        !self.lifted.iter().any(|lifted| lifted == rule.id)
    }

    /// Calls `ask` with the [`Site`] as it would be if `directory` were a repository.
    fn assuming<T>(self, directory: &Path, ask: impl FnOnce(&Site<'_>) -> T) -> T {
        let parts: Vec<PathBuf> =
            ["HEAD", "objects", "refs"].iter().map(|part| directory.join(part)).collect();
        site(self.roots, |site| {
            let exists = |path: &Path| parts.iter().any(|part| part == path) || (site.exists)(path);
            ask(&Site { exists: &exists, ..*site })
        })
    }
}

/// Calls `ask` with the [`Site`] as this process sees it. No name may change meanwhile, so that a path keeps its
/// meaning.
pub(crate) fn site<T>(roots: &[PathBuf], ask: impl FnOnce(&Site<'_>) -> T) -> T {
    // A path that cannot be examined counts as existing: the calling command may have removed the permission to look.
    let is_absent = |error: Errno| matches!(error, Errno::NOENT | Errno::NOTDIR);
    let exists = |path: &Path| !statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).is_err_and(is_absent);
    let is_link = |path: &Path| match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(status) => FileType::from_raw_mode(status.st_mode) == FileType::Symlink,
        Err(error) => !is_absent(error),
    };
    let project = roots.first().map_or(Path::new("/"), PathBuf::as_path);
    ask(&Site { exists: &exists, is_link: &is_link, ..Site::without_files(project, roots) })
}

/// A walk through a directory that becomes a repository.
struct Walk<'a> {
    examiner: Examiner<'a>,
    repository: &'a Path,
    left: usize,
    levels_left: usize,
}

impl<'a> Walk<'a> {
    fn new(examiner: Examiner<'a>, repository: &'a Path) -> Self {
        Self { examiner, repository, left: LOOKED_AT, levels_left: LEVELS }
    }

    fn at(&mut self, holder: BorrowedFd<'_>, name: &CStr, directory: &Path) -> Result<(), Errno> {
        let kind = match statat(holder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) => FileType::from_raw_mode(status.st_mode),
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error),
        };
        self.left = self.left.checked_sub(1).ok_or(Errno::ACCESS)?;
        let path = directory.join(std::ffi::OsStr::from_bytes(name.to_bytes()));
        let change = match kind {
            FileType::Directory => Change::MakeDirectory,
            FileType::RegularFile => Change::Install,
            FileType::Symlink => Change::Symlink,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Change::Special,
        };
        let holds = |rule: &'static Rule| self.examiner.holds(rule);
        let class = self.examiner.assuming(self.repository, |site| class_under(&path, change, site, &holds));
        match class {
            Class::Asked(_) | Class::Denied(_) => return Err(Errno::ACCESS),
            Class::Judged(_, content) => self.judge(holder, name, &path, content)?,
            Class::Free | Class::Walk | Class::Completes(_) => {}
        }
        let is_to_look_into = kind == FileType::Directory && self.means_something(&path);
        if is_to_look_into { self.below(holder, name, &path) } else { Ok(()) }
    }

    /// True if git uses the content of a directory, and writes it more than once. False for objects, of which there are
    /// very many, and for the files of a project that has the shape of a repository by chance.
    fn means_something(&self, path: &Path) -> bool {
        let inside = path.strip_prefix(self.repository).unwrap_or(path);
        let names: Vec<String> =
            inside.iter().map(|name| name.to_string_lossy().to_ascii_lowercase()).collect();
        match names.as_slice() {
            [first, second] if first == "objects" => second.len() != 2 && second != "pack",
            [first, ..] => EXAMINED.iter().chain(&WRITTEN).any(|known| first == known),
            [] => true,
        }
    }

    fn judge(&self, holder: BorrowedFd<'_>, name: &CStr, path: &Path, content: Content) -> Result<(), Errno> {
        let text = read(holder, name, content)?.ok_or(Errno::NOENT)?;
        let judge = |site: &Site<'_>| git::judge(content, path, None, &text, site);
        if self.examiner.assuming(self.repository, judge) != Judgement::Harmless {
            return Err(Errno::ACCESS);
        }
        replace_by_copy(self.examiner.own_descriptors, holder, name, &text)
    }

    fn below(&mut self, holder: BorrowedFd<'_>, name: &CStr, path: &Path) -> Result<(), Errno> {
        self.levels_left = self.levels_left.checked_sub(1).ok_or(Errno::NAMETOOLONG)?;
        for_each_name(holder, name, |open, name| self.at(open, name, path))?;
        self.levels_left += 1;
        Ok(())
    }
}

/// Replaces a name by a new file with this text. `own_descriptors` is `/proc/self/fd`.
pub(crate) fn replace_by_copy(
    own_descriptors: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    name: &CStr,
    text: &[u8],
) -> Result<(), Errno> {
    let copy = copy(directory, name, text, directory)?;
    unlinkat(directory, name, AtFlags::empty())?;
    give_name(own_descriptors, copy.as_fd(), directory, name)
}

/// Creates a file with this text and without a name in the directory `to`. Mode, owner and time are those of a file.
pub(crate) fn copy(
    directory: BorrowedFd<'_>,
    name: &CStr,
    text: &[u8],
    to: BorrowedFd<'_>,
) -> Result<OwnedFd, Errno> {
    let status = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let copy = unnamed(to, Mode::from_raw_mode(status.st_mode & 0o7777))?;
    // A host that runs as root keeps the owner. A broker may not, and creates the file as the user that commands act
    // as.
    let _may_fail = fchown(&copy, Some(Uid::from_raw(status.st_uid)), Some(Gid::from_raw(status.st_gid)));
    let mut copy = File::from(copy);
    copy.write_all(text).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    // Git detects changed files by the time of its index.
    futimens(&copy, &times(&status))?;
    Ok(copy.into())
}

/// Creates a file without a name (O_TMPFILE), with exactly this mode.
pub(crate) fn unnamed(directory: BorrowedFd<'_>, mode: Mode) -> Result<OwnedFd, Errno> {
    let file = openat(directory, c".", OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR)?;
    fchmod(&file, mode)?;
    Ok(file)
}

/// Gives a file without a name its name.
pub(crate) fn give_name(
    own_descriptors: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    name: &CStr,
) -> Result<(), Errno> {
    let number = file.as_raw_fd().to_string();
    linkat(own_descriptors, number, directory, name, AtFlags::SYMLINK_FOLLOW)
}

/// Returns the file's time of modification; the time of access becomes now.
fn times(status: &Stat) -> Timestamps {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let written = Timespec { tv_sec: status.st_mtime, tv_nsec: status.st_mtime_nsec.cast_signed() };
    Timestamps { last_access: now, last_modification: written }
}

/// Calls `look` for every name in a directory.
pub(crate) fn for_each_name(
    holder: BorrowedFd<'_>,
    name: &CStr,
    mut look: impl FnMut(BorrowedFd<'_>, &CStr) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // A directory that cannot be read cannot be judged.
    let open = openat(holder, name, flags, Mode::empty())?;
    for entry in Dir::read_from(&open)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            look(open.as_fd(), name)?;
        }
    }
    Ok(())
}

/// Reads a file that is to be judged; `None` if the name does not exist.
pub(crate) fn read(
    directory: BorrowedFd<'_>,
    name: &CStr,
    content: Content,
) -> Result<Option<Vec<u8>>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match openat(directory, name, flags, Mode::empty()) {
        Ok(file) => read_whole(file, content).map(Some),
        Err(Errno::NOENT) => Ok(None),
        // Git does not read this file through a symbolic link.
        Err(Errno::LOOP) => Err(Errno::ACCESS),
        Err(error) => Err(error),
    }
}

/// Reads a whole file, if it is short enough to be judged.
pub(crate) fn read_whole(file: OwnedFd, content: Content) -> Result<Vec<u8>, Errno> {
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(Errno::ACCESS);
    }
    let mut text = Vec::new();
    let most = u64::try_from(content.longest()).unwrap_or(u64::MAX).saturating_add(1);
    let read = File::from(file).take(most).read_to_end(&mut text);
    let read = read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    if read <= content.longest() { Ok(text) } else { Err(Errno::ACCESS) }
}
