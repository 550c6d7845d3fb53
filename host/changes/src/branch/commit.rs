//! Commits changes of a branch: all that were chosen, or none.
//!
//! A commit is a call like others, so it can be undone, and one that was interrupted is taken back. The contents are
//! staged in the store first, so that what is written is what was compared.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::change::{BranchChange, Layers, Settled};
use super::compare::open_top;
use super::mark::{self, below};
use crate::disk::{self, look};
use crate::plan::{Act, Step};
use crate::recorder::Recorder;
use crate::state::{Content, State};
use crate::undo::{Whole, make_whole};

/// Makes these changes in the project. The caller holds the lock on names, and no command runs in the branch.
///
/// # Errors
/// If the store cannot be written, or the branch has changed since it was compared. What was done until then can be put
/// back with [`recover`](crate::undo::recover).
pub fn commit(
    recorder: &Recorder,
    layers: Layers<'_>,
    chosen: &[&BranchChange],
    label: &str,
) -> io::Result<Whole> {
    // All are looked at first: the links of the stage change the status of files.
    chosen.iter().try_for_each(|change| is_as_compared(layers.upper, change))?;
    chosen.iter().try_for_each(|change| is_project_as_compared(layers.project, change))?;
    let mut staged = Staged { recorder, contents: Vec::new() };
    let mut made = Vec::new();
    for change in chosen.iter().filter(|change| !change.new.is_absent()) {
        let new = staged.add(layers.upper, change)?;
        made.push(Step {
            path: layers.project.join(&change.path),
            now: Some(change.now.clone()),
            act: Act::Restore(new),
            is_linked_since: false,
            is_separate: false,
        });
    }
    // What is in a directory goes before the directory itself, and comes after it.
    let removed = chosen.iter().rev().filter(|change| change.new.is_absent());
    let mut steps: Vec<Step> = removed
        .map(|change| Step {
            path: layers.project.join(&change.path),
            now: Some(change.now.clone()),
            act: Act::Restore(State::Absent),
            is_linked_since: false,
            is_separate: false,
        })
        .collect();
    steps.append(&mut made);
    make_whole(recorder, &steps, label, layers.project)
}

/// Opens the directory of a path of the branch; also returns the name in it.
fn place(upper: &Path, path: &Path) -> io::Result<(OwnedFd, CString)> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    Ok((below(&open_top(upper)?, parent)?, CString::new(name.as_bytes())?))
}

fn is_as_compared(upper: &Path, change: &BranchChange) -> io::Result<()> {
    let State::File(file) = &change.new else { return Ok(()) };
    let (directory, name) = place(upper, &change.path)?;
    let is_same = matches!(
        look(&directory, &name)?,
        State::File(now) if (now.id, now.size, now.modified) == (file.id, file.size, file.modified)
    ) && mark::changed(&directory, &name)? == change.changed;
    if is_same {
        return Ok(());
    }
    Err(io::Error::other(format!("`{}` has changed in the branch", change.path.display())))
}

/// Checks that a name of the project has not been touched since the comparison. The steps compare the rest: a program
/// that keeps size and time of a file is told by this time only, which no program can set.
fn is_project_as_compared(project: &Path, change: &BranchChange) -> io::Result<()> {
    if change.project_changed == (0, 0) {
        return Ok(());
    }
    let Ok((directory, name)) = place(project, &change.path) else { return Ok(()) };
    match mark::changed(&directory, &name) {
        Ok(changed) if changed != change.project_changed => {
            Err(io::Error::other(format!("`{}` has changed in the project", change.path.display())))
        }
        _ => Ok(()),
    }
}

/// Contents in the store that are removed when the commit is over.
struct Staged<'a> {
    recorder: &'a Recorder,
    contents: Vec<Content>,
}

impl Staged<'_> {
    /// Returns the state of a change with its content in the store.
    fn add(&mut self, upper: &Path, change: &BranchChange) -> io::Result<State> {
        let mut new = change.new.clone();
        let State::File(file) = &mut new else { return Ok(new) };
        let (directory, name) = place(upper, &change.path)?;
        let open = disk::open_same(&directory, &name, file.id)?;
        file.content = self.recorder.store().stage(&open, (directory.as_fd(), &name), file)?;
        self.contents.push(file.content.clone());
        Ok(new)
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        self.contents.iter().for_each(|content| self.recorder.store().unstage(content));
    }
}

/// Returns names of the project as they are now, after a commit, and the directories that they are in.
///
/// # Errors
/// The system's.
pub fn settled(project: &Path, paths: &[PathBuf]) -> io::Result<BTreeMap<PathBuf, Settled>> {
    let mut all = BTreeMap::new();
    for path in paths.iter().flat_map(|path| path.ancestors()) {
        if !all.contains_key(path) {
            let name = if path.as_os_str().is_empty() { project.to_owned() } else { project.join(path) };
            all.insert(path.to_owned(), settled_name(&name)?);
        }
    }
    Ok(all)
}

fn settled_name(path: &Path) -> io::Result<Settled> {
    let state = disk::look_at(path)?;
    let changed = match &state {
        State::Absent => Settled::ABSENT.changed,
        State::Directory(_) | State::File(_) | State::Link { .. } | State::Special { .. } => {
            let spot = disk::spot(path)?;
            mark::changed(&spot.directory, &spot.name)?
        }
    };
    Ok(Settled { id: state.id(), changed })
}
