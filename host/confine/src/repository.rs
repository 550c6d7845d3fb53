//! A directory that becomes a repository is looked into first, as if it were one already.
//!
//! What is judged by its content is replaced by a copy that nobody else has ever had open: whoever wrote the text may
//! still hold its file, or have it mapped, and could change it after it was looked at.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use portcullis_names::git::{self, Content, Judgement};
use portcullis_names::{Change, Class, EXAMINED, Rule, Site, class_under};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, Uid, fchmod,
    fchown, fstat, futimens, linkat, openat, statat, unlinkat,
};
use rustix::io::Errno;

/// How many names are looked at in a directory that becomes a repository.
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
/// How many levels of directories are looked into. There can be far more than fit a path, and than fit the stack.
pub(crate) const LEVELS: usize = 256;

/// Makes sure that a directory may become a repository: everything in it that git reads is harmless, and replaced by a
/// copy. `path` is the directory's; `roots` and `lifted` are those of [`Site::roots`] and the ids of rules that do not
/// hold. The caller has the [`NameOrder`](crate::NameOrder).
///
/// # Errors
/// When something in it does harm, or cannot be judged.
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

/// What a directory is examined with.
#[derive(Clone, Copy)]
pub(crate) struct Examiner<'a> {
    pub(crate) roots: &'a [PathBuf],
    /// Ids of rules on names that do not hold.
    pub(crate) lifted: &'a [String],
    /// `/proc/self/fd`.
    pub(crate) own_descriptors: BorrowedFd<'a>,
}

impl Examiner<'_> {
    /// Looks at what lies in the directory `holder`, which is called `directory`, as if it were a repository.
    pub(crate) fn examine(self, directory: &Path, holder: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut walk = Walk::of(self, directory);
        for_each_name(holder, c".", |holder, name| walk.at(holder, name, directory))
    }

    /// Looks at what lies in the directory `name` in `holder`, as if it had the path `path` in `repository`.
    pub(crate) fn examine_part(
        self,
        repository: &Path,
        (holder, name): (BorrowedFd<'_>, &CStr),
        path: &Path,
    ) -> Result<(), Errno> {
        Walk::of(self, repository).below(holder, name, path)
    }

    fn holds(self, rule: &Rule) -> bool {
        !self.lifted.iter().any(|lifted| lifted == rule.id)
    }

    /// What surrounds paths if `directory` is a repository.
    fn assuming<T>(self, directory: &Path, ask: impl FnOnce(&Site<'_>) -> T) -> T {
        let parts: Vec<PathBuf> =
            ["HEAD", "objects", "refs"].iter().map(|part| directory.join(part)).collect();
        site(self.roots, |site| {
            let exists = |path: &Path| parts.iter().any(|part| part == path) || (site.exists)(path);
            ask(&Site { exists: &exists, ..*site })
        })
    }
}

/// What surrounds paths, as this process sees it. Nothing may be renamed while it is asked, so that a path means what it
/// meant.
pub(crate) fn site<T>(roots: &[PathBuf], ask: impl FnOnce(&Site<'_>) -> T) -> T {
    // What cannot be looked at may be there: whoever calls can take away the right to look.
    let is_absent = |error: Errno| matches!(error, Errno::NOENT | Errno::NOTDIR);
    let exists = |path: &Path| !statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).is_err_and(is_absent);
    let is_link = |path: &Path| match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(status) => FileType::from_raw_mode(status.st_mode) == FileType::Symlink,
        Err(error) => !is_absent(error),
    };
    let project = roots.first().map_or(Path::new("/"), PathBuf::as_path);
    ask(&Site { exists: &exists, is_link: &is_link, ..Site::of(project, roots) })
}

/// A walk through a directory that becomes a repository.
struct Walk<'a> {
    examiner: Examiner<'a>,
    repository: &'a Path,
    left: usize,
    levels_left: usize,
}

impl<'a> Walk<'a> {
    fn of(examiner: Examiner<'a>, repository: &'a Path) -> Self {
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

    /// Whether git uses what lies in a directory, and writes it more than once: not objects, of which there are very
    /// many, nor the files of a project that has the shape of a repository by chance.
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

/// Puts a new file with this text in the place of a name. `own_descriptors` is `/proc/self/fd`.
pub(crate) fn replace_by_copy(
    own_descriptors: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    name: &CStr,
    text: &[u8],
) -> Result<(), Errno> {
    let status = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let copy = unnamed(directory, Mode::from_raw_mode(status.st_mode & 0o7777))?;
    // Root's host leaves it to whom it belongs. A broker may not, and makes it as the one whom commands act as.
    let _may_fail = fchown(&copy, Some(Uid::from_raw(status.st_uid)), Some(Gid::from_raw(status.st_gid)));
    let mut copy = File::from(copy);
    copy.write_all(text).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    // By the time of its index git tells which files have changed since.
    futimens(&copy, &times(&status))?;
    unlinkat(directory, name, AtFlags::empty())?;
    give_name(own_descriptors, copy.as_fd(), directory, name)
}

/// Makes a file without a name, of just this mode.
pub(crate) fn unnamed(directory: BorrowedFd<'_>, mode: Mode) -> Result<OwnedFd, Errno> {
    let file = openat(directory, c".", OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR)?;
    fchmod(&file, mode)?;
    Ok(file)
}

/// Gives a file without a name one.
pub(crate) fn give_name(
    own_descriptors: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    name: &CStr,
) -> Result<(), Errno> {
    let number = file.as_raw_fd().to_string();
    linkat(own_descriptors, number, directory, name, AtFlags::SYMLINK_FOLLOW)
}

/// When a file was last written; its last access is now.
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
    // What cannot be looked into cannot be judged.
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

/// Reads a file that is to be judged; none where there is no such name.
pub(crate) fn read(
    directory: BorrowedFd<'_>,
    name: &CStr,
    content: Content,
) -> Result<Option<Vec<u8>>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match openat(directory, name, flags, Mode::empty()) {
        Ok(file) => read_whole(file, content).map(Some),
        Err(Errno::NOENT) => Ok(None),
        // A link is no file of git's.
        Err(Errno::LOOP) => Err(Errno::ACCESS),
        Err(error) => Err(error),
    }
}

/// Reads all of a file that is short enough to be judged.
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
