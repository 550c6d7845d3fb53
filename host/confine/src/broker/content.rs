//! Files that are judged by what is in them.
//!
//! What has been judged is put in place as a copy that nobody else has ever had open: whoever wrote the text may
//! still hold its file, or have it mapped, and could change it after it was looked at.

use std::ffi::CStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use portcullis_names::git::{self, Content, Judgement};
use portcullis_names::{Change, Class, EXAMINED, Rule, Site, class_under, completed};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, fchmod, fstat, futimens,
    linkat, openat, statat, unlinkat,
};
use rustix::io::Errno;

use super::Broker;
use super::judge::{ask_about, assuming};
use super::resolve::Place;
use super::worker::{Stop, Turn, Worker};

/// The longest text that is asked about: it is kept until there is an answer.
const ASKED_BYTES: usize = 64 << 10;
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
pub(super) const LEVELS: usize = 256;

impl Broker {
    /// Whether a text may stand at a path in place of what is there.
    pub(super) fn is_harmless(
        &self,
        content: Content,
        path: &Path,
        (previous, text): (Option<&[u8]>, &[u8]),
    ) -> bool {
        self.site(|site| git::judge(content, path, previous, text, site)) == Judgement::Harmless
    }

    /// Judges a file that is to get the name `new`, and leaves a copy of it in its own place.
    pub(super) fn install(
        &self,
        turn: &Turn,
        (rule, content): (&'static Rule, Content),
        old: &Place,
        new: &Place,
    ) -> Result<(), Stop> {
        let text = read(old.directory.as_fd(), &old.name, content)?.ok_or(Errno::NOENT)?;
        let previous = read(new.directory.as_fd(), &new.name, content)?;
        let judgement = self.site(|site| git::judge(content, &new.path, previous.as_deref(), &text, site));
        permit_judged(turn, &judgement, (rule, &text), new)?;
        Ok(self.replace_by_copy(old.directory.as_fd(), &old.name, &text)?)
    }

    /// Puts a new file with this text in the place of a name.
    pub(super) fn replace_by_copy(
        &self,
        directory: BorrowedFd<'_>,
        name: &CStr,
        text: &[u8],
    ) -> Result<(), Errno> {
        let status = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let copy = self.unnamed(directory, Mode::from_raw_mode(status.st_mode & 0o7777))?;
        let mut copy = File::from(copy);
        copy.write_all(text).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        // By the time of its index git tells which files have changed since.
        futimens(&copy, &times(&status))?;
        unlinkat(directory, name, AtFlags::empty())?;
        self.give_name(copy.as_fd(), directory, name)
    }

    /// Makes a file without a name, of just this mode.
    pub(super) fn unnamed(&self, directory: BorrowedFd<'_>, mode: Mode) -> Result<OwnedFd, Errno> {
        let file = openat(directory, c".", OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR)?;
        fchmod(&file, mode)?;
        Ok(file)
    }

    /// Gives a file without a name one.
    pub(super) fn give_name(
        &self,
        file: BorrowedFd<'_>,
        directory: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<(), Errno> {
        let number = file.as_raw_fd().to_string();
        linkat(self.processes.own_descriptors(), number, directory, name, AtFlags::SYMLINK_FOLLOW)
    }
}

impl Worker {
    /// Looks at what lies in a directory that a change makes a repository, as if it were one already.
    pub(super) fn examine(&self, directory: &Path, part: &Place) -> Result<(), Stop> {
        self.must_be_alone()?;
        Ok(self.broker.look_into(directory, part.directory.as_fd())?)
    }

    /// As [`Self::examine`], for what the directory `old` brings along as it becomes the part `new` of a repository.
    pub(super) fn examine_part(&self, old: &Place, new: &Place) -> Result<(), Stop> {
        let completed = self.broker.site(|site| completed(&new.path, Change::MoveTree, site));
        let Some(repository) = completed else { return Ok(()) };
        self.must_be_alone()?;
        Ok(Looked::of(self.broker, &repository).below(old.directory.as_fd(), &old.name, &new.path)?)
    }
}

impl Broker {
    /// Looks at what lies in the directory `holder`, which is called `directory`, as if it were a repository. Nobody
    /// else may do anything with names.
    pub(super) fn look_into(&self, directory: &Path, holder: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut looked = Looked::of(self, directory);
        for_each_name(holder, c".", |holder, name| looked.at(holder, name, directory))
    }
}

struct Looked<'a> {
    broker: &'a Broker,
    repository: &'a Path,
    left: usize,
    levels_left: usize,
}

impl<'a> Looked<'a> {
    fn of(broker: &'a Broker, repository: &'a Path) -> Self {
        Self { broker, repository, left: LOOKED_AT, levels_left: LEVELS }
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
        let holds = |rule: &'static Rule| self.broker.holds(rule);
        let class = assuming(self.broker, self.repository, |site| class_under(&path, change, site, &holds));
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
        if assuming(self.broker, self.repository, judge) != Judgement::Harmless {
            return Err(Errno::ACCESS);
        }
        self.broker.replace_by_copy(holder, name, &text)
    }

    fn below(&mut self, holder: BorrowedFd<'_>, name: &CStr, path: &Path) -> Result<(), Errno> {
        self.levels_left = self.levels_left.checked_sub(1).ok_or(Errno::NAMETOOLONG)?;
        for_each_name(holder, name, |open, name| self.at(open, name, path))?;
        self.levels_left += 1;
        Ok(())
    }
}

/// Lets a text that has been judged get the name `new`, or has the user asked about it.
pub(super) fn permit_judged(
    turn: &Turn,
    judgement: &Judgement,
    (rule, text): (&'static Rule, &[u8]),
    new: &Place,
) -> Result<(), Stop> {
    match judgement {
        Judgement::Harmless => Ok(()),
        Judgement::Asks(_) if text.len() <= ASKED_BYTES => {
            let reason = judgement.reason().unwrap_or_default();
            ask_about(turn, &Change::Install.into(), new, rule.id, Some((text.to_owned(), reason)))
        }
        Judgement::Asks(_) | Judgement::Unreadable(_) => Err(Errno::ACCESS.into()),
    }
}

/// When a file was last written; its last access is now.
fn times(status: &Stat) -> Timestamps {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let written = Timespec { tv_sec: status.st_mtime, tv_nsec: status.st_mtime_nsec.cast_signed() };
    Timestamps { last_access: now, last_modification: written }
}

/// Calls `look` for every name in a directory.
pub(super) fn for_each_name(
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
pub(super) fn read(
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
pub(super) fn read_whole(file: OwnedFd, content: Content) -> Result<Vec<u8>, Errno> {
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(Errno::ACCESS);
    }
    let mut text = Vec::new();
    let most = u64::try_from(content.longest()).unwrap_or(u64::MAX).saturating_add(1);
    let read = File::from(file).take(most).read_to_end(&mut text);
    let read = read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    if read <= content.longest() { Ok(text) } else { Err(Errno::ACCESS) }
}
