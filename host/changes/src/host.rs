//! The interface of the journal for the host: recording tool calls, and ending the calls of commands.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

use crate::bounds::Bounds;
use crate::disk;
use crate::record::CallKey;
use crate::recorder::{Place, Recorder};
use crate::state::Changed;
use crate::store::{self, Store};

/// The record of a session's changes, as the host uses it.
#[derive(Debug)]
pub struct SessionChanges {
    recorder: Recorder,
    directory: PathBuf,
    /// How many changes had been refused when that was last asked.
    refused: AtomicU64,
}

impl SessionChanges {
    /// Opens the record in a directory.
    ///
    /// # Errors
    /// If it is none.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let recorder = Recorder::bounded(Store::open(directory)?);
        let refused = AtomicU64::new(recorder.store().refusals()?);
        Ok(Self { recorder, directory: directory.to_owned(), refused })
    }

    /// Records that a turn of the user begins.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn turn(&self, id: &str, label: &str) -> io::Result<()> {
        self.recorder.turn(id, label)
    }

    /// Returns the length of the journal, before a command starts.
    ///
    /// # Errors
    /// The system's.
    pub fn length(&self) -> io::Result<u64> {
        self.recorder.store().length()
    }

    /// Ends the call of a command, given its sandbox and number: records the state of each path that it changed.
    ///
    /// # Errors
    /// If the journal cannot be read or written.
    pub fn finish(
        &self,
        (view, number): (u64, u64),
        start: u64,
        id: Option<&str>,
        label: &str,
    ) -> io::Result<Changed> {
        self.recorder.finish(CallKey { view, number }, start, id, label)
    }

    /// Returns the directory of the record, if changes were refused since this was last asked because its disk is full.
    pub fn refused(&self) -> Option<&Path> {
        let now = self.recorder.store().refusals().ok()?;
        (self.refused.swap(now, Ordering::Relaxed) != now).then_some(&*self.directory)
    }

    /// Records a file before a tool writes it, with the directories that this will make.
    ///
    /// # Errors
    /// If it cannot be recorded; then it must not be written.
    pub fn before_tool(&self, path: &Path) -> io::Result<ToolCall> {
        let start = self.length()?;
        let key = self.recorder.own_call();
        let mut missing: Vec<&Path> = Vec::new();
        for at in path.ancestors() {
            match disk::spot(at) {
                Ok(spot) => {
                    let place = Place { directory: &spot.directory, name: spot.name.as_c_str(), path: at };
                    self.recorder.before(key, place)?;
                    break;
                }
                Err(Errno::NOENT) => missing.push(at),
                Err(error) => return Err(error.into()),
            }
        }
        for path in missing.into_iter().rev() {
            self.recorder.absent(key, path)?;
        }
        Ok(ToolCall { key, start, path: path.to_owned() })
    }

    /// Records what a tool has written.
    ///
    /// # Errors
    /// If the journal cannot be read or written.
    pub fn after_tool(&self, call: &ToolCall, id: Option<&str>, tool: &str) -> io::Result<Changed> {
        let label = format!("{tool} {}", call.path.display());
        self.recorder.finish(call.key, call.start, id, &label)
    }
}

/// Makes the files of a record in a directory that exists.
///
/// # Errors
/// The system's.
pub fn make(directory: &Path, bounds: Bounds) -> io::Result<()> {
    Store::make(directory, bounds)
}

/// Returns true if no change has been recorded in a directory.
///
/// # Errors
/// The system's.
pub fn is_empty(directory: &Path) -> io::Result<bool> {
    store::is_empty(directory)
}

/// Returns the files of a record, for giving them to another user.
#[must_use]
pub fn files(directory: &Path) -> Vec<PathBuf> {
    store::files(directory)
}

/// A tool's call that is about to write.
#[derive(Debug)]
pub struct ToolCall {
    key: CallKey,
    start: u64,
    path: PathBuf,
}
