//! An agent whose changes are recorded as the broker records them.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{CWD, RenameFlags, XattrFlags, renameat_with, setxattr};

use crate::disk::spot;
use crate::plan::{Step, plan};
use crate::undo::{Range, Report, carry_out, history, recover};
use crate::{Bounds, CallKey, Changed, Disk, Place, Recorder, Store};

/// A session in a directory with a store beside it.
pub(super) struct Session {
    pub(super) place: tempfile::TempDir,
    pub(super) recorder: Recorder,
    /// That of the program that undoes.
    undoer: Recorder,
    call: u64,
    begin: u64,
}

impl Session {
    pub(super) fn new() -> Self {
        Self::bounded(Bounds::default())
    }

    pub(super) fn bounded(bounds: Bounds) -> Self {
        let place = tempfile::tempdir().expect("a directory");
        for name in ["project", "store"] {
            fs::create_dir(place.path().join(name)).expect("made");
        }
        Store::make(&place.path().join("store"), bounds).expect("a store");
        let recorder = Recorder::bounded(Store::open(&place.path().join("store")).expect("opened"));
        let undoer = Recorder::new(Store::open(&place.path().join("store")).expect("opened"));
        Self { place, recorder, undoer, call: 1, begin: 0 }
    }

    pub(super) fn project(&self) -> PathBuf {
        self.place.path().join("project").canonicalize().expect("there")
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.project().join(name)
    }

    pub(super) fn key(&self) -> CallKey {
        CallKey { view: 1, number: self.call }
    }

    /// Ends the current call.
    pub(super) fn end(&mut self) -> Changed {
        let changed = self.recorder.finish(self.key(), self.begin, None, "a call").expect("finished");
        self.call += 1;
        self.begin = self.recorder.store().length().expect("length");
        changed
    }

    /// Records a name that is about to change.
    pub(super) fn before(&self, path: &Path) -> io::Result<()> {
        let spot = spot(path)?;
        self.recorder.before(self.key(), Place { directory: &spot.directory, name: &spot.name, path })
    }

    /// The broker records where a link leads; here they are left alone.
    fn is_no_link(&self, name: &str) -> io::Result<()> {
        match self.at(name).is_symlink() {
            true => Err(io::ErrorKind::InvalidInput.into()),
            false => Ok(()),
        }
    }

    pub(super) fn write(&self, name: &str, text: &str) -> io::Result<()> {
        self.is_no_link(name)?;
        self.before(&self.at(name))?;
        fs::write(self.at(name), text)
    }

    pub(super) fn overwrite(&self, name: &str, text: &str) -> io::Result<()> {
        self.is_no_link(name)?;
        self.before(&self.at(name))?;
        OpenOptions::new().write(true).open(self.at(name))?.write_all_at(text.as_bytes(), 0)
    }

    pub(super) fn append(&self, name: &str, text: &str) -> io::Result<()> {
        self.is_no_link(name)?;
        self.before(&self.at(name))?;
        OpenOptions::new().append(true).open(self.at(name))?.write_all(text.as_bytes())
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.at(name);
        let spot = spot(&path)?;
        let outside = || Some(Arc::clone(&spot.directory));
        let place = Place { directory: &spot.directory, name: spot.name.as_c_str(), path: &path };
        let spared = self.recorder.before_removal(self.key(), place, &outside)?;
        match path.symlink_metadata()?.is_dir() {
            true => fs::remove_dir(&path)?,
            false => fs::remove_file(&path)?,
        }
        if let Some(spared) = spared {
            spared.removed();
        }
        Ok(())
    }

    pub(super) fn remove_all(&self, name: &str) -> io::Result<()> {
        let at = self.at(name);
        if at.symlink_metadata()?.is_dir() {
            for entry in fs::read_dir(&at)? {
                self.remove_all(&format!("{name}/{}", entry?.file_name().to_string_lossy()))?;
            }
        }
        self.remove(name)
    }

    pub(super) fn make_directory(&self, name: &str) -> io::Result<()> {
        self.before(&self.at(name))?;
        fs::create_dir(self.at(name))
    }

    pub(super) fn link(&self, target: &str, name: &str) -> io::Result<()> {
        self.before(&self.at(name))?;
        symlink(target, self.at(name))
    }

    pub(super) fn hard_link(&self, old: &str, new: &str) -> io::Result<()> {
        // What is changed by the new name is changed by the old.
        self.before(&self.at(old))?;
        self.before(&self.at(new))?;
        fs::hard_link(self.at(old), self.at(new))
    }

    pub(super) fn before_status(&self, name: &str) -> io::Result<()> {
        let path = self.at(name);
        let spot = spot(&path)?;
        let place = Place { directory: &spot.directory, name: &spot.name, path: &path };
        self.recorder.before_status(self.key(), place)
    }

    /// Sets an extended attribute.
    pub(super) fn tag(&self, name: &str, value: &str) -> io::Result<()> {
        let path = self.at(name);
        let spot = spot(&path)?;
        let place = Place { directory: &spot.directory, name: &spot.name, path: &path };
        self.recorder.before_attributes(self.key(), place)?;
        Ok(setxattr(&path, "user.tag", value.as_bytes(), XattrFlags::empty())?)
    }

    /// Sets the time of the last change, in seconds since 1970.
    pub(super) fn time(&self, name: &str, seconds: u64) -> io::Result<()> {
        self.before_status(name)?;
        let time = UNIX_EPOCH + Duration::from_secs(seconds);
        let times = fs::FileTimes::new().set_modified(time);
        fs::File::open(self.at(name))?.set_times(times)
    }

    pub(super) fn mode(&self, name: &str, mode: u32) -> io::Result<()> {
        self.is_no_link(name)?;
        // As the broker: what the owner cannot read afterwards cannot be recorded before the next change.
        if mode & 0o400 == 0 {
            self.before(&self.at(name))?
        } else {
            self.before_status(name)?
        }
        fs::set_permissions(self.at(name), fs::Permissions::from_mode(mode))
    }

    pub(super) fn rename(&self, old: &str, new: &str, exchange: bool) -> io::Result<()> {
        let (from, to) = (self.at(old), self.at(new));
        let (old, new) = (spot(&from)?, spot(&to)?);
        let places = (
            Place { directory: &old.directory, name: old.name.as_c_str(), path: &from },
            Place { directory: &new.directory, name: new.name.as_c_str(), path: &to },
        );
        let outside = || Some(Arc::clone(&new.directory));
        let (announced, replaced) = self.recorder.moving(self.key(), places, exchange, &outside)?;
        let flags = if exchange { RenameFlags::EXCHANGE } else { RenameFlags::empty() };
        renameat_with(CWD, &from, CWD, &to, flags).inspect_err(|_| {
            self.recorder.not_moved(self.key(), announced);
        })?;
        if let Some(replaced) = replaced {
            replaced.removed();
        }
        Ok(())
    }

    pub(super) fn plan(&self, start: usize) -> Vec<Step> {
        let store = self.recorder.store();
        plan(&history(store).expect("history"), start, &Disk(store)).expect("a plan")
    }

    /// Takes everything back from this position on.
    pub(super) fn undo_from(&self, start: usize, redo: bool) -> Report {
        let steps = self.plan(start);
        let history = history(self.recorder.store()).expect("history");
        carry_out(&self.undoer, &steps, Range { start, redo }, (&self.project(), &history)).expect("undone")
    }

    pub(super) fn undo(&self) -> Report {
        self.undo_from(0, false)
    }

    pub(super) fn undo_newest(&self) -> Option<Report> {
        let newest = history(self.recorder.store()).expect("history").newest()?;
        Some(self.undo_from(newest, false))
    }

    /// Takes everything back that is in force.
    pub(super) fn undo_in_force(&self) -> Option<Report> {
        let first = history(self.recorder.store()).expect("history").in_force_since(0)?;
        Some(self.undo_from(first, false))
    }

    pub(super) fn redo(&self) -> Report {
        self.redo_if_possible().expect("something to redo")
    }

    pub(super) fn redo_if_possible(&self) -> Option<Report> {
        let last = history(self.recorder.store()).expect("history").redoable()?;
        Some(self.undo_from(last, true))
    }

    pub(super) fn recover(&self) -> bool {
        recover(&self.undoer, &self.project()).expect("recovered").is_some()
    }
}
