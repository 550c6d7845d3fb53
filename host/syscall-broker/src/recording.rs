//! Records what a call is about to change in the user's files, so that it can be taken back.
//!
//! If something cannot be recorded, as on a full disk, the call fails and changes nothing.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

use portcullis_changes::{CallKey, Move, Place, Spared};
use rustix::io::Errno;

use crate::broker::Broker;
use crate::change_record::Recording;
use crate::pending::PendingCall;
use crate::resolved_name::ResolvedName;
use crate::worker::Worker;

/// A move that was announced.
#[derive(Debug)]
pub(crate) struct Announced {
    recorded: Option<(CallKey, Move)>,
    replaced: Option<Spared<'static>>,
}

impl Broker {
    /// Returns the record, if changes at this path are recorded: the session's own places end with it.
    fn recording(&self, path: &Path) -> Option<&Recording> {
        let is_users = self.roots.iter().any(|root| path != root && path.starts_with(root));
        self.recording.as_ref().filter(|_| is_users)
    }

    /// Returns the key of the caller's command. What no command is known for would not be taken back with the rest of
    /// that command, so it is not changed. Nearly always its caller has ended.
    fn key(&self, recording: &Recording, pending: &PendingCall) -> Result<CallKey, Errno> {
        let number = self.processes.command(&pending.caller).ok_or(Errno::IO)?;
        let key = CallKey { view: recording.view, number };
        if recording.recorder.is_new(key) {
            recording.recorder.forget(|call| call == key || self.processes.is_running(call.number));
        }
        Ok(key)
    }

    /// Records a name that a call is about to create, change or remove.
    pub(crate) fn record(&self, pending: &PendingCall, place: &ResolvedName) -> Result<(), Errno> {
        let Some(recording) = self.recording(&place.path) else { return Ok(()) };
        let recorded = recording.recorder.before(self.key(recording, pending)?, of(place));
        recorded.map_err(errno)
    }

    /// Records a name whose mode or times a call is about to change.
    fn record_status(&self, pending: &PendingCall, place: &ResolvedName) -> Result<(), Errno> {
        let Some(recording) = self.recording(&place.path) else { return Ok(()) };
        let recorded = recording.recorder.before_status(self.key(recording, pending)?, of(place));
        recorded.map_err(errno)
    }

    /// Records a name whose attributes a call is about to change.
    fn record_attributes(&self, pending: &PendingCall, place: &ResolvedName) -> Result<(), Errno> {
        let Some(recording) = self.recording(&place.path) else { return Ok(()) };
        let recorded = recording.recorder.before_attributes(self.key(recording, pending)?, of(place));
        recorded.map_err(errno)
    }

    /// Records a name that a call is about to remove or to give to another file.
    fn record_removal(
        &self,
        pending: &PendingCall,
        place: &ResolvedName,
    ) -> Result<Option<Spared<'_>>, Errno> {
        let Some(recording) = self.recording(&place.path) else { return Ok(None) };
        let outside = || recording.outside.as_ref()?.directory_of(place);
        let key = self.key(recording, pending)?;
        recording.recorder.before_removal(key, of(place), &outside).map_err(errno)
    }
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

impl Worker {
    /// Records a name that a call is about to create, change or remove.
    pub(crate) fn record(&self, pending: &PendingCall, place: &ResolvedName) -> Result<(), Errno> {
        self.broker.record(pending, place)
    }

    /// Records a name whose attributes a call is about to change.
    pub(crate) fn record_attributes(&self, pending: &PendingCall, place: &ResolvedName) -> Result<(), Errno> {
        self.broker.record_attributes(pending, place)
    }

    /// Records a name whose mode or times a call is about to change.
    pub(crate) fn record_status(&self, pending: &PendingCall, place: &ResolvedName) -> Result<(), Errno> {
        self.broker.record_status(pending, place)
    }

    /// Records a name that a call is about to remove.
    pub(crate) fn record_removal(
        &self,
        pending: &PendingCall,
        place: &ResolvedName,
    ) -> Result<Option<Spared<'static>>, Errno> {
        self.broker.record_removal(pending, place)
    }

    /// Records a rename.
    pub(crate) fn record_move(
        &self,
        pending: &PendingCall,
        (old, new): (&ResolvedName, &ResolvedName),
        exchange: bool,
    ) -> Result<Announced, Errno> {
        let broker = self.broker;
        let Some(recording) = broker.recording(&old.path) else {
            // It comes from one of the session's own places.
            let replaced = broker.record_removal(pending, new)?;
            return Ok(Announced { recorded: None, replaced });
        };
        let key = broker.key(recording, pending)?;
        let outside = || recording.outside.as_ref()?.directory_of(new);
        let places = (of(old), of(new));
        let (moving, replaced) = recording.recorder.moving(key, places, exchange, &outside).map_err(errno)?;
        Ok(Announced { recorded: Some((key, moving)), replaced })
    }

    /// Records that an announced rename has failed.
    pub(crate) fn record_no_move(&self, announced: Announced) {
        if let (Some(recording), Some((key, moving))) = (&self.broker.recording, announced.recorded) {
            recording.recorder.not_moved(key, moving);
        }
    }
}

impl Announced {
    /// The rename has happened.
    pub(crate) fn done(self) {
        if let Some(replaced) = self.replaced {
            replaced.removed();
        }
    }
}

fn of(place: &ResolvedName) -> Place<'_, BorrowedFd<'_>> {
    Place { directory: place.directory.as_fd(), name: &place.name, path: &place.path }
}
