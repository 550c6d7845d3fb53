//! Records what a call is about to change in the user's files, so that it can be taken back.
//!
//! If something cannot be recorded, as on a full disk, the call fails and changes nothing.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use portcullis_changes::{CallKey, Move, Place};
use rustix::io::Errno;

use crate::broker::Broker;
use crate::change_record::Recording;
use crate::pending::PendingCall;
use crate::resolved_name::ResolvedName;
use crate::worker::Worker;

/// A move that was announced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Announced(Option<(CallKey, Move)>);

impl Broker {
    /// Returns the record, if changes at this path are recorded: the session's own places end with it.
    fn recording(&self, path: &Path) -> Option<&Recording> {
        let is_users = self.roots.iter().any(|root| path != root && path.starts_with(root));
        self.recording.as_ref().filter(|_| is_users)
    }

    fn key(&self, recording: &Recording, pending: &PendingCall) -> CallKey {
        let number = self.processes.command(&pending.caller).unwrap_or_default();
        let key = CallKey { view: recording.view, number };
        if recording.recorder.is_new(key) {
            recording.recorder.forget(|call| call == key || self.processes.is_running(call.number));
        }
        key
    }

    /// Records a name that a call is about to create, change or remove.
    pub(crate) fn record(&self, pending: &PendingCall, place: &ResolvedName) -> Result<(), Errno> {
        let Some(recording) = self.recording(&place.path) else { return Ok(()) };
        let recorded = recording.recorder.before(self.key(recording, pending), of(place));
        recorded.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

impl Worker {
    /// Records a name that a call is about to create, change or remove.
    pub(crate) fn record(&self, pending: &PendingCall, place: &ResolvedName) -> Result<(), Errno> {
        self.broker.record(pending, place)
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
            return broker.record(pending, new).map(|()| Announced(None));
        };
        let key = broker.key(recording, pending);
        let moving = recording.recorder.moving(key, (of(old), of(new)), exchange);
        let moving = moving.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(Announced(Some((key, moving))))
    }

    /// Records that an announced rename has failed.
    pub(crate) fn record_no_move(&self, Announced(announced): Announced) {
        if let (Some(recording), Some((key, moving))) = (&self.broker.recording, announced) {
            recording.recorder.not_moved(key, moving);
        }
    }
}

fn of(place: &ResolvedName) -> Place<'_, BorrowedFd<'_>> {
    Place { directory: place.directory.as_fd(), name: &place.name, path: &place.path }
}
