//! Carries out a plan, step by step, and records each step before it is made.
//!
//! So an undoing is a call like others: it can be taken back (`redo`), and one that was interrupted is put back to
//! where it began. Everything acts on directories that were opened without following a link; each name is looked at
//! again right before.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT, Uid, chownat, fchmod, fchown,
    fgetxattr, fremovexattr, fsetxattr, ftruncate, futimens, linkat, mkdirat, openat, renameat,
    renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::disk::{self, Spot, look};
use crate::history::History;
use crate::paths::follow;
use crate::plan::{Act, Step, Trust, Why, World as _, plan};
use crate::record::{CallKey, Record};
use crate::recorder::{Place, Recorder, now};
use crate::state::{Content, DirectoryState, FileId, FileState, State};
use crate::store::Store;
use crate::world::Disk;

/// How many names are looked at to find another name of a file.
const SEARCHED: usize = 200_000;
/// The bits of a mode that files get back: set-id bits are left off.
const FILE_MODE: u32 = 0o1777;
const DIRECTORY_MODE: u32 = 0o3777;
const BESIDE: &str = "portcullis-old";

/// What was done.
#[derive(Debug, Default)]
pub struct Report {
    /// The names that have their former state again.
    pub done: Vec<PathBuf>,
    /// The texts into which later edits were merged.
    pub merged: Vec<PathBuf>,
    /// What was left as it is, why, and where the former version is.
    pub left: Vec<(PathBuf, Why, Option<PathBuf>)>,
    /// What could not be done.
    pub failed: Vec<(PathBuf, io::Error)>,
}

/// What is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The position of the first entry.
    pub start: usize,
    /// Whether this takes back an undoing.
    pub redo: bool,
}

/// Reads the history of a store.
///
/// # Errors
/// The system's.
pub fn history(store: &Store) -> io::Result<History> {
    Ok(History::of(store.records_from(0)?, store.written()?))
}

/// Puts an interrupted undoing back to where it began; returns whether there was one.
///
/// # Errors
/// If the journal cannot be read or written, or the disk not be looked at.
pub fn recover(recorder: &Recorder, project: &Path) -> io::Result<Option<Report>> {
    let history = history(recorder.store())?;
    let Some((call, start)) = history.unfinished() else { return Ok(None) };
    let steps = plan(&history, start, Trust::Own, &Disk(recorder.store()))?;
    let report = perform(recorder, recorder.own_call(), &steps, (project, &history))?;
    recorder.store().append(&[Record::Undone { call, complete: false }])?;
    Ok(Some(report))
}

/// Carries out a plan for this range.
///
/// # Errors
/// If the journal cannot be written. What was done until then can be put back with [`recover`].
pub fn carry_out(
    recorder: &Recorder,
    steps: &[Step],
    Range { start, redo }: Range,
    (project, history): (&Path, &History),
) -> io::Result<Report> {
    let call = recorder.own_call();
    recorder.store().append(&[Record::Undo { call, to: start, redo, at: now() }])?;
    let report = perform(recorder, call, steps, (project, history))?;
    recorder.store().append(&[Record::Undone { call, complete: true }])?;
    Ok(report)
}

fn perform(
    recorder: &Recorder,
    call: CallKey,
    steps: &[Step],
    (project, history): (&Path, &History),
) -> io::Result<Report> {
    let begin = recorder.store().length()?;
    let mut undoer = Undoer {
        recorder,
        call,
        project,
        history,
        restored: HashMap::new(),
        directories: Vec::new(),
        temporary: 0,
        report: Report::default(),
    };
    for step in steps {
        undoer.step(step);
    }
    undoer.settle_directories();
    let report = undoer.report;
    recorder.finish(call, begin, None, "undo")?;
    Ok(report)
}

struct Undoer<'a> {
    recorder: &'a Recorder,
    call: CallKey,
    project: &'a Path,
    history: &'a History,
    /// Files that were given back: a name of each, and how many it had.
    restored: HashMap<FileId, (PathBuf, u32)>,
    /// Directories whose mode is set when everything is in them.
    directories: Vec<(PathBuf, DirectoryState)>,
    temporary: u32,
    report: Report,
}

impl Undoer<'_> {
    fn step(&mut self, step: &Step) {
        let path = step.path.clone();
        let done = match &step.act {
            Act::Leave { why, beside } => {
                let beside = beside.as_ref().map(|was| self.put_beside(&path, was)).transpose();
                match beside {
                    Ok(beside) => self.report.left.push((path, *why, beside)),
                    Err(error) => self.report.failed.push((path, error)),
                }
                return;
            }
            Act::MoveBack { to, exchange } => self.move_back(&path, to, step.now.as_ref(), *exchange),
            Act::Restore(was) => {
                self.changed(&path, step.now.as_ref()).and_then(|()| self.restore(&path, was, None))
            }
            Act::Merge { was, text } => self
                .changed(&path, step.now.as_ref())
                .and_then(|()| self.restore(&path, &State::File(was.clone()), Some(text))),
        };
        match done {
            Ok(()) => {
                let is_merged = matches!(step.act, Act::Merge { .. });
                if is_merged { &mut self.report.merged } else { &mut self.report.done }.push(path);
            }
            Err(Stop::Left(why)) => self.report.left.push((path, why, None)),
            Err(Stop::Failed(error)) => self.report.failed.push((path, error)),
        }
    }

    /// Checks that a name still is as the plan found it.
    fn changed(&self, path: &Path, found: Option<&State>) -> Result<(), Stop> {
        let Some(found) = found else { return Ok(()) };
        let now = Disk(self.recorder.store()).look(path)?;
        // A step may have given another name of the same file its state.
        if now.id().is_some_and(|id| self.restored.contains_key(&id)) {
            return Ok(());
        }
        // The number of names changes when other names are given back or taken away; the times of a directory, too.
        let is_same = match (&now, found) {
            (State::File(now), State::File(found)) => {
                (now.id, now.size, now.modified, now.mode)
                    == (found.id, found.size, found.modified, found.mode)
            }
            (State::Directory(now), State::Directory(found)) => now.id == found.id,
            (now, found) => now == found,
        };
        if is_same { Ok(()) } else { Err(Stop::Left(Why::Changed)) }
    }

    fn before(&self, spot: &Spot, path: &Path) -> io::Result<()> {
        self.recorder.before(self.call, Place { directory: &spot.directory, name: &spot.name, path })
    }

    fn move_back(
        &mut self,
        from: &Path,
        to: &Path,
        what: Option<&State>,
        exchange: bool,
    ) -> Result<(), Stop> {
        let (old, new) = (disk::spot(from)?, disk::spot(to)?);
        let there = look(&old.directory, &old.name)?;
        if what.is_some_and(|what| what.id() != there.id()) {
            return Err(Stop::Left(Why::Removed));
        }
        let places = (
            Place { directory: &old.directory, name: old.name.as_c_str(), path: from },
            Place { directory: &new.directory, name: new.name.as_c_str(), path: to },
        );
        let announced = self.recorder.moving(self.call, places, exchange)?;
        let flags = if exchange { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        renameat_with(&old.directory, &old.name, &new.directory, &new.name, flags).map_err(|error| {
            self.recorder.not_moved(self.call, announced);
            if error == Errno::EXIST { Stop::Left(Why::Occupied) } else { Stop::from(error) }
        })?;
        for (path, _) in &mut self.directories {
            *path = follow(path, from, to, exchange);
        }
        Ok(())
    }

    fn restore(&mut self, path: &Path, was: &State, text: Option<&[u8]>) -> Result<(), Stop> {
        let spot = match disk::spot(path) {
            // The directory was left away, and so is what was in it.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if was.is_absent() => return Ok(()),
            Err(Errno::LOOP) => return Err(Stop::Left(Why::Changed)),
            spot => spot?,
        };
        self.before(&spot, path)?;
        let now = look(&spot.directory, &spot.name)?;
        match was {
            State::Absent => Ok(clear(&spot, &now)?),
            State::Directory(directory) => {
                if !matches!(now, State::Directory(_)) {
                    clear(&spot, &now)?;
                    mkdirat(&spot.directory, &spot.name, Mode::RWXU)?;
                }
                // The older state comes later, and counts.
                self.directories.retain(|(other, _)| other != path);
                self.directories.push((path.to_owned(), directory.clone()));
                Ok(())
            }
            State::Link { target, owner } => {
                let name = self.temporary(&spot, path)?;
                symlinkat(target, &spot.directory, &name)?;
                give(&spot.directory, &name, *owner);
                self.put(&spot, &name, &now)
            }
            State::File(file) => self.restore_file(&spot, path, (file, &now), text),
            State::Special { .. } => Err(Stop::Left(Why::Lost(crate::state::Lost::Special))),
        }
    }

    fn restore_file(
        &mut self,
        spot: &Spot,
        path: &Path,
        (was, now): (&FileState, &State),
        text: Option<&[u8]>,
    ) -> Result<(), Stop> {
        // Written in place, it keeps its other names. A program that runs cannot be.
        if now.id() == Some(was.id) {
            let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            match openat(&spot.directory, &spot.name, flags, Mode::empty()) {
                Err(Errno::TXTBSY | Errno::ACCESS) => {}
                open => {
                    let open = open?;
                    ftruncate(&open, 0)?;
                    self.fill(&open, was, text)?;
                    self.restored.insert(was.id, (path.to_owned(), was.links));
                    return Ok(());
                }
            }
        }
        if let (None, Some(other)) = (text, self.other_name(was, path)) {
            let twin = disk::look_at(&other)?;
            // Without an end of the call, or an edit since, what the call wrote by this name it wrote by the other.
            let is_same =
                twin.file().is_some_and(|twin| (twin.size, twin.modified) == (was.size, was.modified));
            let is_restored = self.restored.contains_key(&was.id);
            if is_same || is_restored || twin.file().is_some_and(|twin| twin.modified <= self.history.written)
            {
                return self.link_again(spot, (path, &other), (was, is_same), now);
            }
        }
        let name = self.temporary(spot, path)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = openat(&spot.directory, &name, flags, Mode::RUSR | Mode::WUSR)?;
        let filled = self.fill(&open, was, text);
        if let Err(error) = filled {
            // On a full disk the unfinished copy must not stay.
            let _gone = unlinkat(&spot.directory, &name, AtFlags::empty());
            return Err(error);
        }
        self.put(spot, &name, now)?;
        self.restored.insert(was.id, (path.to_owned(), was.links));
        Ok(())
    }

    /// Makes a path another name of a file that is there.
    fn link_again(
        &mut self,
        spot: &Spot,
        (path, twin): (&Path, &Path),
        (was, is_same): (&FileState, bool),
        now: &State,
    ) -> Result<(), Stop> {
        let other = disk::spot(twin)?;
        // Its mode may change.
        self.before(&other, twin)?;
        let state = look(&other.directory, &other.name)?;
        if state.id().is_none() || state.id() != now.id() {
            let name = self.temporary(spot, path)?;
            linkat(&other.directory, &other.name, &spot.directory, &name, AtFlags::empty())?;
            self.put(spot, &name, now)?;
        }
        let flags = if is_same { OFlags::RDONLY } else { OFlags::WRONLY };
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = openat(&spot.directory, &spot.name, flags, Mode::empty())?;
        if !is_same {
            ftruncate(&open, 0)?;
            self.fill(&open, was, None)?;
            self.restored.insert(was.id, (path.to_owned(), was.links));
            return Ok(());
        }
        set_owner(&open, was.owner);
        set_attributes(&open, &was.attributes)?;
        fchmod(&open, Mode::from_raw_mode(was.mode & FILE_MODE))?;
        Ok(())
    }

    /// Gives an open file its former content, owner, attributes, mode and time.
    fn fill(&self, open: &OwnedFd, was: &FileState, text: Option<&[u8]>) -> Result<(), Stop> {
        match (text, &was.content) {
            (Some(text), _) => write_all(open, text)?,
            (None, Content::Kept(name)) => {
                if let Some(kept) = self.recorder.store().kept(name)? {
                    disk::copy(&kept, open, was.size)?;
                }
            }
            (None, Content::Lost(why)) => return Err(Stop::Left(Why::Lost(*why))),
            (None, Content::Unread) => return Err(io::Error::from(io::ErrorKind::InvalidData).into()),
        }
        set_owner(open, was.owner);
        set_attributes(open, &was.attributes)?;
        fchmod(open, Mode::from_raw_mode(was.mode & FILE_MODE))?;
        if text.is_none() {
            set_time(open, was.modified)?;
        }
        Ok(())
    }

    /// Returns another name of a file that had several.
    ///
    /// A file system may give the number of a removed file to a new one, so one of the names must have been known to
    /// have others, and the file must be as it was.
    fn other_name(&self, was: &FileState, path: &Path) -> Option<PathBuf> {
        let is_as_it_was = |file: &FileState| (file.size, file.modified) == (was.size, was.modified);
        let is_it = |candidate: &Path| {
            let state = disk::look_at(candidate).ok();
            let file = state.as_ref().and_then(State::file);
            candidate != path && file.is_some_and(|file| file.id == was.id && is_as_it_was(file))
        };
        if let Some((known, links)) = self.restored.get(&was.id)
            && known != path
            && was.links.max(*links) > 1
        {
            return Some(known.clone());
        }
        let recorded = self.history.entries().iter().filter_map(|entry| match entry {
            Record::Before { was: other, .. }
                if other
                    .state
                    .file()
                    .is_some_and(|file| file.id == was.id && file.links.max(was.links) > 1) =>
            {
                Some(other.path.as_path())
            }
            Record::Before { .. }
            | Record::Moved { .. }
            | Record::Turn { .. }
            | Record::NotMoved { .. }
            | Record::Left { .. }
            | Record::Ended { .. }
            | Record::Undo { .. }
            | Record::Undone { .. } => None,
        });
        let known = recorded.into_iter().find(|candidate| is_it(candidate)).map(Path::to_owned);
        if known.is_some() || was.links < 2 {
            return known;
        }
        search(self.project, was.id, path)
    }

    /// Returns a free name beside a path, recorded as one that is not there.
    fn temporary(&mut self, spot: &Spot, path: &Path) -> io::Result<CString> {
        self.temporary += 1;
        let name = format!(".portcullis-undo-{}-{}", self.call.number, self.temporary);
        self.recorded(spot, path, &name)
    }

    fn recorded(&self, spot: &Spot, path: &Path, name: &str) -> io::Result<CString> {
        let beside = path.with_file_name(name);
        let name = CString::new(name)?;
        let place = Place { directory: &spot.directory, name: name.as_c_str(), path: &beside };
        self.recorder.before(self.call, place)?;
        Ok(name)
    }

    /// Gives a finished file its name, in place of what is there now.
    fn put(&self, spot: &Spot, name: &CStr, now: &State) -> Result<(), Stop> {
        let put = || {
            if matches!(now, State::Directory(_)) {
                clear(spot, now)?;
            }
            if now.is_absent() {
                return renameat_with(
                    &spot.directory,
                    name,
                    &spot.directory,
                    &spot.name,
                    RenameFlags::NOREPLACE,
                );
            }
            renameat(&spot.directory, name, &spot.directory, &spot.name)
        };
        put().map_err(|error| {
            // It has no name yet that anybody knows.
            let _gone = unlinkat(&spot.directory, name, AtFlags::empty());
            if error == Errno::EXIST { Stop::Left(Why::Changed) } else { error.into() }
        })
    }

    /// Puts the former version of a file beside the present one; returns its name.
    fn put_beside(&mut self, path: &Path, was: &FileState) -> io::Result<PathBuf> {
        let spot = disk::spot(path)?;
        let own = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for number in 0..100 {
            let name =
                if number == 0 { format!("{own}.{BESIDE}") } else { format!("{own}.{BESIDE}-{number}") };
            let c_name = CString::new(name.as_str())?;
            if !look(&spot.directory, &c_name)?.is_absent() {
                continue;
            }
            let c_name = self.recorded(&spot, path, &name)?;
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let open = openat(&spot.directory, &c_name, flags, Mode::RUSR | Mode::WUSR)?;
            return match self.fill(&open, was, None) {
                Ok(()) => Ok(path.with_file_name(name)),
                Err(Stop::Failed(error)) => Err(error),
                Err(Stop::Left(_)) => Err(io::ErrorKind::NotFound.into()),
            };
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Sets modes and attributes of directories, the deepest first.
    fn settle_directories(&mut self) {
        let mut all = std::mem::take(&mut self.directories);
        all.reverse();
        for (path, was) in all {
            if let Err(error) = settle(&path, &was) {
                self.report.failed.push((path, error.into()));
            }
        }
    }
}

/// Why a step was not made.
enum Stop {
    Left(Why),
    Failed(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOTEMPTY => Self::Left(Why::NotEmpty),
            error => Self::Failed(error.into()),
        }
    }
}

fn settle(path: &Path, was: &DirectoryState) -> rustix::io::Result<()> {
    let spot = disk::spot(path)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = match openat(&spot.directory, &spot.name, flags, Mode::empty()) {
        // The step that should have made it has failed, and was reported.
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        open => open?,
    };
    set_owner(&open, was.owner);
    set_attributes(&open, &was.attributes)?;
    fchmod(&open, Mode::from_raw_mode(was.mode & DIRECTORY_MODE))?;
    set_time(&open, was.modified)
}

/// Removes what is at a name.
fn clear(spot: &Spot, now: &State) -> rustix::io::Result<()> {
    let flags = match now {
        State::Absent => return Ok(()),
        State::Directory(_) => AtFlags::REMOVEDIR,
        State::File(_) | State::Link { .. } | State::Special { .. } => AtFlags::empty(),
    };
    unlinkat(&spot.directory, &spot.name, flags)
}

/// Gives a file to its former owner. Only root can; for others it is theirs already.
fn set_owner(open: &OwnedFd, (user, group): (u32, u32)) {
    let _is_theirs = fchown(open, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
}

fn give(directory: &OwnedFd, name: &CStr, (user, group): (u32, u32)) {
    let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
    let _is_theirs = chownat(directory, name, user, group, AtFlags::SYMLINK_NOFOLLOW);
}

fn set_attributes(open: &OwnedFd, wanted: &[(String, String)]) -> rustix::io::Result<()> {
    for (name, _) in disk::attributes(open) {
        if !wanted.iter().any(|(other, _)| *other == name) {
            fremovexattr(open, disk::attribute(&name).unwrap_or_default())?;
        }
    }
    for (name, value) in wanted {
        let (Some(name), Some(value)) = (disk::attribute(name), disk::attribute(value)) else { continue };
        let mut present = vec![0; value.len() + 1];
        let is_there = fgetxattr(open, name.as_slice(), present.as_mut_slice());
        if is_there.is_ok_and(|count| present.get(..count) == Some(value.as_slice())) {
            continue;
        }
        fsetxattr(open, name, &value, rustix::fs::XattrFlags::empty())?;
    }
    Ok(())
}

fn set_time(open: &OwnedFd, (seconds, nanoseconds): (i64, u32)) -> rustix::io::Result<()> {
    let last_modification = Timespec { tv_sec: seconds, tv_nsec: i64::from(nanoseconds) };
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    futimens(open, &Timestamps { last_access, last_modification })
}

fn write_all(open: &OwnedFd, mut text: &[u8]) -> rustix::io::Result<()> {
    while !text.is_empty() {
        let count = rustix::io::write(open, text)?;
        text = text.get(count..).unwrap_or_default();
    }
    Ok(())
}

/// Searches a directory for another name of a file.
fn search(top: &Path, id: FileId, except: &Path) -> Option<PathBuf> {
    let mut left = SEARCHED;
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            left = left.checked_sub(1)?;
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() {
                open.push(path);
            } else if std::os::unix::fs::DirEntryExt::ino(&entry) == id.inode
                && path != except
                && disk::look_at(&path).is_ok_and(|state| state.id() == Some(id))
            {
                return Some(path);
            }
        }
    }
    None
}
