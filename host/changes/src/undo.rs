//! Carries out a plan, step by step, and records each step before it is made.
//!
//! So an undo is a call like others: it can be taken back (`redo`), and one that was interrupted is put back to
//! where it began. Everything acts on directories that were opened without following a link; each name is looked at
//! again right before.

mod attributes;
mod beside;
mod closed;
mod files;
mod interrupted;
mod left;
mod other_names;
mod report;
mod restored;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, RenameFlags, mkdirat, renameat, renameat_with, symlinkat, unlinkat};
use rustix::io::Errno;

use attributes::{clear, give, restore_directory};
use interrupted::call_after;
pub use interrupted::settle;
pub use report::{Report, Whole};
use restored::Restored;

use crate::disk::{self, Spot, look};
use crate::history::{FileVersion, History};
use crate::interruption;
use crate::opened::still_open;
use crate::paths::{TEMPORARY, moved, renamed_by};
use crate::plan::{Act, Step, Why, plan};
use crate::record::{CallKey, Record};
use crate::recorder::{Move, Place, Recorder, now};
use crate::state::{Content, DirectoryState, FileId, FileState, Lost, State};
use crate::store::Store;
use crate::world::Disk;

/// What is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The position of the first entry.
    pub start: usize,
    /// Whether this takes back an undo.
    pub redo: bool,
}

/// Reads the history of a store.
///
/// # Errors
/// The system's.
pub fn history(store: &Store) -> io::Result<History> {
    Ok(History::from_records(store.records_from(0)?, store.written()?))
}

/// Returns true if a program was killed, and [`recover`] has something to do.
#[must_use]
pub fn is_interrupted(history: &History) -> bool {
    history.unfinished().is_some() || !still_open(history.entries()).is_empty()
}

/// Puts an interrupted undo, or whole call, back to where it began; returns whether there was one. What somebody else
/// has changed since is left, as in each undo.
///
/// # Errors
/// If the journal cannot be read or written, or the disk not be looked at.
pub fn recover(recorder: &Recorder, project: &Path) -> io::Result<Option<Report>> {
    let store = recorder.store();
    let mut history = history(store)?;
    if settle(store, &history)? {
        history = self::history(store)?;
    }
    let Some((call, start)) = history.unfinished() else { return Ok(None) };
    store.count_undo()?;
    let steps = plan(&history, start, &Disk(store))?;
    let own = call_after(store, &history, call);
    let begin = store.length()?;
    let report = perform(recorder, own, &steps, (project, &history), HashSet::new());
    recorder.finish(own, begin, None, "undo")?;
    // A whole call stays open until all of it is taken back.
    let is_whole = matches!(history.entries().get(start.saturating_sub(1)), Some(Record::Whole { .. }));
    if !is_whole || report.failed.is_empty() {
        store.append(&[Record::Undone { call, complete: false, partly: false }])?;
    }
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
    recorder.store().count_undo()?;
    recorder.store().append(&[Record::Undo { call, to: start, redo, at: now() }])?;
    let begin = recorder.store().length()?;
    // What an undo gave back is the user's, and a redo takes it away again.
    let edits = if redo { HashSet::new() } else { history.edits_by_several_names() };
    let mut report = perform(recorder, call, steps, (project, history), edits);
    report.lost = recorder.lost(call, begin)?;
    recorder.finish(call, begin, None, "undo")?;
    let partly = report.can_be_repeated();
    recorder.store().append(&[Record::Undone { call, complete: true, partly }])?;
    Ok(report)
}

/// Makes all changes of a call, or none of them. What they replace is recorded before the first one: a full disk stops
/// it there, and so does a file whose content cannot be kept.
///
/// # Errors
/// If the journal cannot be written. What was done until then can be put back with [`recover`].
pub fn make_whole(recorder: &Recorder, steps: &[Step], label: &str, project: &Path) -> io::Result<Whole> {
    let call = recorder.own_call();
    let begin = recorder.store().length()?;
    recorder.store().append(&[Record::Whole { call }])?;
    for Step { path, .. } in steps {
        match disk::spot(path) {
            Ok(spot) => {
                recorder.before(call, Place { directory: &spot.directory, name: &spot.name, path })?
            }
            // Its directory is made by the call.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let lost = recorder.lost(call, begin)?;
    if !lost.is_empty() {
        // It could not be taken back, so it does not begin.
        recorder.store().append(&[Record::Undone { call, complete: false, partly: false }])?;
        let left = lost.into_iter().map(|(path, why)| (path, Why::Lost(why), None));
        let by = Report { left: left.collect(), ..Report::default() };
        return Ok(Whole::Stopped { by, back: Box::default() });
    }
    let by = perform(recorder, call, steps, (project, &history(recorder.store())?), HashSet::new());
    if by.is_complete() {
        recorder.finish(call, begin, None, label)?;
        return Ok(Whole::Made);
    }
    let back = recover(recorder, project)?.unwrap_or_default();
    Ok(Whole::Stopped { by, back: Box::new(back) })
}

fn perform(
    recorder: &Recorder,
    call: CallKey,
    steps: &[Step],
    (project, history): (&Path, &History),
    edits_of_user: HashSet<FileVersion>,
) -> Report {
    let mut undoer = Undoer {
        recorder,
        call,
        project,
        history,
        restored: HashMap::new(),
        made: BTreeMap::new(),
        files_made: HashMap::new(),
        with_several_names: Undoer::with_several(history),
        changed_at: HashMap::new(),
        edits_of_user,
        closed: Undoer::closed_directories(recorder.store(), history),
        linked_since: linked_since(steps),
        separate: steps.iter().filter(|step| step.is_separate).map(|step| step.path.clone()).collect(),
        directories: Vec::new(),
        temporary: 0,
        missed: Vec::new(),
        shelters: HashMap::new(),
        twins: Vec::new(),
        report: Report::default(),
    };
    for step in steps {
        undoer.step(step);
        // Without it, an edit of somebody else after an interruption may be taken for a part of the step.
        let _unwritten = undoer.note_left(step);
    }
    undoer.restore_directories();
    undoer.report.is_project_gone = !project.is_dir();
    undoer.report.count_once();
    undoer.report
}

struct Undoer<'a> {
    recorder: &'a Recorder,
    call: CallKey,
    project: &'a Path,
    history: &'a History,
    /// Files that were given back, by what they were.
    restored: HashMap<FileId, Restored>,
    /// What steps have left at each name, as it is called now.
    made: BTreeMap<PathBuf, State>,
    /// The same by file.
    files_made: HashMap<FileId, State>,
    /// The files that had several names when they were recorded.
    with_several_names: HashSet<FileId>,
    /// When files with several names had last been changed before the first step at one of them.
    changed_at: HashMap<FileId, (i64, u32)>,
    /// What the user has written into files with several names. It is not overwritten: a plan does not know all names.
    edits_of_user: HashSet<FileVersion>,
    /// The files that got other names since, with the number of steps at them.
    linked_since: HashMap<FileId, u32>,
    /// The names that do not become other names of their files again, because the user has changed those.
    separate: HashSet<PathBuf>,
    /// Directories that calls have left closed to their owner, with their modes.
    closed: HashMap<FileId, u32>,
    /// Directories whose mode is set when everything is in them.
    directories: Vec<(PathBuf, DirectoryState)>,
    temporary: u32,
    /// Names at which a step was not made as planned; later steps there are not made either.
    missed: Vec<PathBuf>,
    /// Directories that were made for former versions whose own directory is gone or something else.
    shelters: HashMap<PathBuf, PathBuf>,
    /// Other names by which the present step has written its file.
    twins: Vec<PathBuf>,
    report: Report,
}

impl Undoer<'_> {
    fn step(&mut self, step: &Step) {
        let path = step.path.clone();
        self.note_time(&path);
        if let Act::MoveBack { to, .. } = &step.act {
            self.note_time(to);
        }
        if let Act::Leave { why, beside } = &step.act {
            return self.leave(path, *why, beside.as_ref());
        }
        let former = match self.act_in_the_open(step) {
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
                if matches!(stop, Stop::Left(_)) && !matches!(step.act, Act::MoveBack { .. }) {
                    // Without it, what is there by now may be taken for a part of the step.
                    for path in self.twins.drain(..).chain([path.clone()]) {
                        let _unwritten = self.recorder.not_made(self.call, &path);
                    }
                }
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
        let mut beside = former.map(|former| self.put_beside(&path, former)).transpose();
        if beside.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
            && self.open_the_way(&path)
        {
            beside = former.map(|former| self.put_beside(&path, former)).transpose();
        }
        match beside {
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
            Act::MoveBack { to, .. } if is_missed(path) || is_missed(to) => Err(Stop::Left(Why::Missed)),
            _ if is_missed(path) => Err(Stop::Left(Why::Missed)),
            Act::MoveBack { to, exchange } => self.move_back(path, to, step.now.as_ref(), *exchange),
            Act::Restore(was) => {
                self.changed(path, step.now.as_ref())?;
                self.restore(path, (was, step.now.as_ref()), None)
            }
            Act::Merge { was, text } => {
                self.changed(path, step.now.as_ref())?;
                self.restore(path, (&State::File(was.clone()), step.now.as_ref()), Some(text))
            }
            Act::Leave { .. } => Ok(()),
        }
    }

    fn before(&self, spot: &Spot, path: &Path) -> io::Result<()> {
        self.recorder.before(self.call, place_of(spot, path))
    }

    /// Records that a name that was recorded is about to change.
    fn reaches(&self, path: &Path, to: Option<State>) -> io::Result<()> {
        self.recorder.reaches(self.call, path, to)
    }

    /// Records a name whose state does not matter if this is interrupted.
    fn before_anything(&self, spot: &Spot, path: &Path) -> io::Result<()> {
        self.before(spot, path)?;
        self.reaches(path, None)
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
        // Nothing is replaced: the name is free, or both change places.
        let (announced, _) = self.recorder.moving(self.call, places, exchange, &|| None)?;
        if announced == Move::Unrecorded {
            self.reaches(from, Some(State::Absent))?;
            self.reaches(to, Some(there))?;
        }
        let flags = if exchange { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        interruption::point();
        renameat_with(&old.directory, &old.name, &new.directory, &new.name, flags).map_err(|error| {
            self.recorder.not_moved(self.call, announced);
            Stop::from(error)
        })?;
        moved(&mut self.made, from, to, exchange);
        if announced == Move::Unrecorded {
            self.note_left_at(from.to_owned(), None)?;
            self.note_left_at(to.to_owned(), None)?;
        }
        let restored = self.restored.values_mut().flat_map(|restored| &mut restored.names);
        for path in self.directories.iter_mut().map(|(path, _)| path).chain(restored) {
            if let Some(moved) = renamed_by(path, from, to, exchange) {
                *path = moved;
            }
        }
        Ok(())
    }

    fn restore(
        &mut self,
        path: &Path,
        (was, found): (&State, Option<&State>),
        text: Option<&[u8]>,
    ) -> Result<(), Stop> {
        let spot = match disk::spot(path) {
            // The directory was left away, and so is what was in it.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if was.is_absent() => return Ok(()),
            Err(Errno::LOOP) => return Err(Stop::Left(Why::Changed)),
            spot => spot?,
        };
        if was.is_absent() {
            return self.remove(&spot, path, found);
        }
        match was {
            State::File(FileState { content: Content::Unread, .. }) if text.is_none() => {
                self.recorder.before_status(self.call, place_of(&spot, path))?;
            }
            State::File(_)
            | State::Absent
            | State::Directory(_)
            | State::Link { .. }
            | State::Special { .. } => self.before(&spot, path)?,
        }
        // Keeping the content takes time, in which somebody may have written.
        self.changed(path, found)?;
        let now = look(&spot.directory, &spot.name)?;
        self.ensure_readable(&spot, path, &now)?;
        let to = match text {
            Some(text) => merged(was, self.recorder.store().keep_text(text)?, text.len()),
            None => was.clone(),
        };
        self.reaches(path, Some(to))?;
        match was {
            State::Absent => Ok(()),
            State::Directory(directory) => {
                if !matches!(now, State::Directory(_)) {
                    clear(&spot, &now)?;
                    interruption::point();
                    mkdirat(&spot.directory, &spot.name, Mode::RWXU)?;
                }
                // The older state comes later, and counts.
                self.directories.retain(|(other, _)| other != path);
                self.directories.push((path.to_owned(), directory.clone()));
                Ok(())
            }
            State::Link { target, owner } => {
                let name = self.temporary(&spot, path)?;
                interruption::point();
                symlinkat(target, &spot.directory, &name)?;
                give(&spot.directory, &name, *owner);
                self.put(&spot, &name, &now)
            }
            State::File(file) => self.restore_file(&spot, path, (file, &now), text),
            State::Special { .. } => Err(Stop::Left(Why::Lost(Lost::Special))),
        }
    }

    fn remove(&mut self, spot: &Spot, path: &Path, found: Option<&State>) -> Result<(), Stop> {
        let outside = || Some(Arc::clone(&spot.directory));
        let spared = self.recorder.before_removal(self.call, place_of(spot, path), &outside)?;
        self.changed(path, found)?;
        let now = look(&spot.directory, &spot.name)?;
        self.ensure_readable(spot, path, &now)?;
        self.ensure_no_edit(&now, &State::Absent)?;
        self.reaches(path, Some(State::Absent))?;
        match now {
            State::Absent | State::Directory(_) => clear(spot, &now)?,
            State::File(_) | State::Link { .. } | State::Special { .. } => {
                self.take_away(spot, path, &now)?;
            }
        }
        if let Some(spared) = spared {
            spared.removed();
        }
        // Another directory may get its name.
        self.directories.retain(|(other, _)| !other.starts_with(path));
        Ok(())
    }

    /// Removes a file that is as it was looked at. What somebody else puts there meanwhile stays.
    fn take_away(&mut self, spot: &Spot, path: &Path, now: &State) -> Result<(), Stop> {
        let aside = self.temporary(spot, path)?;
        let rename = |from: &CStr, to: &CStr| {
            renameat_with(&spot.directory, from, &spot.directory, to, RenameFlags::NOREPLACE)
        };
        interruption::point();
        match rename(&spot.name, &aside) {
            // The file system cannot do this.
            Err(Errno::INVAL | Errno::NOSYS) => return Ok(clear(spot, now)?),
            moved => moved?,
        }
        if !look(&spot.directory, &aside)?.is_unchanged(now) {
            rename(&aside, &spot.name)?;
            return Err(Stop::Left(Why::Changed));
        }
        interruption::point();
        Ok(unlinkat(&spot.directory, &aside, AtFlags::empty())?)
    }

    /// Returns a free name beside a path, recorded as one that is not there.
    fn temporary(&mut self, spot: &Spot, path: &Path) -> io::Result<CString> {
        self.temporary += 1;
        // One that was interrupted has left others.
        let CallKey { view, number } = self.call;
        let name = format!("{TEMPORARY}{view:x}-{number}-{}", self.temporary);
        self.recorded(spot, path, &name)
    }

    fn recorded(&self, spot: &Spot, path: &Path, name: &str) -> io::Result<CString> {
        let beside = path.with_file_name(name);
        let name = CString::new(name)?;
        let place = Place { directory: &spot.directory, name: name.as_c_str(), path: &beside };
        self.recorder.before(self.call, place)?;
        self.reaches(&beside, None)?;
        Ok(name)
    }

    /// Gives a finished file its name, in place of what is there now.
    fn put(&self, spot: &Spot, name: &CStr, now: &State) -> Result<(), Stop> {
        let put = || -> Result<(), Stop> {
            interruption::point();
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
            if !look(&spot.directory, name)?.is_unchanged(now) {
                rename(RenameFlags::EXCHANGE)?;
                return Err(Stop::Left(Why::Changed));
            }
            interruption::point();
            Ok(unlinkat(&spot.directory, name, AtFlags::empty())?)
        };
        put().inspect_err(|_| {
            // It is not in its place, and no other name leads to it.
            let _gone = unlinkat(&spot.directory, name, AtFlags::empty());
        })
    }

    /// Sets modes and attributes of directories, the deepest first.
    fn restore_directories(&mut self) {
        let mut all = std::mem::take(&mut self.directories);
        all.sort_by_key(|(path, _)| std::cmp::Reverse(path.components().count()));
        for (path, was) in all {
            if let Err(error) = restore_directory(&path, &was) {
                self.report.failed.push((path, error.into()));
            }
        }
    }
}

/// Returns the state of a file with this content in place of its former one.
fn merged(was: &State, content: Content, length: usize) -> State {
    let mut merged = was.clone();
    if let State::File(file) = &mut merged {
        (file.content, file.size) = (content, length as u64);
    }
    merged
}

fn place_of<'a>(spot: &'a Spot, path: &'a Path) -> Place<'a, &'a OwnedFd> {
    Place { directory: &spot.directory, name: &spot.name, path }
}

fn linked_since(steps: &[Step]) -> HashMap<FileId, u32> {
    let mut all = HashMap::new();
    let linked = steps.iter().filter(|step| step.is_linked_since);
    for id in linked.filter_map(|step| step.now.as_ref().and_then(State::id)) {
        *all.entry(id).or_default() += 1;
    }
    all
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
