//! Carries out a plan, step by step, and records each step before it is made.
//!
//! So an undoing is a call like others: it can be taken back (`redo`), and one that was interrupted is put back to
//! where it began. Everything acts on directories that were opened without following a link; each name is looked at
//! again right before.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
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
/// How many former versions can be beside one name.
const BESIDES: u32 = 10_000;

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
        missed: Vec::new(),
        shelters: HashMap::new(),
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

/// A file that was given back.
struct Restored {
    /// A name of it.
    path: PathBuf,
    /// What it is now: one that was made anew is another file.
    id: FileId,
    /// How many names it had.
    links: u32,
}

struct Undoer<'a> {
    recorder: &'a Recorder,
    call: CallKey,
    project: &'a Path,
    history: &'a History,
    /// Files that were given back, by what they were.
    restored: HashMap<FileId, Restored>,
    /// Directories whose mode is set when everything is in them.
    directories: Vec<(PathBuf, DirectoryState)>,
    temporary: u32,
    /// Names at which a step was not made as planned; later steps there are not made either.
    missed: Vec<PathBuf>,
    /// Directories that were made for former versions whose own directory is gone or something else.
    shelters: HashMap<PathBuf, PathBuf>,
    report: Report,
}

impl Undoer<'_> {
    fn step(&mut self, step: &Step) {
        let path = step.path.clone();
        if let Act::Leave { why, beside } = &step.act {
            return self.leave(path, *why, beside.as_ref());
        }
        let former = match self.act(step) {
            Ok(()) => {
                let is_merged = matches!(step.act, Act::Merge { .. });
                if is_merged { &mut self.report.merged } else { &mut self.report.done }.push(path);
                return;
            }
            Err(stop) => {
                self.missed.push(path.clone());
                let former = match &step.act {
                    Act::Restore(was @ (State::File(_) | State::Link { .. })) => Some(was.clone()),
                    Act::Merge { was, .. } => Some(State::File(was.clone())),
                    Act::MoveBack { to, .. } => {
                        self.missed.push(to.clone());
                        None
                    }
                    Act::Restore(_) | Act::Leave { .. } => None,
                };
                match stop {
                    Stop::Left(why @ Why::Lost(_)) => return self.leave(path, why, None),
                    Stop::Left(why) => (why, former),
                    Stop::Failed(error) => return self.report.failed.push((path, error)),
                }
            }
        };
        self.leave(path, former.0, former.1.as_ref());
    }

    /// Reports a name that is left as it is, and puts its former version beside it.
    fn leave(&mut self, path: PathBuf, why: Why, former: Option<&State>) {
        match former.map(|former| self.put_beside(&path, former)).transpose() {
            Ok(beside) => self.report.left.push((path, why, beside)),
            Err(error) => self.report.failed.push((path, error)),
        }
    }

    fn act(&mut self, step: &Step) -> Result<(), Stop> {
        let path = &step.path;
        let is_missed = |path: &Path| {
            self.missed.iter().any(|missed| path.starts_with(missed) || missed.starts_with(path))
        };
        match &step.act {
            Act::MoveBack { to, .. } if is_missed(path) || is_missed(to) => Err(Stop::Left(Why::Changed)),
            _ if is_missed(path) => Err(Stop::Left(Why::Changed)),
            Act::MoveBack { to, exchange } => self.move_back(path, to, step.now.as_ref(), *exchange),
            Act::Restore(was) => {
                self.changed(path, step.now.as_ref())?;
                self.restore(path, was, None)
            }
            Act::Merge { was, text } => {
                self.changed(path, step.now.as_ref())?;
                self.restore(path, &State::File(was.clone()), Some(text))
            }
            Act::Leave { .. } => Ok(()),
        }
    }

    /// Checks that a name is as the plan says.
    fn changed(&self, path: &Path, found: Option<&State>) -> Result<(), Stop> {
        let Some(found) = found else { return Ok(()) };
        let now = Disk(self.recorder.store()).look(path)?;
        // A step may have given another name of the same file its state.
        if now.id().is_some_and(|id| self.restored.contains_key(&id)) {
            return Ok(());
        }
        if is_unchanged(&now, found) { Ok(()) } else { Err(Stop::Left(Why::Changed)) }
    }

    fn before(&self, spot: &Spot, path: &Path) -> io::Result<()> {
        self.recorder
            .before(self.call, Place { directory: &spot.directory, name: &spot.name, path, outside: None })
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
            Place { directory: &old.directory, name: old.name.as_c_str(), path: from, outside: None },
            Place { directory: &new.directory, name: new.name.as_c_str(), path: to, outside: None },
        );
        // Nothing is replaced: the name is free, or both change places.
        let (announced, _) = self.recorder.moving(self.call, places, exchange)?;
        let flags = if exchange { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        renameat_with(&old.directory, &old.name, &new.directory, &new.name, flags).map_err(|error| {
            self.recorder.not_moved(self.call, announced);
            Stop::from(error)
        })?;
        let restored = self.restored.values_mut().map(|restored| &mut restored.path);
        for path in self.directories.iter_mut().map(|(path, _)| path).chain(restored) {
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
        if was.is_absent() {
            return self.remove(&spot, path);
        }
        self.before(&spot, path)?;
        let now = look(&spot.directory, &spot.name)?;
        match was {
            State::Absent => Ok(()),
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

    fn remove(&self, spot: &Spot, path: &Path) -> Result<(), Stop> {
        let outside = Some(spot.directory.as_fd());
        let place = Place { directory: &spot.directory, name: spot.name.as_c_str(), path, outside };
        let spared = self.recorder.before_removal(self.call, place)?;
        clear(spot, &look(&spot.directory, &spot.name)?)?;
        if let Some(spared) = spared {
            spared.removed();
        }
        Ok(())
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
                    self.fill(&open, was, text)?;
                    self.note_restored(was, path);
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
        self.note_restored(was, path);
        Ok(())
    }

    fn note_restored(&mut self, was: &FileState, path: &Path) {
        if let Ok(Some(id)) = disk::look_at(path).map(|now| now.id()) {
            self.restored.insert(was.id, Restored { path: path.to_owned(), id, links: was.links });
        }
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
            self.fill(&open, was, None)?;
            self.note_restored(was, path);
            return Ok(());
        }
        // Its other name may have another mode by this.
        self.note_restored(was, path);
        set_owner(&open, was.owner);
        set_attributes(&open, &was.attributes)?;
        fchmod(&open, Mode::from_raw_mode(was.mode & FILE_MODE))?;
        Ok(())
    }

    /// Gives an open file its former content, owner, attributes, mode and time.
    fn fill(&self, open: &OwnedFd, was: &FileState, text: Option<&[u8]>) -> Result<(), Stop> {
        match (text, &was.content) {
            (Some(text), _) => {
                ftruncate(open, 0)?;
                write_all(open, text)?;
            }
            (None, Content::Kept(name)) => match self.recorder.store().kept(name)? {
                None => ftruncate(open, 0)?,
                // A call that was killed before it removed the file has left it as it was.
                Some(kept) if disk::id(&kept)? == disk::id(open)? => {}
                Some(kept) => {
                    ftruncate(open, 0)?;
                    disk::copy(&kept, open, was.size)?;
                }
            },
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
        if let Some(restored) = self.restored.get(&was.id)
            && restored.path != path
            && was.links.max(restored.links) > 1
            && disk::look_at(&restored.path).is_ok_and(|now| now.id() == Some(restored.id))
        {
            return Some(restored.path.clone());
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
        let place = Place { directory: &spot.directory, name: name.as_c_str(), path: &beside, outside: None };
        self.recorder.before(self.call, place)?;
        Ok(name)
    }

    /// Gives a finished file its name, in place of what is there now.
    fn put(&self, spot: &Spot, name: &CStr, now: &State) -> Result<(), Stop> {
        let put = || -> Result<(), Stop> {
            let rename = |flags| renameat_with(&spot.directory, name, &spot.directory, &spot.name, flags);
            if matches!(now, State::Directory(_)) {
                clear(spot, now)?;
            }
            if now.is_absent() || matches!(now, State::Directory(_)) {
                return Ok(rename(RenameFlags::NOREPLACE)?);
            }
            match rename(RenameFlags::EXCHANGE) {
                // The file system cannot exchange names.
                Err(Errno::INVAL | Errno::NOSYS) => {
                    return Ok(renameat(&spot.directory, name, &spot.directory, &spot.name)?);
                }
                exchanged => exchanged?,
            }
            // What came out must be what was looked at: an editor may have saved in between.
            if !is_unchanged(&look(&spot.directory, name)?, now) {
                rename(RenameFlags::EXCHANGE)?;
                return Err(Stop::Left(Why::Changed));
            }
            Ok(unlinkat(&spot.directory, name, AtFlags::empty())?)
        };
        put().inspect_err(|_| {
            // It is not in its place, and no other name leads to it.
            let _gone = unlinkat(&spot.directory, name, AtFlags::empty());
        })
    }

    /// Puts a former version beside the present one, under a name that is free; returns its path. If its directory is
    /// gone or something else, it goes to a directory beside that, under its own name.
    fn put_beside(&mut self, path: &Path, former: &State) -> io::Result<PathBuf> {
        let sheltered = self.shelter(path)?;
        let spot = disk::spot(&sheltered)?;
        for number in 0..BESIDES {
            let beside = numbered(&sheltered, number, sheltered != path);
            let name = beside.file_name().unwrap_or_default();
            let c_name = CString::new(name.as_bytes())?;
            if !look(&spot.directory, &c_name)?.is_absent() {
                continue;
            }
            let place =
                Place { directory: &spot.directory, name: c_name.as_c_str(), path: &beside, outside: None };
            self.recorder.before(self.call, place)?;
            match self.make_beside(&spot, &c_name, former) {
                Ok(()) => return Ok(beside),
                // Somebody was faster.
                Err(Stop::Left(Why::Occupied)) => {}
                Err(Stop::Failed(error)) => {
                    // On a full disk the unfinished copy must not stay.
                    let _gone = unlinkat(&spot.directory, &c_name, AtFlags::empty());
                    return Err(error);
                }
                Err(Stop::Left(_)) => return Err(io::ErrorKind::NotFound.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn make_beside(&self, spot: &Spot, name: &CStr, former: &State) -> Result<(), Stop> {
        match former {
            State::File(file) => {
                let flags =
                    OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let open = openat(&spot.directory, name, flags, Mode::RUSR | Mode::WUSR)?;
                self.fill(&open, file, None)
            }
            State::Link { target, owner } => {
                symlinkat(target, &spot.directory, name)?;
                give(&spot.directory, name, *owner);
                Ok(())
            }
            State::Absent | State::Directory(_) | State::Special { .. } => Err(Stop::Left(Why::Changed)),
        }
    }

    /// Returns the path beside which a former version of `path` can be put: itself if its directory is there, and
    /// otherwise a path below a directory that is made beside the first name on the way that is none.
    fn shelter(&mut self, path: &Path) -> io::Result<PathBuf> {
        let is_directory = |path: &Path| matches!(disk::look_at(path), Ok(State::Directory(_)));
        let directory = path.parent().ok_or(io::ErrorKind::NotFound)?;
        if directory.parent().is_none() || is_directory(directory) {
            return Ok(path.to_owned());
        }
        // The topmost one that is missing or no directory; never the project itself or anything around it.
        let missing = directory.ancestors().take_while(|around| !is_directory(around)).last();
        let top = missing.filter(|top| !self.project.starts_with(top)).ok_or(io::ErrorKind::NotFound)?;
        let rest = path.strip_prefix(top).map_err(io::Error::other)?;
        let mut made = match self.shelters.get(top) {
            Some(made) => made.clone(),
            None => {
                let made = self.make_shelter(top)?;
                self.shelters.insert(top.to_owned(), made.clone());
                made
            }
        };
        for component in rest.parent().into_iter().flat_map(Path::components) {
            made.push(component);
            if !is_directory(&made) {
                let spot = disk::spot(&made)?;
                self.before(&spot, &made)?;
                mkdirat(&spot.directory, &spot.name, Mode::RWXU)?;
            }
        }
        Ok(made.join(path.file_name().unwrap_or_default()))
    }

    fn make_shelter(&self, top: &Path) -> io::Result<PathBuf> {
        for number in 0..BESIDES {
            let made = numbered(top, number, false);
            let spot = disk::spot(&made)?;
            if look(&spot.directory, &spot.name)?.is_absent() {
                self.before(&spot, &made)?;
                mkdirat(&spot.directory, &spot.name, Mode::RWXU)?;
                return Ok(made);
            }
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

/// Returns the path of a former version: with an ending, and a number after the first; `is_alone` if the first needs
/// none of both.
fn numbered(path: &Path, number: u32, is_alone: bool) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    match number {
        0 if is_alone => {}
        0 => name.push(format!(".{BESIDE}")),
        number => name.push(format!(".{BESIDE}-{number}")),
    }
    path.with_file_name(name)
}

/// Returns true if a name is still as it was found. The number of names changes when other names are given back or
/// taken away; the times of a directory, too.
fn is_unchanged(now: &State, found: &State) -> bool {
    match (now, found) {
        (State::File(now), State::File(found)) => {
            (now.id, now.size, now.modified, now.mode) == (found.id, found.size, found.modified, found.mode)
        }
        (State::Directory(now), State::Directory(found)) => now.id == found.id,
        (now, found) => now == found,
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
            Errno::EXIST => Self::Left(Why::Occupied),
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
