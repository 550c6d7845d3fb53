//! Compares the upper directory of a branch with the project.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use super::change::{BranchChange, Layers, Note, Obstacle, SEARCHED, Settled, Time};
use super::mark::{self, OWN_ATTRIBUTES, below, names, open_in_project};
use super::moved::{Moved, Tops};
use crate::disk::{self, look};
use crate::state::{FileState, State};

/// The longest path below the project that is looked at; a commit opens each by its whole path.
const LONGEST_PATH: usize = 3_500;
/// Permissions that are compared.
const PERMISSIONS: u32 = 0o1777;
const SET_ID: u32 = 0o6000;

/// Returns the names that differ, in the order of their paths. Times and owners are not compared.
///
/// # Errors
/// If one of the directories cannot be read.
pub fn compare(layers: Layers<'_>) -> io::Result<Vec<BranchChange>> {
    let mut walk = Walk {
        layers,
        upper: open_top(layers.upper)?,
        project: open_top(layers.project)?,
        found: BTreeMap::new(),
        waiting: vec![PathBuf::new()],
        met: Vec::new(),
        moved: Vec::new(),
        replaced: HashSet::new(),
    };
    while let Some(path) = walk.waiting.pop() {
        walk.directory(&path)?;
    }
    walk.find_removed_since()?;
    Ok(walk.found.into_values().collect())
}

pub(super) fn open_top(path: &Path) -> rustix::io::Result<OwnedFd> {
    openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

struct Walk<'a> {
    layers: Layers<'a>,
    upper: OwnedFd,
    project: OwnedFd,
    found: BTreeMap<PathBuf, BranchChange>,
    /// Directories of the branch that are still to be looked at.
    waiting: Vec<PathBuf>,
    /// The files of the project at names that the branch has changed.
    met: Vec<PathBuf>,
    /// Files of the branch that were copied up, and whose names the project does not have.
    moved: Vec<Moved>,
    /// Directories of the project that the user has replaced by others since the branch began.
    replaced: HashSet<PathBuf>,
}

impl Walk<'_> {
    /// Compares a directory of the branch.
    fn directory(&mut self, path: &Path) -> io::Result<()> {
        let there = open_in_project(&self.project, path)?;
        let opened = below(&self.upper, path).and_then(|here| Ok((names(&here)?, here)));
        let (all, here) = match opened {
            Err(Errno::ACCESS) if !path.as_os_str().is_empty() => {
                return self.stop(path, there.as_ref(), Obstacle::Unreadable);
            }
            opened => opened?,
        };
        let is_opaque = match mark::is_opaque(&here) {
            Ok(_) if mark::has_unknown(&here) => {
                return self.stop(path, there.as_ref(), Obstacle::UnknownMark);
            }
            Err(mark::UnknownMark) => return self.stop(path, there.as_ref(), Obstacle::UnknownMark),
            Ok(is_opaque) => is_opaque,
        };
        for name in &all {
            self.name(path, (&here, there.as_ref()), name)?;
        }
        let Some(there) = there.filter(|_| is_opaque) else { return Ok(()) };
        for name in names(&there)?.into_iter().filter(|name| all.binary_search(name).is_err()) {
            self.removed(path, &there, &name)?;
        }
        Ok(())
    }

    /// Compares a name in a directory of the branch.
    fn name(
        &mut self,
        directory: &Path,
        (here, there): (&OwnedFd, Option<&OwnedFd>),
        name: &CStr,
    ) -> io::Result<()> {
        if mark::is_whiteout(here, name)? {
            return there.map_or(Ok(()), |there| self.removed(directory, there, name));
        }
        let path = joined(directory, name);
        let mut new = look(here, name)?;
        let now = there.map_or(Ok(State::Absent), |there| full(there, name))?;
        let changed = mark::changed(here, name)?;
        let mut obstacle = None;
        let mut origin = None;
        if now.file().is_some() {
            self.met.push(path.clone());
        }
        match open(here, name, &mut new) {
            Opened::None => {}
            Opened::Unreadable => obstacle = Some(Obstacle::Unreadable),
            Opened::File(file) => {
                origin = mark::origin(&file);
                if let (State::Directory(_), State::Directory(_), Some(there)) = (&new, &now, there) {
                    let is_replaced = match &origin {
                        Some(origin) if !origin.is_empty() => !mark::has_handle(there, name, origin),
                        // A command has made it anew, or the mark does not tell.
                        Some(_) | None => self.may_be_replaced(&path, &now, (there, name))?,
                    };
                    if is_replaced {
                        self.replaced.insert(path.clone());
                    }
                }
                if mark::has_unknown(&file) {
                    obstacle = Some(Obstacle::UnknownMark);
                }
                if let (State::File(new), State::File(now), Some(there)) = (&new, &now, there)
                    && is_same_file((new, &file), now, (there, name))?
                {
                    return Ok(());
                }
            }
        }
        if path.as_os_str().len() > LONGEST_PATH {
            obstacle = Some(Obstacle::TooLong);
        }
        if matches!(new, State::Special { .. }) {
            obstacle = Some(Obstacle::Special);
        } else if matches!(now, State::Special { .. }) {
            obstacle = Some(Obstacle::ReplacesSpecial);
        }
        if matches!(new, State::Directory(_)) && obstacle != Some(Obstacle::TooLong) {
            self.waiting.push(path.clone());
        }
        if obstacle.is_none() && is_same(&new, &now) {
            return Ok(());
        }
        if let (State::Directory(_), false, Some(there)) = (&now, matches!(new, State::Directory(_)), there) {
            self.note_replaced(&path, &now, (there, name))?;
            self.removed_inside(&path)?;
        }
        if obstacle.is_none() {
            // Commands cannot move a directory of the project in a branch.
            let is_gone = origin.is_some() && matches!(new, State::Directory(_));
            obstacle = self.conflict(&path, (&now, is_gone), (there, name))?;
        }
        if let (Some(origin), true, None) = (origin, now.is_absent() && new.file().is_some(), obstacle) {
            match there {
                // No name of this directory has changed in the project, so the user has not removed the file there.
                Some(there) if !self.has_changed(directory, there)? => {}
                _ => self.moved.push(Moved {
                    path: path.clone(),
                    origin,
                    is_in_changed: there.is_some(),
                    maybe_from: None,
                }),
            }
        }
        let mut notes = Vec::new();
        if mode(&new) & SET_ID != 0 && matches!(new, State::File(_)) {
            notes.push(Note::SetId);
        }
        if now.file().is_some_and(|file| file.links > 1) {
            notes.push(Note::OtherNames);
        }
        if new.file().is_some_and(|file| file.size > SEARCHED) {
            notes.push(Note::NotSearched);
        }
        let project_changed = project_changed(&now, (there, name))?;
        let change = BranchChange { path: path.clone(), now, new, changed, project_changed, obstacle, notes };
        self.found.insert(path, change);
        Ok(())
    }

    /// Notes that a directory of the branch cannot be looked into.
    fn stop(&mut self, path: &Path, there: Option<&OwnedFd>, obstacle: Obstacle) -> io::Result<()> {
        if let Some(known) = self.found.get_mut(path) {
            known.obstacle = Some(obstacle);
            return Ok(());
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::other(obstacle.to_string()));
        };
        let name = CString::new(name.as_bytes())?;
        let here = below(&self.upper, parent)?;
        let now = match there {
            Some(_) => full(&below(&self.project, parent)?, &name)?,
            None => State::Absent,
        };
        let (new, changed) = (look(&here, &name)?, mark::changed(&here, &name)?);
        let change = BranchChange {
            path: path.to_owned(),
            now,
            new,
            changed,
            // It is not committed.
            project_changed: (0, 0),
            obstacle: Some(obstacle),
            notes: Vec::new(),
        };
        self.found.insert(change.path.clone(), change);
        Ok(())
    }

    /// Adds a name of the project that the branch has removed, with everything in it.
    fn removed(&mut self, directory: &Path, there: &OwnedFd, name: &CStr) -> io::Result<()> {
        let path = joined(directory, name);
        let now = full(there, name)?;
        if now.is_absent() {
            return Ok(());
        }
        let is_directory = matches!(now, State::Directory(_));
        if now.file().is_some() {
            self.met.push(path.clone());
        }
        self.note_replaced(&path, &now, (there, name))?;
        let obstacle = match now {
            State::Special { .. } => Some(Obstacle::ReplacesSpecial),
            State::Absent | State::File(_) | State::Directory(_) | State::Link { .. } => {
                self.conflict(&path, (&now, false), (Some(there), name))?
            }
        };
        let project_changed = project_changed(&now, (Some(there), name))?;
        let change = BranchChange {
            path: path.clone(),
            now,
            new: State::Absent,
            changed: (0, 0),
            project_changed,
            obstacle,
            notes: Vec::new(),
        };
        self.found.insert(path.clone(), change);
        if is_directory { self.removed_inside(&path) } else { Ok(()) }
    }

    fn removed_inside(&mut self, top: &Path) -> io::Result<()> {
        let mut waiting = vec![top.to_owned()];
        while let Some(path) = waiting.pop() {
            let Some(there) = open_in_project(&self.project, &path)? else { continue };
            for name in names(&there)? {
                let inner = joined(&path, &name);
                let now = full(&there, &name)?;
                if now.file().is_some() {
                    self.met.push(inner.clone());
                }
                self.note_replaced(&inner, &now, (&there, &name))?;
                let obstacle = if matches!(now, State::Special { .. }) {
                    Some(Obstacle::ReplacesSpecial)
                } else if inner.as_os_str().len() > LONGEST_PATH {
                    Some(Obstacle::TooLong)
                } else {
                    self.conflict(&inner, (&now, false), (Some(&there), &name))?
                };
                if matches!(now, State::Directory(_)) && obstacle != Some(Obstacle::TooLong) {
                    waiting.push(inner.clone());
                }
                let change = BranchChange {
                    path: inner.clone(),
                    project_changed: project_changed(&now, (Some(&there), &name))?,
                    now,
                    new: State::Absent,
                    changed: (0, 0),
                    obstacle,
                    notes: Vec::new(),
                };
                self.found.insert(inner, change);
            }
        }
        Ok(())
    }

    /// Finds files that were changed in the branch and that somebody has removed from the project since.
    fn find_removed_since(&mut self) -> io::Result<()> {
        let mut moved = std::mem::take(&mut self.moved);
        if self.met.iter().any(|path| self.layers.settled.contains_key(path)) {
            // One of these files was given back as another one, from which nothing was copied up.
            moved.retain(|moved| moved.origin.is_empty());
        }
        let tops = Tops { upper: &self.upper, project: &self.project };
        for Moved { path, maybe_from, .. } in tops.removed(moved, &self.met, &self.found)? {
            if let Some(change) = self.found.get_mut(&path) {
                change.obstacle = Some(Obstacle::RemovedSince);
            }
            // A commit that leaves the new name must not remove the former one, or the project has neither.
            let former = maybe_from.and_then(|from| self.found.get_mut(&from));
            if let Some(change) = former.filter(|change| change.obstacle.is_none()) {
                change.obstacle = Some(Obstacle::MayHaveMoved);
            }
        }
        Ok(())
    }

    /// Returns whether somebody else has changed a name of the project since the branch began.
    fn conflict(
        &self,
        path: &Path,
        (now, is_gone): (&State, bool),
        (there, name): (Option<&OwnedFd>, &CStr),
    ) -> io::Result<Option<Obstacle>> {
        let settled = self.layers.settled.get(path);
        let (Some(there), false) = (there, now.is_absent()) else {
            // A commit, or its taking back, may have left nothing there.
            let was_left = settled.is_some_and(|settled| settled.changed != Settled::ABSENT.changed);
            return Ok((is_gone || was_left).then_some(Obstacle::RemovedSince));
        };
        let is_in_replaced = path.ancestors().any(|around| self.replaced.contains(around));
        let same_id = settled.filter(|settled| settled.id == now.id());
        let (changed, is_settled) = match now {
            // Its times change with the names in it, which are compared themselves.
            State::Directory(directory) => (directory.id.born, same_id.is_some()),
            State::Absent | State::File(_) | State::Link { .. } | State::Special { .. } => {
                let changed = mark::changed(there, name)?;
                (changed, same_id.is_some_and(|settled| settled.changed == changed))
            }
        };
        let is_changed = self.is_since(changed) && !is_settled;
        Ok((is_in_replaced || is_changed).then_some(Obstacle::ChangedSince))
    }

    /// Returns true for a time in or after the tick of the clock in which the branch began.
    fn is_since(&self, time: Time) -> bool {
        let (seconds, nanoseconds) = time;
        let begun = self.layers.begun;
        // Some file systems keep whole seconds.
        time >= begun || nanoseconds == 0 && seconds >= begun.0
    }

    /// Returns true if somebody may have changed names in a directory of the project since the branch began, or since the
    /// last commit.
    fn has_changed(&self, path: &Path, there: &OwnedFd) -> io::Result<bool> {
        let status = fstat(there)?;
        let changed = (status.st_ctime, u32::try_from(status.st_ctime_nsec).unwrap_or_default());
        let is_settled = self.layers.settled.get(path).is_some_and(|settled| settled.changed == changed);
        Ok(self.is_since(changed) && !is_settled)
    }

    /// Notes a directory of the project that the branch removes, and that may not be the one of which the branch began.
    fn note_replaced(&mut self, path: &Path, now: &State, place: (&OwnedFd, &CStr)) -> io::Result<()> {
        if matches!(now, State::Directory(_)) && self.may_be_replaced(path, now, place)? {
            self.replaced.insert(path.to_owned());
        }
        Ok(())
    }

    /// Returns true if somebody may have given the name of a directory to another one since the branch began: a rename
    /// changes the status of what is moved, and the content of the directory around it.
    fn may_be_replaced(
        &self,
        path: &Path,
        now: &State,
        (there, name): (&OwnedFd, &CStr),
    ) -> io::Result<bool> {
        let changed = mark::changed(there, name)?;
        let around = fstat(there)?;
        let around = (around.st_mtime, u32::try_from(around.st_mtime_nsec).unwrap_or_default());
        let settled = self.layers.settled.get(path);
        let is_settled = settled.is_some_and(|settled| settled.id == now.id() && settled.changed == changed);
        Ok(self.is_since(changed) && self.is_since(around) && !is_settled)
    }
}

/// Returns when the status of a name of the project last changed; zero for a directory or a missing name.
fn project_changed(now: &State, (there, name): (Option<&OwnedFd>, &CStr)) -> io::Result<Time> {
    match (now, there) {
        (State::File(_) | State::Link { .. } | State::Special { .. }, Some(there)) => {
            Ok(mark::changed(there, name)?)
        }
        _ => Ok((0, 0)),
    }
}

fn joined(directory: &Path, name: &CStr) -> PathBuf {
    directory.join(OsStr::from_bytes(name.to_bytes()))
}

/// Returns the state of a name of the project, with attributes where it can be opened.
fn full(directory: &OwnedFd, name: &CStr) -> io::Result<State> {
    let mut state = look(directory, name)?;
    let _attributes = open(directory, name, &mut state);
    Ok(state)
}

enum Opened {
    /// It is not a file or directory.
    None,
    Unreadable,
    File(OwnedFd),
}

/// Opens a file or directory, and adds its attributes to its state; not those of the overlay itself.
fn open(directory: &OwnedFd, name: &CStr, state: &mut State) -> Opened {
    let Some(id) = state.id() else { return Opened::None };
    let Ok(file) = disk::open_same(directory, name, id) else { return Opened::Unreadable };
    let mut attributes = disk::attributes(&file);
    attributes.retain(|(name, _)| !name.starts_with(OWN_ATTRIBUTES));
    match state {
        State::File(file) => file.attributes = Some(attributes),
        State::Directory(directory) => directory.attributes = Some(attributes),
        State::Absent | State::Link { .. } | State::Special { .. } => {}
    }
    Opened::File(file)
}

fn mode(state: &State) -> u32 {
    match state {
        State::File(file) => file.mode,
        State::Directory(directory) => directory.mode,
        State::Absent | State::Link { .. } | State::Special { .. } => 0,
    }
}

/// Returns true if two states are the same, except for the content of files.
fn is_same(new: &State, now: &State) -> bool {
    match (new, now) {
        (State::Directory(new), State::Directory(now)) => {
            new.mode & PERMISSIONS == now.mode & PERMISSIONS && new.attributes == now.attributes
        }
        (State::Link { target: new, .. }, State::Link { target: now, .. }) => new == now,
        _ => false,
    }
}

/// Returns true if two files are the same in mode, attributes and content.
fn is_same_file(
    (new, file): (&FileState, &OwnedFd),
    now: &FileState,
    (there, name): (impl AsFd, &CStr),
) -> io::Result<bool> {
    let are_alike = new.size == now.size
        && new.mode & PERMISSIONS == now.mode & PERMISSIONS
        && new.attributes == now.attributes;
    if !are_alike {
        return Ok(false);
    }
    // A file of the project that cannot be read cannot be compared.
    let Ok(other) = disk::open_same(there, name, now.id) else { return Ok(false) };
    have_same_content(file.try_clone()?, other)
}

fn have_same_content(one: OwnedFd, other: OwnedFd) -> io::Result<bool> {
    let (mut one, mut other) = (BufReader::new(File::from(one)), BufReader::new(File::from(other)));
    let (mut left, mut right) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let count = fill(&mut one, &mut left)?;
        let others = fill(&mut other, &mut right)?;
        if left.get(..count) != right.get(..others) {
            return Ok(false);
        }
        if count == 0 {
            return Ok(true);
        }
    }
}

/// Reads until the buffer is full, or the file ends.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while let Some(rest) = buffer.get_mut(count..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) => break,
            Ok(read) => count += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}
